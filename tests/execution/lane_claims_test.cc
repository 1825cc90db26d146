// SPDX-License-Identifier: GPL-2.0-only
// Claims alone: the test opens lanes, and sees which are woken.
#include "simulator/execution/slices/lane_claims.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/execution/listed_schedule.h"
#include "tests/execution/parts_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::ListedSchedule;

class LaneClaimsTest : public testing::PartsFixture {
 protected:
  LaneClaimsTest() : claims_(*table_, lanes_, wakes_, proxies_) {}

  // Rank 1 passes on what it receives from rank 0.
  static ListedSchedule PassOn() {
    return {{}, 1, {{1, {{.recv_from = 0, .send_to = 2, .bytes = 1'000}}}}};
  }

  LaneClaims claims_;
};

TEST_F(LaneClaimsTest, ASideHasOneOwnerUntilItIsReleased) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, 1'000, 1);
  const LaneIndex first = OpenLane(schedule, 0);
  const LaneIndex second = OpenLane(schedule, 0);
  const LaneIndex third = OpenLane(schedule, 0);
  EXPECT_TRUE(claims_.Claim(first));
  EXPECT_FALSE(claims_.Claim(second));
  EXPECT_FALSE(claims_.Claim(third));
  const MessageSlots& slots = table_->slots(Between(0, 1));
  EXPECT_EQ(slots.sender, first);
  EXPECT_TRUE(lanes_.lane(first).has_claimed);
  EXPECT_FALSE(lanes_.lane(second).has_claimed);
  EXPECT_THAT(Woken(), IsEmpty());
  claims_.Release(first);
  EXPECT_EQ(slots.sender, LaneIndex::kNone);
  EXPECT_THAT(Woken(), ElementsAre(second, third));  // in the order in which they claimed it
  EXPECT_TRUE(claims_.Claim(second));
  EXPECT_FALSE(claims_.Claim(third));
  claims_.Release(second);
  EXPECT_THAT(Woken(), ElementsAre(third));
}

TEST_F(LaneClaimsTest, TheTwoSidesOfAConnectionHaveOwnersOfTheirOwn) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, 1'000, 1);
  const LaneIndex sender = OpenLane(schedule, 0);
  const LaneIndex receiver = OpenLane(schedule, 1);
  EXPECT_TRUE(claims_.Claim(sender));
  EXPECT_TRUE(claims_.Claim(receiver));
  const ConnectionId id = Between(0, 1);
  EXPECT_EQ(lanes_.lane(sender).send_connection, id);
  EXPECT_EQ(lanes_.lane(receiver).receive_connection, id);
  claims_.Release(sender);
  EXPECT_EQ(table_->slots(id).sender, LaneIndex::kNone);
  EXPECT_EQ(table_->slots(id).receiver, receiver);
}

// Another lane still sends to rank 2 when the second one claims both of its connections.
TEST_F(LaneClaimsTest, ARefusedLaneKeepsTheSidesItHas) {
  const ListedSchedule sends({}, 1, {{1, {ListedSchedule::Sends(2, 1'000)}}});
  const ListedSchedule passes_on = PassOn();
  const LaneIndex first = OpenLane(sends, 1);
  const LaneIndex second = OpenLane(passes_on, 1);
  const LaneIndex third = OpenLane(passes_on, 1);
  EXPECT_TRUE(claims_.Claim(first));
  EXPECT_FALSE(claims_.Claim(second));
  EXPECT_EQ(table_->slots(Between(0, 1)).receiver, second);
  EXPECT_FALSE(claims_.Claim(third));
  EXPECT_EQ(table_->slots(Between(0, 1)).receiver, second);
  claims_.Release(first);
  EXPECT_THAT(Woken(), ElementsAre(second));  // the third waits for the second
  EXPECT_TRUE(claims_.Claim(second));
  EXPECT_EQ(table_->slots(Between(1, 2)).sender, second);
}

// Six messages are to come, for which there are four credits; then two, for which there are eight.
TEST_F(LaneClaimsTest, MessagesOverTheNetworkAreGrantedWithTheClaim) {
  uint32_t granted = 0;
  sink_.on_granted = [&](ConnectionId) { ++granted; };
  const ListedSchedule six = ListedSchedule::OneWay({.in_flight_messages = 4}, 0, 8, 1'000, 6);
  const ListedSchedule two = ListedSchedule::OneWay({}, 1, 9, 1'000, 2);
  EXPECT_TRUE(claims_.Claim(OpenLane(six, 8)));
  EXPECT_TRUE(claims_.Claim(OpenLane(two, 9)));
  EXPECT_EQ(table_->slots(Between(0, 8)).progress.granted, 4);
  EXPECT_EQ(table_->slots(Between(1, 9)).progress.granted, 2);
  engine().Run();
  EXPECT_EQ(granted, 4u + 2u);
}

TEST_F(LaneClaimsTest, ALaneThatClaimsAgainGrantsNothingTwice) {
  const ListedSchedule sends({}, 1, {{8, {ListedSchedule::Sends(9, 1'000)}}});
  const ListedSchedule passes_on(
      {}, 1, {{8, std::vector<Step>(20, {.recv_from = 0, .send_to = 9, .bytes = 1'000})}});
  const LaneIndex first = OpenLane(sends, 8);
  const LaneIndex second = OpenLane(passes_on, 8);
  EXPECT_TRUE(claims_.Claim(first));
  EXPECT_FALSE(claims_.Claim(second));
  EXPECT_EQ(table_->slots(Between(0, 8)).progress.granted, 8);
  // One message has been taken meanwhile, and its own event grants the next.
  ++table_->slots(Between(0, 8)).consumed;
  claims_.Release(first);
  EXPECT_TRUE(claims_.Claim(second));
  EXPECT_EQ(table_->slots(Between(0, 8)).progress.granted, 8);
}

// Its transport has to know what the sender's program tolerates.
TEST_F(LaneClaimsTest, TheSenderSetsTheLossTolerance) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 8, 1'000, 1);
  RankProgram sends = ProgramOf(schedule, 0);
  sends.collective = CollectiveIndex{5};
  sends.loss_tolerance_ppm = 700;
  RankProgram receives = ProgramOf(schedule, 8);
  receives.collective = CollectiveIndex{5};
  receives.loss_tolerance_ppm = 900;
  EXPECT_TRUE(claims_.Claim(OpenLane(sends)));
  EXPECT_TRUE(claims_.Claim(OpenLane(receives)));
  EXPECT_EQ(At(Between(0, 8)).loss_tolerance_ppm, 700u);
  EXPECT_EQ(At(Between(0, 8)).collective, 5u);
}

TEST_F(LaneClaimsTest, NoLaneWaitsForAClosedConnection) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, 1'000, 1);
  const LaneIndex first = OpenLane(schedule, 0);
  const LaneIndex second = OpenLane(schedule, 0);
  EXPECT_TRUE(claims_.Claim(first));
  EXPECT_FALSE(claims_.Claim(second));
  claims_.Forget(table_->Close(PartIndex{3}));
  claims_.Release(first);
  EXPECT_THAT(Woken(), IsEmpty());
  EXPECT_TRUE(claims_.Claim(second));  // over a connection of its own
}

}  // namespace
}  // namespace railyard
