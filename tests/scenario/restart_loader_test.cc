// SPDX-License-Identifier: GPL-2.0-only
// `restart` and `nic_failover`: what they are read as, and what is refused.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/scenario/loaded_scenario.h"
#include "traces/trace/trace_file.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRounds =
    "workload { program { repeat: 10 collectives { kind: ALL_REDUCE bytes: \"1MiB\" "
    "compute_before: "
    "\"1s\" } } algorithm: RING protocol: SIMPLE }\n";

std::string FindingsOf(const std::string& lines, const std::string& workload = kRounds) {
  return LoadedScenario(std::string(kFabric) + workload + lines).findings;
}

TEST(RestartLoaderTest, CheckpointsAreTimeBeforeTheRoundsTheyPrecede) {
  const LoadedScenario loaded(std::string(kFabric) + kRounds +
                              "restart { checkpoint_every: 4 save: \"2s\" load: \"3s\" requeue: "
                              "\"5s\" detection: WATCHDOG restarts_max: 7 }");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const RestartSettings& restart = loaded.scenario->restarts[0];
  EXPECT_TRUE(restart.restarts);
  EXPECT_EQ(restart.load_ps, 3 * kPsPerSecond);
  EXPECT_EQ(restart.requeue_ps, 5 * kPsPerSecond);
  EXPECT_EQ(restart.detection, RestartSettings::Detection::kWatchdog);
  EXPECT_EQ(restart.restarts_max, 7u);
  EXPECT_EQ(restart.checkpoint_count, 2u);
  // Each a computation of its own before the fifth and the ninth call.
  ASSERT_EQ(loaded.scenario->job.operations[GlobalRank{0}].size(), 12u);
  EXPECT_THAT(restart.checkpoints[loaded.scenario->job.operations.program_of_rank(GlobalRank{0})],
              ::testing::ElementsAre(5, 10));
  for (uint32_t i = 0; i < 12; ++i) {
    const JobOperation& operation = loaded.scenario->job.operations[GlobalRank{0}][i];
    EXPECT_EQ(operation.is_compute(), i == 4 || i == 9);
    EXPECT_EQ(operation.compute_before_ps, (operation.is_compute() ? 2 : 1) * kPsPerSecond);
  }
}

TEST(RestartLoaderTest, WhatItCannotDoIsRefused) {
  EXPECT_EQ(FindingsOf("restart { save: \"1s\" }"),
            ":3:11: error: restart.save: has no effect without checkpoint_every\n");
  EXPECT_EQ(
      FindingsOf("restart { checkpoint_every: 10 }"),
      ":3:11: error: restart.checkpoint_every: 10 is beyond the job's last iteration (expected "
      "less than 10)\n");
  EXPECT_EQ(FindingsOf("restart { requeue: \"25h\" }"),
            ":3:11: error: restart.requeue: \"25h\" is out of range (expected at most 24 h)\n");
  EXPECT_THAT(FindingsOf("restart {}", "workload { inline_plan {} }\n"), HasSubstr("error"));
  EXPECT_EQ(
      FindingsOf("restart { checkpoint_every: 1 }",
                 "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } }\n"),
      ":3:11: error: restart.checkpoint_every: the job has one iteration, as far as its program "
      "shows "
      "(expected a plan or a program that repeats, a log whose calls do throughout, or no "
      "checkpoints)\n");
}

constexpr const char* kTwoJobs =
    "jobs { name: \"a\" %s workload { program { ranks: 2 repeat: 9 collectives { kind: ALL_REDUCE "
    "bytes: \"1MiB\" } } } }\n"
    "jobs { name: \"b\" %s workload { program { ranks: 2 collectives { kind: ALL_REDUCE bytes: "
    "\"1MiB\" } } } }\n";

std::string TwoJobs(const std::string& of_a, const std::string& of_b) {
  std::string text = kTwoJobs;
  for (const std::string& of : {of_a, of_b}) text.replace(text.find("%s"), 2, of);
  return text;
}

