// SPDX-License-Identifier: GPL-2.0-only
// NICs with two wires, NICs that several GPUs share, turns of more than one packet.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/transport/rdma/rdma_transport.h"
#include "tests/transport/transport_fixture.h"

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::SizeIs;

constexpr int64_t kBytePs = 20;  // 400 Gb/s
constexpr uint64_t kMtu = 1'024;
constexpr int64_t kFullPs = (kMtu + 82) * kBytePs;
constexpr int64_t kHeaderPs = 16 * kBytePs;  // RETH

// gpu0 - nic0 = {leaf0, leaf1} = nic1 - gpu1: two wires of 400 Gb/s at each NIC, PCIe of 1.6 Tb/s.
class RdmaTwoPortsTest : public testing::TransportFixture {
 protected:
  void SetUp() override {
    for (int32_t server = 0; server < 2; ++server) {
      gpus_.push_back(AddInServer(DeviceKind::kGpu, server, 0));
      nics_.push_back(AddInServer(DeviceKind::kNic, server, 0));
      graph_.AddCable(gpus_.back(), nics_.back(), {Tier::kHost, HostBps(), 0, 1});
    }
    for (const std::string name : {"leaf0", "leaf1"}) {
      const DeviceId leaf = AddSwitch(name);
      for (const DeviceId nic : nics_) {
        graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 400'000'000'000, 0, 1});
      }
    }
    BuildTransports({.mtu_bytes = kMtu, .ib_timeout = 5});
  }
  virtual uint64_t HostBps() const { return 1'600'000'000'000; }
  // A queue pair whose packets take `leaf`.
  FlowId OpenOver(uint32_t connection, const std::string& leaf) {
    for (uint64_t entropy = 0;; ++entropy) {
      const FlowId queue_pair = Open(connection, GpuIndex{0}, GpuIndex{1}, entropy);
      if (LeafOf(queue_pair) == leaf) return queue_pair;
    }
  }
  std::string LeafOf(FlowId queue_pair) {
    const LinkId wire = rdma_->LinksOf(queue_pair)[1];
    return graph_.device(graph_.link_target(wire)).name;
  }
  // From memory into memory, if nothing is in the way: PCIe at a quarter of a wire's time per byte.
  static int64_t AlonePs(int64_t packets) {
    const int64_t first_ps = kFullPs + kHeaderPs;
    return first_ps / 4 + first_ps + (packets - 1) * kFullPs + first_ps + kFullPs / 4;
  }

  std::vector<DeviceId> gpus_;
  std::vector<DeviceId> nics_;
};

TEST_F(RdmaTwoPortsTest, QueuePairsOnDifferentWiresDoNotShareThem) {
  const FlowId left = OpenOver(7, "leaf0");
  const FlowId right = OpenOver(8, "leaf1");
  rdma_->Post(left, PostedMessage::OfData(100 * kMtu));
  rdma_->Post(right, PostedMessage::OfData(100 * kMtu));
  engine().Run();
  // But for PCIe, where a packet may wait for one of the other wire.
  ASSERT_THAT(delivered_, SizeIs(2));
  for (const Reported& reported : delivered_) {
    EXPECT_GE(reported.time_ps, AlonePs(100));
    EXPECT_LE(reported.time_ps, AlonePs(100) + kFullPs);
  }
}

