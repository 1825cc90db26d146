// SPDX-License-Identifier: GPL-2.0-only
// Two NICs that are set up differently: each queue pair goes by its sender's time-out, retries and
// window, and by its receiver's ACKs.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/transport/nic/nic.h"
#include "tests/transport/rdma_fixture.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class RdmaNicsTest : public RdmaFixture {
 protected:
  // Queue pair 7 is from gpu0 to gpu1, whose NIC differs; 8 is the other way.
  void Connect(NicSettings nic, NicSettings other) {
    nic.mtu_bytes = other.mtu_bytes = kMtu;
    BuildTransports(nic,
                    {{.nics = {graph_.FindDevice("server1/nic0").value()}, .settings = other}});
    there_ = Open(7, GpuIndex{0}, GpuIndex{1}, 99);
    back_ = Open(8, GpuIndex{1}, GpuIndex{0}, 98);
  }
  // Hops of ACKs while a message of so many packets goes that way.
  uint64_t AckHops(FlowId queue_pair, uint64_t packets) {
    const uint64_t before = network().counters().control_hops;
    rdma_->Post(queue_pair, PostedMessage::OfData(packets * kMtu));
    engine().Run();
    return network().counters().control_hops - before;
  }

  FlowId there_;
  FlowId back_;
};

// Local ACK timeout 4.096 us x 2^N, and as many more as there are retries (InfiniBand Architecture
// Specification 1.7, 9.7.5.1.3). The last of nic1's ends before the second of nic0's.
TEST_F(RdmaNicsTest, ATimeOutIsThatOfTheSender) {
  Connect({.ib_timeout = 10, .ib_retry_cnt = 1}, {.ib_timeout = 8, .ib_retry_cnt = 3});
  Down(out_, 0, kNeverPs);
  Down(ack_out_, 0, kNeverPs);
  rdma_->Post(there_, PostedMessage::OfData(kMtu));
  rdma_->Post(back_, PostedMessage::OfData(kMtu));
  engine().Run();
  ASSERT_THAT(errors_, SizeIs(2));
  EXPECT_EQ(errors_[0].connection, 8u);
  EXPECT_EQ(errors_[0].time_ps, 4 * (int64_t{4'096'000} << 8));
  EXPECT_EQ(errors_[1].connection, 7u);
  EXPECT_EQ(errors_[1].time_ps, 2 * (int64_t{4'096'000} << 10));
}

// An ACK crosses two wires.
TEST_F(RdmaNicsTest, AcksAreThoseOfTheReceiver) {
  Connect({.ack_every_packets = 8}, {.ack_every_packets = 1});
  EXPECT_EQ(AckHops(there_, 8), 2u * 8);
  EXPECT_EQ(AckHops(back_, 8), 2u * 1);
}

// With a window of one packet each waits for the ACK of the one before.
TEST_F(RdmaNicsTest, AWindowIsThatOfTheSender) {
  Connect({}, {.window_bytes = kMtu});
  rdma_->Post(back_, PostedMessage::OfData(3 * kMtu));
  engine().Run();
  const int64_t first_ps = RunPs(kFirstPs, 1) + kAckPathPs;
  const int64_t full_ps = RunPs(kFullPs, 1) + kAckPathPs;
  EXPECT_THAT(completed_, ElementsAre(Reported{first_ps + 2 * full_ps, 8}));
  const int64_t begin_ps = engine().NowPs();
  rdma_->Post(there_, PostedMessage::OfData(3 * kMtu));
  engine().Run();
  ASSERT_THAT(completed_, SizeIs(2));
  EXPECT_EQ(completed_[1].time_ps - begin_ps, RunPs(kFirstPs, 3) + kAckPathPs);
}

// An ns-3 object stands for each NIC, and reports on its own queue pairs.
TEST_F(RdmaNicsTest, EveryNicIsAnObjectWithItsOwnSettings) {
  Connect({.ib_timeout = 10, .ib_retry_cnt = 0}, {.ib_timeout = 8, .ib_retry_cnt = 0});
  const DeviceId nic0 = graph_.FindDevice("server0/nic0").value();
  const DeviceId nic1 = graph_.FindDevice("server1/nic0").value();
  EXPECT_EQ(rdma_->nic_kinds().nics()[nic0]->settings().ib_timeout, 10u);
  EXPECT_EQ(rdma_->nic_kinds().nics()[nic1]->settings().ib_timeout, 8u);
  EXPECT_EQ(rdma_->nic_kinds().nics()[leaf_], nullptr);
  std::vector<uint32_t> timeouts;
  rdma_->nic_kinds().nics()[nic1]->TraceConnectWithoutContext(
      "Timeout", ns3::Callback<void, const NicTimeout&>(
                     [&](const NicTimeout& timeout) { timeouts.push_back(timeout.queue_pair); }));
  Down(out_, 0, kNeverPs);
  Down(ack_out_, 0, kNeverPs);
  rdma_->Post(there_, PostedMessage::OfData(kMtu));
  rdma_->Post(back_, PostedMessage::OfData(kMtu));
  engine().Run();
  EXPECT_THAT(timeouts, ElementsAre(back_));
  EXPECT_EQ(rdma_->counters().timeouts, 2u);
}

}  // namespace
}  // namespace railyard::testing