TEST(RestartLoaderTest, EachOfSeveralJobsHasItsOwnOrThatOfAll) {
  const LoadedScenario loaded(std::string(kFabric) +
                              TwoJobs("restart { checkpoint_every: 4 load: \"1s\" }", "") +
                              "restart { load: \"2s\" }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const std::vector<RestartSettings>& restarts = loaded.scenario->restarts;
  ASSERT_EQ(restarts.size(), 2u);
  EXPECT_EQ(restarts[0].load_ps, 1 * kPsPerSecond);
  EXPECT_EQ(restarts[0].checkpoint_count, 2u);
  EXPECT_EQ(restarts[1].load_ps, 2 * kPsPerSecond);
  EXPECT_EQ(restarts[1].checkpoint_count, 0u);
  // A job without a restart block does not restart.
  const LoadedScenario one(std::string(kFabric) + TwoJobs("restart {}", ""));
  ASSERT_NE(one.scenario, nullptr) << one.findings;
  EXPECT_TRUE(one.scenario->restarts[0].restarts);
  EXPECT_FALSE(one.scenario->restarts[1].restarts);
  EXPECT_EQ(FindingsOf("restart {}", TwoJobs("restart {}", "restart {}")),
            ":4:1: error: restart: has no effect, for every job has its own (expected it in some "
            "jobs alone, or here alone)\n");
  EXPECT_THAT(FindingsOf("restart { checkpoint_every: 3 }", TwoJobs("", "")),
              HasSubstr(":4:11: error: restart.checkpoint_every: job \"b\" has one iteration"));
  EXPECT_THAT(FindingsOf("", TwoJobs("restart { spare_servers: \"server0\" }", "")),
              HasSubstr("jobs[0].restart.spare_servers[0]: server0 has ranks of job \"a\""));
}

// The calls of one rank are an iteration off those of the other.
TEST(RestartLoaderTest, IterationsThatRanksBeginAtDifferentCallsHaveNoCheckpoint) {
  Trace trace;
  trace.origin = "test";
  trace.rank_count = 2;
  trace.communicators = {{.name = "world", .ranks = GlobalRanksOf({0, 1})}};
  trace.operations.resize(2);
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    for (uint32_t i = 0; i < 3; ++i) {
      trace.operations[rank].push_back({.count = 1024, .begins_iteration = i == 1 + rank});
    }
  }
  const std::string path = ::testing::TempDir() + "restart_loader_test.trace";
  WriteTrace(path, trace);
  const std::string workload =
      "workload { trace: \"" + path + "\" algorithm: RING protocol: SIMPLE }\n";
  EXPECT_EQ(
      FindingsOf("restart { checkpoint_every: 1 }", workload),
      ":3:11: error: restart.checkpoint_every: collective 1 is before a checkpoint on some ranks "
      "and after it on others (expected iterations that all ranks begin together)\n");
  EXPECT_EQ(FindingsOf("restart {}", workload), "");
  std::filesystem::remove(path);
}

