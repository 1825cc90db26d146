// SPDX-License-Identifier: GPL-2.0-only
// Expected values: the rules of RCCL's source for MI300X, counted by hand.
#include "workloads/nccl/rccl.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/nccl/nccl_channels.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1024} * 1024;

CommunicatorLayout Mi300x(uint32_t nodes) {
  CommunicatorLayout layout;
  layout.library = CollectiveLibrary::kRccl;
  layout.generation = GpuGeneration::kAmpere;
  layout.nvswitch = false;
  layout.cpu = CommunicatorCpu::kAmd;
  layout.mesh_lanes.assign(8, std::vector<uint32_t>(8, 1));
  for (uint32_t gpu = 0; gpu < 8; ++gpu) layout.mesh_lanes[gpu][gpu] = 0;
  for (uint32_t rank = 0; rank < 8 * nodes; ++rank) {
    layout.ranks.push_back({.node = rank / 8, .local_index = rank % 8});
  }
  return layout;
}

// Every link in each direction carries two of the fourteen rings of one server: 56 x 2 hops.
TEST(RcclTest, RingsOfOneServerUseAllLinksAlike) {
  std::array<std::array<int, 8>, 8> uses{};
  for (const std::vector<uint32_t>& ring : RcclRings(1)) {
    for (size_t i = 0; i < 8; ++i) ++uses[ring[i]][ring[(i + 1) % 8]];
  }
  for (size_t a = 0; a < 8; ++a) {
    for (size_t b = 0; b < 8; ++b) EXPECT_EQ(uses[a][b], a == b ? 0 : 2) << a << " " << b;
  }
}

// Every GPU's NIC is entered by two of the sixteen rings between servers, and left by two.
TEST(RcclTest, RingsBetweenServersUseAllNicsAlike) {
  const CommunicatorLayout layout = Mi300x(2);
  const CommunicatorChannels channels = BuildChannels(layout, {});
  EXPECT_EQ(channels.graph_channel_count, 16u);
  ASSERT_EQ(channels.rings.size(), 32u);
  std::array<int, 16> left_by{};
  for (size_t channel = 0; channel < channels.rings.size(); ++channel) {
    const std::vector<uint32_t>& ring = channels.rings[channel];
    for (size_t i = 0; i < 16; ++i) {
      const uint32_t rank = ring[i];
      if (layout.ranks[rank].node == layout.ranks[ring[(i + 1) % 16]].node) continue;
      EXPECT_EQ(channels.sending_nic[channel][rank], rank % 8);
      ++left_by[rank];
    }
  }
  EXPECT_THAT(left_by, ::testing::Each(4));
  EXPECT_THAT(channels.assumptions, Contains(HasSubstr("RCCL on MI300X")));
}

TEST(RcclTest, OtherMeshesHaveNcclsRings) {
  CommunicatorLayout layout = Mi300x(1);
  layout.library = CollectiveLibrary::kNccl;
  EXPECT_FALSE(HasRcclRings(layout));
  layout = Mi300x(1);
  layout.mesh_lanes[2][5] = 0;
  EXPECT_FALSE(HasRcclRings(layout));
}

// One server: 14 rings of 24 GB/s. LL: 12 + 14 x 0.8 us and 0.08 of the bandwidth; Simple: 17 + 14
// x 2.1 us. For AllReduce both have n / 2 (n - 1) of it.
TEST(RcclTest, TimesAreThoseOfTheTuner) {
  TunerPlatform platform;
  platform.library = CollectiveLibrary::kRccl;
  platform.ring = platform.tree = {14, 24, 24};
  const TunedCommunicator one_server = {8, 1, 28};
  const TunedCall call = {CollectiveKind::kAllReduce, 16 * kMiB};
  const double bytes_us = 16.0 * kMiB / (1000 * 336 * 8 / 14.0);
  EXPECT_NEAR(*RcclTimeUs(call, one_server, platform, Algorithm::kRing, Protocol::kSimple),
              17 + 14 * 2.1 + bytes_us, 1e-6);
  EXPECT_NEAR(*RcclTimeUs(call, one_server, platform, Algorithm::kRing, Protocol::kLl),
              12 + 14 * 0.8 + bytes_us / 0.08, 1e-6);
  EXPECT_FALSE(RcclTimeUs(call, one_server, platform, Algorithm::kRing, Protocol::kLl128));
  EXPECT_FALSE(RcclTimeUs(call, one_server, platform, Algorithm::kTree, Protocol::kSimple));
  EXPECT_FALSE(RcclTimeUs(call, one_server, platform, Algorithm::kNvls, Protocol::kSimple));
}

// llProtoRanges of tuning_model_5 between servers; in one server only ReduceScatter has a rule.
TEST(RcclTest, SizesDecideOnTheProtocolBetweenServers) {
  const TunedCommunicator two_servers = {16, 2, 32};
  const auto of = [&](CollectiveKind kind, uint64_t bytes) {
    return RcclProtocol({kind, bytes}, two_servers);
  };
  EXPECT_EQ(of(CollectiveKind::kAllReduce, kMiB), Protocol::kLl);
  EXPECT_EQ(of(CollectiveKind::kAllReduce, kMiB + 1), Protocol::kSimple);
  EXPECT_EQ(of(CollectiveKind::kAllGather, uint64_t{16} * 98'304), Protocol::kLl);
  EXPECT_EQ(of(CollectiveKind::kAllGather, uint64_t{16} * 98'305), Protocol::kSimple);
  EXPECT_EQ(of(CollectiveKind::kBroadcast, kMiB), std::nullopt);
  const TunedCommunicator one_server = {8, 1, 28};
  EXPECT_EQ(RcclProtocol({CollectiveKind::kReduceScatter, 8 * 352'128}, one_server), Protocol::kLl);
  EXPECT_EQ(RcclProtocol({CollectiveKind::kReduceScatter, 8 * 352'129}, one_server), std::nullopt);
  EXPECT_EQ(RcclProtocol({CollectiveKind::kAllReduce, 8}, one_server), std::nullopt);
}

TEST(RcclTest, PxnIsForLargeCommunicators) {
  EXPECT_TRUE(WithRcclDefaults({}, 56).pxn_disable);
  const NcclSettings large = WithRcclDefaults({}, 64);
  EXPECT_FALSE(large.pxn_disable);
  EXPECT_EQ(large.p2p_net_chunksize_bytes, 512u << 10);
}

// A stated protocol goes before the rule of sizes.
TEST(RcclTest, ThePlannerFollowsTheRuleOfSizesUnlessAProtocolIsStated) {
  const NcclPlanner planner(Mi300x(2), {});
  JobCollective call;
  call.kind = CollectiveKind::kAllReduce;
  call.count = 16 * kMiB;
  call.datatype = Datatype::kFloat32;
  call.bytes = 64 * kMiB;
  EXPECT_EQ(planner.Choose(call, {})->protocol, Protocol::kSimple);
  EXPECT_EQ(planner.Choose(call, {Algorithm::kUnstated, Protocol::kLl})->protocol, Protocol::kLl);
  call.count = 1024;
  call.bytes = 4096;
  EXPECT_EQ(planner.Choose(call, {})->protocol, Protocol::kLl);
}

}  // namespace
}  // namespace railyard
