// SPDX-License-Identifier: GPL-2.0-only
// Flows between two GPUs of flow mode: a message's bytes at the rate of the narrowest link, and the
// latency of the path, beside the same message as packets.
#include "simulator/transport/flow/flow_transport.h"

#include <cstdlib>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/rdma_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kUser = 7;

class FlowTransportTest : public testing::RdmaFixture {
 protected:
  void SetUp() override {
    RdmaFixture::SetUp();
    const NicSettings nic = {.mtu_bytes = kMtu};
    BuildTransports(nic);
    carriers_.emplace(graph_, network());
    flows_.emplace(
        FlowTransport::Parts{
            .graph = graph_, .network = network(), .flows = *carriers_, .routing = *routing_},
        nic, NetIbSettings{});
    flow_ = flows_->Open(Me(kUser), GpuIndex{0}, GpuIndex{1}, 99);
  }
  void TearDown() override {
    flows_.reset();
    carriers_.reset();
    RdmaFixture::TearDown();
  }
  void Post(uint64_t packets) { flows_->Post(flow_, PostedMessage::OfData(packets * kMtu)); }
  static void ExpectNear(int64_t found_ps, int64_t expected_ps, int64_t tolerance_ps) {
    EXPECT_LE(std::abs(found_ps - expected_ps), tolerance_ps)
        << found_ps << ", not " << expected_ps;
  }
  // A message's time at the rate of a wire, with the headers of its packets.
  static constexpr int64_t AtRatePs(int64_t packets) { return kFirstPs + (packets - 1) * kFullPs; }
  // A full packet takes this from memory to memory, beyond its time on one wire.
  static constexpr int64_t kLatencyPs = ReadPs(kFullPs) + kFullPs + kWireDelayPs + kLeafForwardPs +
                                        kFullPs + kWireDelayPs + WritePs(kFullPs) - kFullPs;
  // Rates are rounded down, so a flow may end a picosecond late.
  static constexpr int64_t kRoundingPs = 2;

  std::optional<FlowNetwork> carriers_;
  std::optional<FlowTransport> flows_;
  FlowId flow_;
};

TEST_F(FlowTransportTest, AMessageTakesItsBytesAtTheRateOfTheWireAndTheLatencyOfThePath) {
  Post(8);
  EXPECT_TRUE(flows_->StatusOf(flow_).is_under_way);
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(1));
  EXPECT_EQ(delivered_[0].connection, kUser);
  ExpectNear(delivered_[0].time_ps, AtRatePs(8) + kLatencyPs, kRoundingPs);
  // The ACK leaves the NIC while the last packet is on its way to memory.
  ASSERT_THAT(completed_, SizeIs(1));
  EXPECT_EQ(completed_[0].time_ps - delivered_[0].time_ps, kAckPathPs - WritePs(kFullPs));
  EXPECT_FALSE(flows_->StatusOf(flow_).is_under_way);
  // As packets, the first one's longer header passes each link by itself.
  ExpectNear(delivered_[0].time_ps, MessagePs(8), 3 * (kFirstPs - kFullPs));
}

TEST_F(FlowTransportTest, MessagesOfAFlowLeaveOneAfterTheOther) {
  Post(4);
  Post(2);
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(2));
  ExpectNear(delivered_[0].time_ps, AtRatePs(4) + kLatencyPs, kRoundingPs);
  ExpectNear(delivered_[1].time_ps, AtRatePs(4) + AtRatePs(2) + kLatencyPs, 2 * kRoundingPs);
}

TEST_F(FlowTransportTest, TwoFlowsOfANicHaveHalfItsRateEach) {
  const FlowId other = flows_->Open(Me(kUser + 1), GpuIndex{0}, GpuIndex{1}, 100);
  Post(8);
  flows_->Post(other, PostedMessage::OfData(8 * kMtu));
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(2));
  for (const Reported& reported : delivered_) {
    ExpectNear(reported.time_ps, 2 * AtRatePs(8) + kLatencyPs, 2 * kRoundingPs);
  }
}

TEST_F(FlowTransportTest, AGrantTakesTheTimeOfAClearToSendMessage) {
  flows_->Grant(flow_, true);
  flows_->Grant(flow_, false);  // the sender is not notified
  engine().Run();
  EXPECT_THAT(clear_to_send_,
              ElementsAre(Reported{2 * (kClearToSendPs + kWireDelayPs) + kLeafForwardPs, kUser}));
}

TEST_F(FlowTransportTest, PayloadIsCountedOnEveryLinkAndWhereItIsAskedFor) {
  const FlowId counted = flows_->Open(Me(kUser + 1), GpuIndex{0}, GpuIndex{1}, 100);
  flows_->CountPayload(counted);
  Post(3);
  flows_->Post(counted, PostedMessage::OfData(2 * kMtu));
  engine().Run();
  EXPECT_EQ(flows_->counted_payload_bytes(), 2 * kMtu);
  for (const LinkId link : flows_->LinksOf(flow_)) {
    EXPECT_EQ(network().CountersOfLink(link).payload_bytes, 5 * kMtu);
  }
  EXPECT_THAT(flows_->LinksOf(flow_), SizeIs(4));
  for (const LinkShare& share : flows_->LinkSharesOf(flow_)) EXPECT_EQ(share.share, 1.0);
}

TEST_F(FlowTransportTest, AFlowAtHalfTheRateTakesTwiceAsLong) {
  network().SetLinkRate(out_, 200'000'000'000);
  Post(8);
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(1));
  ExpectNear(delivered_[0].time_ps, 2 * AtRatePs(8) + kLatencyPs, kFullPs);
}

TEST_F(FlowTransportTest, AClosedFlowSendsAndGrantsNothing) {
  flows_->Close(flow_);
  Post(1);
  flows_->Grant(flow_, true);
  engine().Run();
  EXPECT_THAT(delivered_, IsEmpty());
  EXPECT_THAT(clear_to_send_, IsEmpty());
}

}  // namespace
}  // namespace railyard
