// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/pcie_paths.h"

#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr uint64_t kGen4X16Bps = 220'000'000'000;
constexpr uint64_t kGen3X16Bps = 110'000'000'000;

// Says what hangs on what in a server.
struct PcieShape {
  uint32_t gpus = 0;
  uint32_t gpus_per_switch = 0;
  uint32_t switches_per_bridge = 0;
};
constexpr PcieShape kTwoOnBridges = {.gpus = 2, .gpus_per_switch = 1, .switches_per_bridge = 1};
constexpr PcieShape kFourOnOneBridge = {.gpus = 4, .gpus_per_switch = 2, .switches_per_bridge = 2};
constexpr PcieShape kEightOnTwoBridges = {
    .gpus = 8, .gpus_per_switch = 4, .switches_per_bridge = 1};

CommunicatorLayout Server(const PcieShape& shape, uint64_t link_bps) {
  CommunicatorLayout layout;
  layout.generation = GpuGeneration::kAmpere;
  layout.nvlink = false;
  layout.nvswitch = false;
  layout.gpus_per_server = shape.gpus;
  for (uint32_t gpu = 0; gpu < shape.gpus; ++gpu) {
    const auto above = static_cast<int32_t>(gpu / shape.gpus_per_switch);
    const PciePlace place = {.host_bridge = above / static_cast<int32_t>(shape.switches_per_bridge),
                             .first_switch = above,
                             .last_switch = above,
                             .link_bps = link_bps,
                             .uplink_bps = link_bps};
    layout.ranks.push_back(
        {.node = 0, .local_index = gpu, .server = ServerIndex{0}, .pcie = place});
  }
  return layout;
}

NcclSettings UpTo(PathType level) {
  NcclSettings settings;
  settings.p2p_level = level;
  return settings;
}

double RingOf(const CommunicatorLayout& layout, const NcclSettings& settings = {}) {
  std::vector<RankIndex> ranks(layout.ranks.size());
  std::iota(ranks.begin(), ranks.end(), RankIndex{0});
  return PcieRingGbPerS(layout, settings, ranks);
}

TEST(PciePathsTest, DistancesAreNcclsPathTypes) {
  const PciePlace a = {.host_bridge = 0, .first_switch = 0, .last_switch = 4};
  EXPECT_EQ(PciePathType(a, {.host_bridge = 0, .first_switch = 0, .last_switch = 4}),
            PathType::kPix);
  EXPECT_EQ(PciePathType(a, {.host_bridge = 0, .first_switch = 1, .last_switch = 4}),
            PathType::kPxb);
  EXPECT_EQ(PciePathType(a, {.host_bridge = 0, .first_switch = 2, .last_switch = 5}),
            PathType::kPhb);
  EXPECT_EQ(PciePathType(a, {.host_bridge = 1, .first_switch = 3, .last_switch = 6}),
            PathType::kSys);
  EXPECT_EQ(PciePathType({.host_bridge = 0}, {.host_bridge = 0}), PathType::kPhb);
}

// ncclTopoCheckP2p: up to PXB by default.
TEST(PciePathsTest, TheTransportFollowsLevelAndAccess) {
  CommunicatorLayout layout = Server(kEightOnTwoBridges, kGen4X16Bps);
  NcclSettings settings;
  const auto between = [&](uint32_t a, uint32_t b) {
    return LocalTransportOf(layout, settings, RankIndex{a}, RankIndex{b});
  };
  EXPECT_EQ(between(0, 3), LocalTransport::kPeerToPeer);
  EXPECT_EQ(between(3, 4), LocalTransport::kSharedMemory);
  settings.p2p_level = PathType::kSys;
  EXPECT_EQ(between(3, 4), LocalTransport::kPeerToPeer);
  layout.peer_access = false;
  EXPECT_EQ(between(0, 3), LocalTransport::kSharedMemory);
  settings.shm_disable = true;
  EXPECT_EQ(between(0, 3), LocalTransport::kNone);
  layout.nvlink = true;
  EXPECT_EQ(between(0, 3), LocalTransport::kNvlink);
  settings = UpTo(PathType::kLoc);
  EXPECT_EQ(between(0, 3), LocalTransport::kSharedMemory);
}

// NCCL printed "nChannels 1, bw 5.000000/5.000000, type SYS/PIX" for 8 RTX 4090 without P2P, four
// on a switch of PCIe 4.0 to a socket of Intel's (github.com/NVIDIA/nccl-tests/issues/307), and
// "nChannels 1, bw 10.000000/10.000000, type PHB/PIX" for 4 GPUs with P2P on switches of PCIe 3.0
// with two each (github.com/huggingface/accelerate/issues/2183).
TEST(PciePathsTest, RingsAreAsFastAsNcclPrintsThem) {
  CommunicatorLayout without_access = Server(kEightOnTwoBridges, kGen4X16Bps);
  without_access.peer_access = false;
  EXPECT_EQ(RingOf(without_access), 5);
  EXPECT_EQ(RingOf(Server(kFourOnOneBridge, kGen3X16Bps), UpTo(PathType::kSys)), 10);
}

