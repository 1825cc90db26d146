// SPDX-License-Identifier: GPL-2.0-only
// Stores and loads over PCIe, against sums of links, pipelines and bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/transport_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kNs = 1'000;

// gpu0 -- switch -- host bridge -- gpu1: links of 1 B a ns and 10 ns, pipelines of 5 and 7 ns.
class PcieFlowsTest : public testing::TransportFixture {
 protected:
  PcieFlowsTest() {
    const DeviceId gpu0 = AddInServer(DeviceKind::kGpu, 0, 0);
    const DeviceId gpu1 = AddInServer(DeviceKind::kGpu, 0, 1);
    switch_ = AddInServer(DeviceKind::kPcieSwitch, 0, 0, 5 * kNs);
    bridge_ = AddInServer(DeviceKind::kHostBridge, 0, 1, 7 * kNs);
    const CableSpec cable = {
        .tier = Tier::kHost, .rate_bps = 8'000'000'000, .propagation_ps = 10 * kNs};
    graph_.AddCable(gpu0, switch_, cable);
    graph_.AddCable(switch_, bridge_, cable);
    graph_.AddCable(bridge_, gpu1, cable);
    BuildTransports();
  }
  std::vector<int64_t> DeliveredNs() const {
    std::vector<int64_t> times;
    for (const Reported& reported : delivered_) times.push_back(reported.time_ps / kNs);
    return times;
  }
  DeviceId switch_{0};
  DeviceId bridge_{0};
};

TEST_F(PcieFlowsTest, StoresCrossTheTreeToAGpu) {
  PostNvlink(load_store_->Open(Me(1), GpuIndex{0}, GpuIndex{1}), 500);
  engine().Run();
  EXPECT_THAT(DeliveredNs(), ElementsAre(3 * (500 + 10) + 5 + 7));
}

TEST_F(PcieFlowsTest, StoresIntoAHostsMemoryEndThere) {
  PostNvlink(load_store_->OpenHostStore(Me(1), GpuIndex{0}, GpuIndex{1}), 500);
  engine().Run();
  EXPECT_THAT(DeliveredNs(), ElementsAre(2 * (500 + 10) + 5 + 7));
  EXPECT_EQ(network().InFlightBytes(), 0u);
}

// 24 bytes ask for up to 512, of a packet of 4,096 together.
TEST_F(PcieFlowsTest, ALoadIsARequestAndItsAnswer) {
  PostNvlink(load_store_->OpenHostLoad(Me(1), GpuIndex{0}), 500);
  engine().Run();
  EXPECT_THAT(DeliveredNs(), ElementsAre(2 * (24 + 10) + 5 + 7 + 2 * (500 + 10) + 5));
  const LinkCounters up = network().CountersOfLink(*graph_.FindLink(graph_.gpus()[0], switch_));
  EXPECT_EQ(up.header_bytes, 24u);
  EXPECT_EQ(up.payload_bytes, 0u);
  PostNvlink(load_store_->OpenHostLoad(Me(2), GpuIndex{0}), 10'000);
  engine().Run();
  EXPECT_EQ(network().CountersOfLink(*graph_.FindLink(graph_.gpus()[0], switch_)).header_bytes,
            24u + 24 * (8 + 8 + 4));
  EXPECT_EQ(network().CountersOfLink(*graph_.FindLink(switch_, graph_.gpus()[0])).payload_bytes,
            10'500u);
}

// They do not wait for each other, but that requests share the way up: they are a twentieth of it,
// and a burst of four packets may be ahead of one on both links.
TEST_F(PcieFlowsTest, LoadsAndStoresGoOnAtATime) {
  PostNvlink(load_store_->OpenHostStore(Me(1), GpuIndex{0}, GpuIndex{0}), 100'000);
  PostNvlink(load_store_->OpenHostLoad(Me(2), GpuIndex{0}), 100'000);
  engine().Run();
  ASSERT_EQ(delivered_.size(), 2u);
  for (const int64_t time_ns : DeliveredNs()) {
    EXPECT_GE(time_ns, 100'000);
    EXPECT_LE(time_ns, 105'000 + 2 * 4 * 4'096);
  }
}

TEST_F(PcieFlowsTest, ALostPacketIsTheEnd) {
  PostNvlink(load_store_->OpenHostLoad(Me(1), GpuIndex{0}), 100'000);
  Down(*graph_.FindLink(bridge_, switch_), 50'000 * kNs, kNeverPs);
  engine().Run();
  ASSERT_FALSE(errors_.empty());
  EXPECT_EQ(errors_[0].connection, 1u);
  EXPECT_EQ(errors_[0].why, "a PCIe link lost a packet; the GPU has fallen off the bus (Xid 79)");
}

}  // namespace
}  // namespace railyard
