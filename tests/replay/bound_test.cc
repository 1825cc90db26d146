// SPDX-License-Identifier: GPL-2.0-only
// Bounds of transfers over a fabric made by hand: two servers of two GPUs and an NVSwitch.
#include "simulator/replay/streams/bound.h"

#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr uint64_t kNvlinkBps = 8'000'000'000'000;  // 1 B takes 1 ps
constexpr uint64_t kNicBps = 80'000'000'000;        // 1 B takes 100 ps
constexpr int64_t kNvlinkPs = 30;
constexpr int64_t kHostPs = 500;
constexpr int64_t kWirePs = 7'000;
constexpr uint64_t kMtu = 1'000;
constexpr uint64_t kHeaders = 82;  // of a RoCE packet
constexpr int64_t kNetworkPs = 2 * (kHostPs + kWirePs);
constexpr int64_t kLocalPs = 2 * kNvlinkPs;

class BoundModelTest : public ::testing::Test {
 protected:
  // Each NIC has this number of wires. If the GPUs of a server share a NIC, it has one.
  void Build(uint32_t wires = 1, bool is_nic_shared = false) {
    graph_ = FabricGraph();
    graph_.nvlink.efficiency_per_mille = 500;
    const DeviceId leaf = graph_.AddDevice({.name = "leaf"});
    for (int32_t server = 0; server < 2; ++server) {
      const std::string prefix = "server" + std::to_string(server) + "/";
      const auto add = [&](DeviceKind kind, const char* stem, int32_t index) {
        return graph_.AddDevice({.name = prefix + stem + std::to_string(index),
                                 .kind = kind,
                                 .server = ServerIndex{server},
                                 .local_index = index});
      };
      const DeviceId nvswitch = add(DeviceKind::kNvSwitch, "nvswitch", 0);
      std::optional<DeviceId> nic;
      for (int32_t index = 0; index < 2; ++index) {
        const DeviceId gpu = add(DeviceKind::kGpu, "gpu", index);
        graph_.AddCable(gpu, nvswitch, {Tier::kNvlink, kNvlinkBps, kNvlinkPs, 1});
        if (!nic || !is_nic_shared) {
          nic = add(DeviceKind::kNic, "nic", index);
          for (uint32_t wire = 0; wire < wires; ++wire) {
            graph_.AddCable(*nic, leaf, {Tier::kNicLeaf, kNicBps, kWirePs, 1});
          }
        }
        graph_.AddCable(gpu, *nic, {Tier::kHost, 100 * kNicBps, kHostPs, 1});
      }
    }
    NicSettings settings;
    settings.mtu_bytes = kMtu;
    model_.emplace(graph_, settings);
  }
  void Local(uint32_t from, uint32_t to, uint64_t bytes) {
    model_->Add(false, GpuIndex{from}, GpuIndex{to}, GpuIndex{from}, bytes);
  }
  // Adds bytes over the network that the NIC of `by` sends.
  void Remote(uint32_t from, uint32_t to, uint64_t bytes, uint32_t by) {
    model_->Add(true, GpuIndex{from}, GpuIndex{to}, GpuIndex{by}, bytes);
  }
  static int64_t OnWirePs(uint64_t packets) {
    return static_cast<int64_t>(packets * (kMtu + kHeaders)) * 100;
  }

  FabricGraph graph_;
  std::optional<BoundModel> model_;
};

// Half of what an NVLink carries is payload.
TEST_F(BoundModelTest, NvlinksCarryPayloadAtTheirEfficiency) {
  Build();
  Local(0, 1, 10'000);
  EXPECT_EQ(model_->Take(), 20'000 + kLocalPs);
}

TEST_F(BoundModelTest, DirectionsAreSeparateAndWhatSharesOneAddsUp) {
  Build();
  Local(0, 1, 10'000);
  Local(1, 0, 4'000);
  EXPECT_EQ(model_->Take(), 20'000 + kLocalPs);
  Local(0, 1, 10'000);
  Local(0, 1, 4'000);
  EXPECT_EQ(model_->Take(), 28'000 + kLocalPs);
}

TEST_F(BoundModelTest, WhatStaysInAGpuOrIsNothingTakesNoTime) {
  Build();
  Local(0, 0, 1'000'000);
  Local(0, 1, 0);
  Remote(0, 2, 0, 0);
  EXPECT_EQ(model_->Take(), 0);
}

TEST_F(BoundModelTest, APacketOfTheNetworkHasHeaders) {
  Build();
  Remote(0, 2, 10 * kMtu, 0);
  EXPECT_EQ(model_->Take(), OnWirePs(10) + kNetworkPs);
}

// The NIC that receives from two is the bottleneck.
TEST_F(BoundModelTest, TheBusiestNicCountsWhicheverSideItIsOn) {
  Build();
  Remote(0, 2, 10 * kMtu, 0);
  Remote(1, 2, 5 * kMtu, 1);
  EXPECT_EQ(model_->Take(), OnWirePs(15) + kNetworkPs);
}

TEST_F(BoundModelTest, WiresOfANicAddUpAndGpusMayShareIt) {
  Build(2);
  Remote(0, 2, 10 * kMtu, 0);
  EXPECT_EQ(model_->Take(), OnWirePs(5) + kNetworkPs);
  Build(1, true);
  Remote(0, 2, 10 * kMtu, 0);
  Remote(1, 3, 10 * kMtu, 1);
  EXPECT_EQ(model_->Take(), OnWirePs(20) + kNetworkPs);
}

// GPU 1 relays what GPU 0 sends, so NVLink's way comes before the network's.
TEST_F(BoundModelTest, ARelayedTransferTakesBothWays) {
  Build();
  Remote(0, 3, 10 * kMtu, 1);
  EXPECT_EQ(model_->Take(), OnWirePs(10) + kLocalPs + kNetworkPs);
}

// The shortest path's latency counts: whatever else there is may run at the same time.
TEST_F(BoundModelTest, OfSeveralPathsTheShortestLatencyCounts) {
  Build();
  Remote(0, 2, 10 * kMtu, 0);
  Local(0, 1, 1);
  EXPECT_EQ(model_->Take(), OnWirePs(10) + kLocalPs);
}

TEST_F(BoundModelTest, EachBoundIsOfWhatWasAddedSinceTheLast) {
  Build();
  Remote(0, 2, 10 * kMtu, 0);
  model_->Take();
  EXPECT_EQ(model_->Take(), 0);
  Local(0, 1, 500);
  EXPECT_EQ(model_->Take(), 1'000 + kLocalPs);
  Remote(0, 2, kMtu, 0);
  EXPECT_EQ(model_->Take(), OnWirePs(1) + kNetworkPs);
}

}  // namespace
}  // namespace railyard
