// SPDX-License-Identifier: GPL-2.0-only
// Expected values: aws-ofi-nccl (src/platform-aws.cpp, src/nccl_ofi_scheduler.cpp) and NCCL's
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

// Pull request 332 sets NVLSTREE_MAX_CHUNKSIZE, and 372, two months later, NVLS_CHUNKSIZE.
TEST(AwsLibfabricTest, ThePlugInIsAsOldAsNccl) {
  const auto settings_of = [](uint32_t version) {
    NcclSettings settings;
    settings.version = version;
    ApplyAwsLibfabric(settings);
    return settings;
  };
  const NcclSettings defaults;
  EXPECT_EQ(settings_of(21904).nvlstree_max_chunksize_bytes, defaults.nvlstree_max_chunksize_bytes);
  EXPECT_EQ(settings_of(22003).nvlstree_max_chunksize_bytes, 512u << 10);
  EXPECT_EQ(settings_of(22003).nvls_chunksize_bytes, defaults.nvls_chunksize_bytes);
  EXPECT_EQ(settings_of(22105).nvls_chunksize_bytes, 512u << 10);
  EXPECT_EQ(settings_of(22602).buffsize_bytes, defaults.buffsize_bytes);
  EXPECT_EQ(settings_of(22703).buffsize_bytes, 8u << 20);
}

// ROUND_ROBIN_THRESHOLD was 8 KiB, then 256 KiB (pull request 295); MIN_STRIPE_SIZE is 128 KiB.
TEST(AwsLibfabricTest, MessagesAreDividedAsInTheVersionOfThePlugIn) {
  EXPECT_EQ(AwsLibfabricStripesOf(21805).bytes, 8u << 10);
  EXPECT_EQ(AwsLibfabricStripesOf(21904).bytes, 256u << 10);
  EXPECT_TRUE(AwsLibfabricStripesOf(22304).are_on_all_rails);
  EXPECT_EQ(AwsLibfabricStripesOf(22403).bytes, 128u << 10);
  EXPECT_FALSE(AwsLibfabricStripesOf(22705).are_on_all_rails);
}

// fi_pingpong between two p4de and between two p5.
TEST(AwsLibfabricTest, EfasLatencyIsThatOfTheInstance) {
  EXPECT_EQ(EfaLatencyUs(GpuGeneration::kAmpere), 19.8);
  EXPECT_EQ(EfaLatencyUs(GpuGeneration::kHopper), 17.3);
}

}  // namespace
}  // namespace railyard