// PCIe of 600 Gb/s, less than the two wires.
class RdmaSharedPcieTest : public RdmaTwoPortsTest {
 protected:
  uint64_t HostBps() const override { return 600'000'000'000; }
};

TEST_F(RdmaSharedPcieTest, TwoWiresShareWhatPcieBrings) {
  constexpr int64_t kPackets = 300;
  rdma_->Post(OpenOver(7, "leaf0"), PostedMessage::OfData(kPackets * kMtu));
  rdma_->Post(OpenOver(8, "leaf1"), PostedMessage::OfData(kPackets * kMtu));
  engine().Run();
  // All packets of both cross PCIe one after the other, then a wire, a wire and PCIe again.
  constexpr int64_t kOverPciePs = kFullPs * 400 / 600;
  ASSERT_THAT(delivered_, SizeIs(2));
  EXPECT_GE(delivered_.back().time_ps, 2 * kPackets * kOverPciePs + 2 * kFullPs + kOverPciePs);
  EXPECT_LE(delivered_.back().time_ps, 2 * kPackets * kOverPciePs + 10 * kFullPs);
  // Neither is starved.
  EXPECT_LE(delivered_.back().time_ps - delivered_.front().time_ps, 10 * kFullPs);
}

TEST_F(RdmaTwoPortsTest, QueuePairsOnOneWireShareIt) {
  const FlowId one = OpenOver(7, "leaf0");
  const FlowId other = OpenOver(8, "leaf0");
  rdma_->Post(one, PostedMessage::OfData(100 * kMtu));
  rdma_->Post(other, PostedMessage::OfData(100 * kMtu));
  engine().Run();
  EXPECT_THAT(delivered_, Each(Field(&Reported::time_ps, ::testing::Ge(AlonePs(199)))));
}

TEST_F(RdmaTwoPortsTest, AQueuePairMovesToTheOtherWireWithItsRoute) {
  const FlowId queue_pair = OpenOver(7, "leaf0");
  rdma_->Post(queue_pair, PostedMessage::OfData(100 * kMtu));
  const LinkId wire = Link("server0/nic0", "leaf0");
  // 50 packets have been read; the rest goes the other way, at once.
  At(kHeaderPs + 49 * kFullPs + 1, [&] {
    routing_->SetLinkUp(wire, false);
    rdma_->OnRoutesChanged();
  });
  engine().Run();
  EXPECT_EQ(LeafOf(queue_pair), "leaf1");
  EXPECT_EQ(network().CountersOfLink(wire).packets, 50u);
  EXPECT_EQ(network().CountersOfLink(Link("server0/nic0", "leaf1")).packets, 50u);
  EXPECT_THAT(delivered_, SizeIs(1));
  EXPECT_EQ(rdma_->counters().retransmitted_packets, 0u);
}

// gpu0 and gpu1 of one server share nic0.
class RdmaSharedNicTest : public testing::TransportFixture {
 protected:
  void SetUp() override {
    const DeviceId leaf = AddSwitch("leaf0");
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
      graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 400'000'000'000, 0, 1});
      for (int32_t gpu = 0; gpu < 2; ++gpu) {
        graph_.AddCable(AddInServer(DeviceKind::kGpu, server, gpu), nic,
                        {Tier::kHost, 500'000'000'000, 0, 1});
      }
    }
  }
};

TEST_F(RdmaSharedNicTest, GpusThatShareANicShareItsWire) {
  BuildTransports({.mtu_bytes = kMtu});
  rdma_->Post(Open(0, GpuIndex{0}, GpuIndex{2}, 1), PostedMessage::OfData(100 * kMtu));
  rdma_->Post(Open(1, GpuIndex{1}, GpuIndex{3}, 2), PostedMessage::OfData(100 * kMtu));
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(2));
  // 200 packets on the wire; the first of the two is done a packet earlier.
  EXPECT_GE(delivered_[0].time_ps, 199 * kFullPs);
  EXPECT_LE(delivered_[1].time_ps, 204 * kFullPs);
}

TEST_F(RdmaSharedNicTest, ATurnIsAsManyPacketsAsTheBurst) {
  BuildTransports({.mtu_bytes = kMtu, .burst_packets = 5});
  const FlowId one = Open(0, GpuIndex{0}, GpuIndex{2}, 1);
  const FlowId other = Open(1, GpuIndex{1}, GpuIndex{3}, 2);
  std::vector<uint32_t> order;
  network().SetLossFilter(Link("server0/nic0", "leaf0"), [&](const Packet& packet) {
    if (packet.kind == PacketKind::kNetworkData) order.push_back(packet.flow / 2);
    return false;
  });
  rdma_->Post(one, PostedMessage::OfData(10 * kMtu));
  rdma_->Post(other, PostedMessage::OfData(10 * kMtu));
  engine().Run();
  const std::vector<uint32_t> expected = {one,   one,   one,   one,   one,   other, other,
                                          other, other, other, one,   one,   one,   one,
                                          one,   other, other, other, other, other};
  EXPECT_EQ(order, expected);
}

}  // namespace
}  // namespace railyard