// INTEL_P2P_OVERHEAD is Intel's alone: of 12 GB/s under a host bridge all; four hops with SHM share
// 24. Between sockets NCCL has 10 GB/s for Intel's up to Ice Lake, 16 for AMD's, 6 for ARM's.
TEST(PciePathsTest, RingsDependOnWhoMadeTheCpu) {
  const struct {
    CommunicatorCpu cpu;
    double under_bridge;
    double by_memory;
    double between_sockets;
  } cases[] = {{CommunicatorCpu::kIntel, 10, 5, 10},
               {CommunicatorCpu::kAmd, 12, 6, 15},
               {CommunicatorCpu::kArm, 12, 6, 6}};
  for (const auto& c : cases) {
    CommunicatorLayout layout = Server(kFourOnOneBridge, kGen3X16Bps);
    layout.cpu = c.cpu;
    EXPECT_EQ(RingOf(layout, UpTo(PathType::kSys)), c.under_bridge);
    layout = Server(kEightOnTwoBridges, kGen4X16Bps);
    layout.cpu = c.cpu;
    layout.peer_access = false;
    EXPECT_EQ(RingOf(layout), c.by_memory);
    layout = Server(kTwoOnBridges, kGen4X16Bps);
    layout.cpu = c.cpu;
    EXPECT_EQ(RingOf(layout, UpTo(PathType::kSys)), c.between_sockets);
  }
}

// ncclTopoCheckP2p: whatever the distance, but with Intel's and ARM's CPUs up to PXB.
TEST(PciePathsTest, AmdsCpusLetPeersMeetAtAnyDistance) {
  CommunicatorLayout layout = Server(kEightOnTwoBridges, kGen4X16Bps);
  for (const CommunicatorCpu cpu :
       {CommunicatorCpu::kIntel, CommunicatorCpu::kArm, CommunicatorCpu::kMixed}) {
    layout.cpu = cpu;
    EXPECT_EQ(LocalTransportOf(layout, {}, RankIndex{3}, RankIndex{4}),
              LocalTransport::kSharedMemory);
  }
  layout.cpu = CommunicatorCpu::kAmd;
  EXPECT_EQ(LocalTransportOf(layout, {}, RankIndex{3}, RankIndex{4}), LocalTransport::kPeerToPeer);
  EXPECT_EQ(LocalTransportOf(layout, UpTo(PathType::kPxb), RankIndex{3}, RankIndex{4}),
            LocalTransport::kSharedMemory);
}

// "Channel 00/02 : 0 1 2 3 4 5 6 7", twice, and two channels for a peer.
TEST(PciePathsTest, TwoChannelsInTheOrderOfTheGpus) {
  CommunicatorLayout layout = Server(kEightOnTwoBridges, kGen4X16Bps);
  layout.peer_access = false;
  const NcclPlanner planner(layout, {});
  EXPECT_THAT(planner.channels().rings, Each(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
  EXPECT_EQ(planner.channels().rings.size(), 2u);
  EXPECT_EQ(planner.channels().p2p_channel_count, 2u);
  EXPECT_EQ(planner.channels().p2p_channels_per_peer, 2u);
  EXPECT_TRUE(
      planner.RouteOf(0, RankIndex{0}, RankIndex{1}, ConnectionUse::kRing).over_host_memory);
  // LL128 wants NVLink, and NVLS an NVSwitch (ncclTopoTuneModel).
  JobCollective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.bytes = 1u << 30;
  collective.count = collective.bytes / 4;
  collective.datatype = Datatype::kFloat32;
  const auto choice = planner.Choose(collective, {});
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->protocol, Protocol::kSimple);
  EXPECT_EQ(choice->algorithm, Algorithm::kRing);
}

// P2P_DISABLE takes NVLink away as well.
TEST(PciePathsTest, WithoutP2pThereIsNoNvlink) {
  CommunicatorLayout layout = Server(kEightOnTwoBridges, kGen4X16Bps);
  layout.nvlink = true;
  layout.nvswitch = true;
  const NcclPlanner planner(layout, UpTo(PathType::kLoc));
  EXPECT_EQ(planner.TransportBetween(RankIndex{0}, RankIndex{1}), LocalTransport::kSharedMemory);
  EXPECT_EQ(planner.channels().rings.size(), 2u);
}

}  // namespace
}  // namespace railyard
