// SPDX-License-Identifier: GPL-2.0-only
// Checks counts that were made by hand, without the network that would have made them.
#include "simulator/fabric/conservation.h"

#include <gtest/gtest.h>

#include "simulator/event_order/event_order.h"
#include "tests/fabric/objects_fixture.h"

namespace railyard {
namespace {

class ConservationTest : public testing::ObjectsFixture {
 protected:
  void SetUp() override {
    ObjectsFixture::SetUp();
    engine().Register(
        event_order::kArrival, {.name = "arrivals"}, [](void* /*self*/, uint32_t /*packet*/) {},
        this);
  }
  void Check() const {
    CheckConservation({.tables = tables_,
                       .accounts = accounts_,
                       .buffers = buffers_,
                       .states = states_,
                       .delays = delays_,
                       .reduction = reduction_,
                       .part = part_});
  }
  // A packet of 1,000 B came by `from_left_` and waits for, or is on, `to_right_`.
  void SendOn() {
    ++tables_.links[from_left_].sent;
    ++tables_.links[from_left_].packets;
    const PacketId index = MakePacketFrom(FirstChannelOf(from_left_), to_right_, 1'000);
    Packet& packet = tables_.packets[index];
    accounts_.Enter(packet);
    ++tables_.links[to_right_].sent;
    tables_.SendInShortForm(index, packet, tables_.links[to_right_]);
  }
};

TEST_F(ConservationTest, PacketsOnLinksAreThoseThatWereSent) {
  Check();
  SendOn();
  Check();
  ++tables_.links[to_right_].sent;
  EXPECT_DEATH(Check(), "2 were put on it, 0 arrived, 0 were lost, 1 are there");
}

TEST_F(ConservationTest, ALostPacketIsCountedOnItsLink) {
  ++tables_.links[from_left_].sent;
  EXPECT_DEATH(Check(), "1 were put on it, 0 arrived, 0 were lost, 0 are there");
  states_.CountDropped(from_left_);
  Check();
}

TEST_F(ConservationTest, TheEndsOfALinkOnTheBorderAreCountedInTwoProcesses) {
  part_.SetBorder({from_left_}, {to_left_});
  ++tables_.links[from_left_].sent;
  Check();
}

TEST_F(ConservationTest, ASwitchSendsOnWhatComes) {
  ++tables_.links[from_left_].sent;
  ++tables_.links[from_left_].packets;
  EXPECT_DEATH(Check(), "packets at leaf: 1 came, 0 .* were made, 0 were sent on, 0 dropped");
}

TEST_F(ConservationTest, AccountsHoldTheBytesOfTheirPackets) {
  SendOn();
  ++accounts_[FirstChannelOf(from_left_)].bytes;
  EXPECT_DEATH(Check(), "holds 1001 B, its packets 1000 B");
}

TEST_F(ConservationTest, PoolsHoldTheBytesOfTheirAccounts) {
  SendOn();
  ++accounts_.pool(kNoBuffer).bytes;
  EXPECT_DEATH(Check(), "holds 1001 B, its ports' accounts 1000 B");
}

TEST_F(ConservationTest, TheWholeIsCheckedByItsParts) {
  part_.Absorb({}, {}, 0);
  ++tables_.links[from_left_].sent;
  EXPECT_DEATH(Check(), "1 were put on it, 0 arrived, 0 are there");
}

}  // namespace
}  // namespace railyard