TEST(RestartLoaderTest, SpareServersHaveNoRanks) {
  const std::string on_one =
      "workload { program { ranks: 8 collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } algorithm: "
      "RING protocol: SIMPLE }\n";
  const LoadedScenario loaded(std::string(kFabric) + on_one +
                              "restart { spare_servers: \"server1\" }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_THAT(loaded.scenario->restarts[0].spare_servers, ::testing::ElementsAre(1));
  EXPECT_EQ(loaded.scenario->job.rank_count, 16u);
  EXPECT_EQ(
      FindingsOf("restart { spare_servers: \"server1\" }"),
      ":3:11: error: restart.spare_servers[0]: server1 has ranks of the job (expected servers "
      "without; workload.program.ranks, plans and placements say which GPUs a job is on)\n");
  EXPECT_EQ(FindingsOf("restart { spare_servers: \"server7\" }", on_one),
            ":3:11: error: restart.spare_servers[0]: \"server7\" is no server with GPUs (expected "
            "e.g. \"server1\")\n");
  EXPECT_THAT(FindingsOf("restart { spare_servers: \"server1\" }\nnic_failover { unusable: "
                         "\"server0/nic1\" policy: PXN }\n",
                         on_one),
              HasSubstr("restart.spare_servers[0]: stands beside nic_failover, which names NICs of "
                        "servers that ranks would leave (expected one of them)"));
  const std::string uneven =
      "fabric { leaf_spine { servers { count: 1 gpus: 4 } servers { count: 1 gpus: 2 } "
      "nics_per_leaf: "
      "4 spines: 1 } }\nworkload { program { ranks: 4 collectives { kind: ALL_REDUCE bytes: "
      "\"1MiB\" "
      "} } algorithm: RING protocol: SIMPLE }\n";
  EXPECT_THAT(LoadedScenario(uneven + "restart { spare_servers: \"server1\" }\n").findings,
              HasSubstr("restart.spare_servers[0]: server1 has 2 GPUs, server0 4 (expected equally "
                        "many)"));
}

constexpr const char* kFailover = "nic_failover { unusable: \"server1/nic3\" policy: REPLAN }\n";

TEST(NicFailoverLoaderTest, NamesNics) {
  const LoadedScenario loaded(std::string(kFabric) + kRounds +
                              "nic_failover { unusable: \"server1/nic3\" unusable: \"*/nic5\" "
                              "policy: PXN }");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_THAT(loaded.scenario->nccl.unusable_nics,
              ::testing::ElementsAre(NicPlace{ServerIndex{1}, 3}, NicPlace{ServerIndex{0}, 5},
                                     NicPlace{ServerIndex{1}, 5}));
  EXPECT_EQ(loaded.scenario->nccl.nic_policy, NicPolicy::kPxn);
}

TEST(NicFailoverLoaderTest, WithoutNicsItIsOfThoseThatFailWhateverTheAlgorithm) {
  const std::string any =
      "workload { program { collectives { kind: ALL_TO_ALL bytes: \"1MiB\" } } }\n";
  const LoadedScenario loaded(std::string(kFabric) + any + "nic_failover { policy: REPLAN }");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_EQ(loaded.scenario->nccl.nic_policy, NicPolicy::kReplan);
  EXPECT_TRUE(loaded.scenario->nccl.unusable_nics.empty());
  EXPECT_EQ(FindingsOf("nic_failover { policy: PXN }\nnccl { IB_QPS_PER_CONNECTION: 2 }", any),
            ":3:16: error: nic_failover.policy: moves connections of one queue pair (expected "
            "nic.link_aggregation: true and nccl.IB_QPS_PER_CONNECTION: 1, or no nic_failover)\n");
}

TEST(NicFailoverLoaderTest, WhatItCannotDoIsRefused) {
  EXPECT_EQ(FindingsOf("nic_failover { unusable: \"server9/nic3\" policy: PXN }"),
            ":3:16: error: nic_failover.unusable[0]: \"server9/nic3\" is no NIC of a GPU (expected "
            "e.g. \"server1/nic3\")\n");
  const std::string missing = FindingsOf("nic_failover {}");
  EXPECT_THAT(missing, HasSubstr("nic_failover.policy: missing (expected PXN or REPLAN)"));
  EXPECT_THAT(FindingsOf("nic_failover { unusable: \"server1/nic*\" policy: PXN }"),
              HasSubstr("leaves a server without a NIC (expected one in each)"));
  EXPECT_THAT(FindingsOf("nic_failover { unusable: \"server1/nic*\" policy: REPLAN }"),
              HasSubstr("leaves no rail whole (expected one that has its NIC in every server)"));
  EXPECT_THAT(FindingsOf(std::string(kFailover) + "nccl { PXN_DISABLE: true }"),
              HasSubstr("policy: needs PXN (expected nccl.PXN_DISABLE: false)"));
  const char* const rings_only =
      "policy: is of rings alone where NICs are unusable from the start (expected "
      "workload.algorithm: RING";
  EXPECT_THAT(FindingsOf(kFailover,
                         "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } "
                         "}\n"),
              HasSubstr(rings_only));
  EXPECT_THAT(
      FindingsOf(kFailover,
                 "workload { algorithm: RING protocol: SIMPLE program { collectives { kind: "
                 "ALL_TO_ALL bytes: \"1MiB\" } } }\n"),
      HasSubstr(rings_only));
  EXPECT_THAT(
      FindingsOf(kFailover,
                 "workload { algorithm: RING protocol: SIMPLE program { collectives { kind: "
                 "ALL_REDUCE bytes: \"1MiB\" stride: 8 } } }\n"),
      HasSubstr("does not know communicator \"stride8/0\" of some GPUs of several servers"));
}

}  // namespace
}  // namespace railyard
