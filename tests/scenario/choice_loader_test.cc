// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/choice_loader.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

// Loads a scenario with `lines` in it, whose job leaves the algorithm to NCCL.
std::unique_ptr<Scenario> LoadWithChoice(const std::string& lines) {
  LoadedScenario loaded(
      std::string(kFabric) +
      "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } }\n" + lines);
  EXPECT_NE(loaded.scenario, nullptr) << loaded.findings;
  return std::move(loaded.scenario);
}

// The examples of parseList's comment (src/graph/tuning.cc of NCCL 2.24).
TEST(ChoiceLoaderTest, ListsByCollectiveReplaceTheFirst) {
  const auto scenario = LoadWithChoice(
      "nccl { ALGO: \"ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring\" "
      "PROTO: \"LL,Simple;allreduce:^LL\" }");
  ASSERT_NE(scenario, nullptr);
  const auto& algorithms = scenario->nccl.algorithms;
  EXPECT_TRUE(algorithms.Allows(CollectiveKind::kReduce, Algorithm::kRing));
  EXPECT_TRUE(algorithms.Allows(CollectiveKind::kReduce, Algorithm::kCollnetDirect));
  EXPECT_FALSE(algorithms.Allows(CollectiveKind::kReduce, Algorithm::kTree));
  EXPECT_TRUE(algorithms.Allows(CollectiveKind::kAllReduce, Algorithm::kTree));
  EXPECT_FALSE(algorithms.Allows(CollectiveKind::kAllReduce, Algorithm::kRing));
  EXPECT_FALSE(algorithms.Allows(CollectiveKind::kBroadcast, Algorithm::kCollnetDirect));
  const auto& protocols = scenario->nccl.protocols;
  EXPECT_FALSE(protocols.Allows(CollectiveKind::kAllGather, Protocol::kLl128));
  EXPECT_TRUE(protocols.Allows(CollectiveKind::kAllReduce, Protocol::kLl128));
  EXPECT_FALSE(protocols.Allows(CollectiveKind::kAllReduce, Protocol::kLl));
}

// With NCCL_ALGO=allreduce:tree and NCCL_PROTO=Simple, Broadcast runs with 2.30 and fails with 2.31
// (vllm-project/vllm pull request 58179).
TEST(ChoiceLoaderTest, From231OnAlgoForbidsWhatItDoesNotName) {
  const auto allows_ring = [](const std::string& version, const std::string& others) {
    const auto scenario = LoadWithChoice("nccl { version: \"" + version +
                                         "\" ALGO: \"allreduce:tree\" " + others + " }");
    return scenario->nccl.algorithms.Allows(CollectiveKind::kReduce, Algorithm::kRing);
  };
  EXPECT_TRUE(allows_ring("2.30.4", "PROTO: \"Simple\""));
  EXPECT_FALSE(allows_ring("2.31.2", "PROTO: \"Simple\""));
  EXPECT_TRUE(allows_ring("2.31.2", ""));
  EXPECT_TRUE(allows_ring("2.31.2", "PROTO: \"allreduce:Simple\""));
}

TEST(ChoiceLoaderTest, WhatNcclWouldNotReadIsRefused) {
  EXPECT_EQ(FindingsBeside("nccl { ALGO: \"Ring;Tree\" }"),
            ":3:8: error: nccl.ALGO: \"Tree\" has no collective before it (expected e.g. "
            "\"allreduce:Tree\" in every list after the first)\n");
  EXPECT_EQ(FindingsBeside("nccl { version: \"2.23.4\" PROTO: \"allreduce:LL\" }"),
            ":3:26: error: nccl.PROTO: NCCL has lists by collective from 2.24 on, the job's is "
            "2.23.4 (expected one list for all, e.g. LL)\n");
  EXPECT_EQ(FindingsBeside("nccl { ALGO: \"alltoall:Ring\" }"),
            ":3:8: error: nccl.ALGO: unknown collective \"alltoall\" (expected Broadcast, Reduce, "
            "AllGather, ReduceScatter or AllReduce)\n");
  EXPECT_EQ(FindingsBeside("nccl { ALGO: \"allreduce:Tree:LL\" }"),
            ":3:8: error: nccl.ALGO: unknown name \"Tree:LL\" (expected Tree, Ring, "
            "CollNetDirect, CollNetChain, NVLS, NVLSTree or PAT)\n");
}

}  // namespace
}  // namespace railyard
