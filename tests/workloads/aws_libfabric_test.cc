// SPDX-License-Identifier: GPL-2.0-only
// Expected values: aws-ofi-nccl (src/platform-aws.cpp, src/tuner/nccl_ofi_model.c) and NCCL's
// calcCollChunking (src/enqueue.cc).
#include "workloads/nccl/aws_libfabric.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

using ::railyard::testing::Nodes;

JobCollective AllReduceOf(uint64_t bytes) {
  JobCollective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.count = bytes / 4;
  collective.datatype = Datatype::kFloat32;
  collective.bytes = bytes;
  return collective;
}
NcclSettings OverEfa() {
  NcclSettings settings;
  settings.net = NetPlugin::kAwsLibfabric;
  ApplyAwsLibfabric(settings);
  return settings;
}
CommunicatorLayout Ampere(uint32_t nodes) {
  CommunicatorLayout layout = Nodes(nodes, 8);
  layout.generation = GpuGeneration::kAmpere;
  return layout;
}

// "the LL/LL128 protocols can lead to data corruption without data delivery ordering".
TEST(AwsLibfabricTest, BeforeHopperThereIsSimpleAlone) {
  for (const uint32_t nodes : {1u, 2u, 8u}) {
    for (const uint64_t bytes : {uint64_t{8}, uint64_t{1} << 20, uint64_t{1} << 30}) {
      EXPECT_EQ(NcclPlanner(Ampere(nodes), OverEfa()).Choose(AllReduceOf(bytes), {})->protocol,
                Protocol::kSimple);
    }
  }
  EXPECT_EQ(NcclPlanner(Nodes(2, 8), OverEfa()).Choose(AllReduceOf(8), {})->protocol,
            Protocol::kLl);
}

TEST(AwsLibfabricTest, AStatedProtocolHoldsAllTheSame) {
  NcclSettings settings = OverEfa();
  settings.protocols.AllowOnly(1u << static_cast<uint32_t>(Protocol::kLl));
  EXPECT_EQ(NcclPlanner(Ampere(2), settings).Choose(AllReduceOf(8), {})->protocol, Protocol::kLl);
}

TEST(AwsLibfabricTest, TheTunerGetsTheInstancesLatency) {
  EXPECT_EQ(AwsLibfabricNetLatencyUs(GpuGeneration::kAmpere), 75);     // p4d, p4de
  EXPECT_EQ(AwsLibfabricNetLatencyUs(GpuGeneration::kHopper), 75);     // p5, p5e
  EXPECT_EQ(AwsLibfabricNetLatencyUs(GpuGeneration::kBlackwell), 35);  // p6-b200
  // A ring on 8 servers has 14 steps between them, of 75 us more each with LL128, a tree 6.
  NcclSettings settings = OverEfa();
  settings.nvls_enable = false;
  const JobCollective collective = AllReduceOf(128u << 20);
  EXPECT_EQ(NcclPlanner(Nodes(8, 8), settings).Choose(collective, {})->algorithm, Algorithm::kTree);
  settings.ofi_net_latency_us = 0;
  EXPECT_EQ(NcclPlanner(Nodes(8, 8), settings).Choose(collective, {})->algorithm, Algorithm::kRing);
}

uint64_t LargestChunk(const CommunicatorLayout& layout, const NcclSettings& settings,
                      uint64_t bytes) {
  const auto schedule = NcclPlanner(layout, settings)
                            .Plan(AllReduceOf(bytes), {Algorithm::kNvlsTree, Protocol::kSimple});
  uint64_t largest = 0;
  for (uint32_t lane = 0; lane < schedule->LaneCount(RankIndex{0}, 0, 0); ++lane) {
    const LaneId id{RankIndex{0}, 0, 0, lane};
    for (uint64_t i = 0; i < schedule->StepCount(id); ++i) {
      largest = std::max(largest, schedule->StepAt(id, i).bytes);
    }
  }
  return largest;
}

// 16 channels of 8 heads. Less than 32 rounds of them are cut to 256 KiB, less than 16 to 128, less
// than 4 to 64.
TEST(AwsLibfabricTest, NvlsTreesChunksAreLarger) {
  constexpr uint64_t kKiB = 1024;
  constexpr uint64_t kMiB = 1024 * kKiB;
  for (const uint32_t nodes : {2u, 4u}) {
    const CommunicatorLayout layout = Nodes(nodes, 8);
    const auto chunk = [&](const NcclSettings& settings, uint64_t bytes) {
      return LargestChunk(layout, settings, bytes);
    };
    EXPECT_EQ(chunk(OverEfa(), 2048 * kMiB), 512 * kKiB);
    EXPECT_EQ(chunk(OverEfa(), 1024 * kMiB), 256 * kKiB);
    EXPECT_EQ(chunk(OverEfa(), 256 * kMiB), 128 * kKiB);
    EXPECT_EQ(chunk(OverEfa(), 32 * kMiB), 64 * kKiB);
    EXPECT_EQ(chunk({}, 1024 * kMiB), (nodes == 2 ? 128 : 64) * kKiB);
    NcclSettings larger;
    larger.nvls_chunksize_bytes = 256 * kKiB;
    EXPECT_EQ(chunk(larger, 1024 * kMiB), (nodes == 2 ? 256 : 64) * kKiB);
  }
}

TEST(AwsLibfabricTest, AStepTakesWhatAmazonsTunerCounts) {
  EXPECT_EQ(AwsLibfabricStepUs(Protocol::kLl), 20);
  EXPECT_EQ(AwsLibfabricStepUs(Protocol::kLl128), 20);
  EXPECT_EQ(AwsLibfabricStepUs(Protocol::kSimple), 23);  // and 3 us for the completion
}

}  // namespace
}  // namespace railyard
