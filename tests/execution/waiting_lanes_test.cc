// SPDX-License-Identifier: GPL-2.0-only
// Explanations of lanes that wait: the test opens lanes and sets by hand what they have claimed and
// what they wait for.
#include "simulator/execution/slices/waiting_lanes.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/execution/listed_schedule.h"
#include "tests/execution/parts_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using testing::ListedSchedule;
using testing::RoundSchedule;
using ::testing::SizeIs;

// All steps of a lane are alike, so it loads them as one row.
class RowSchedule final : public CollectiveSchedule {
 public:
  explicit RowSchedule(uint64_t steps) : steps_(steps) {}

  uint32_t rank_count() const override { return 2; }
  uint32_t channel_count() const override { return 1; }
  const MessageRule& message_rule() const override { return rule_; }
  uint32_t BatchCount(RankIndex /*rank*/, uint32_t /*channel*/) const override { return 1; }
  uint32_t LaneCount(RankIndex /*rank*/, uint32_t /*channel*/, uint32_t /*batch*/) const override {
    return 1;
  }
  LanePeers PeersOf(const LaneId& /*lane*/) const override {
    return {.recv_from = {}, .send_to = {{.rank = RankIndex{1}}}};
  }
  uint64_t StepCount(const LaneId& /*lane*/) const override { return steps_; }
  Step StepAt(const LaneId& /*lane*/, uint64_t /*step*/) const override {
    return ListedSchedule::Sends(1, 1'000);
  }
  uint64_t AlikeFrom(const LaneId& /*lane*/, uint64_t step) const override { return steps_ - step; }

 private:
  uint64_t steps_;
  MessageRule rule_{.slices_per_chunk = 2};
};

class WaitingLanesTest : public testing::PartsFixture {
 protected:
  static constexpr uint64_t kBytes = 1'000;

  // A rank in the middle passes on what it receives, and has claimed both of its connections.
  LaneIndex OpenMiddle(const CollectiveSchedule& schedule, uint32_t rank, ConnectionId from,
                       ConnectionId to) {
    const LaneIndex id = OpenLane(schedule, rank);
    Lane& lane = lanes_.lane(id);
    lane.has_claimed = true;
    lane.receive_connection = from;
    lane.send_connection = to;
    return id;
  }
  std::vector<WaitingLane> Waiting() const { return WaitingLanes(lanes_, *table_); }

  const ListedSchedule pass_on_{{}, 1, {{1, {{.recv_from = 0, .send_to = 9, .bytes = kBytes}}}}};
};

TEST_F(WaitingLanesTest, ALaneThatWaitsForNothingIsNotListed) {
  OpenMiddle(pass_on_, 1, Between(0, 1), Between(1, 9));
  EXPECT_THAT(Waiting(), IsEmpty());
}

// Rank 1's operation has the rank's number. The connection does not leave the server.
TEST_F(WaitingLanesTest, ALaneWithoutDataWaitsForItsSender) {
  const ConnectionId from = Between(0, 1);
  OpenMiddle(pass_on_, 1, from, Between(1, 9));
  table_->slots(from).receiver_waits = true;
  const std::vector<WaitingLane> waiting = Waiting();
  ASSERT_THAT(waiting, SizeIs(1));
  EXPECT_EQ(waiting[0].operation, 1u);
  EXPECT_EQ(waiting[0].rank, 1u);
  EXPECT_EQ(waiting[0].peer, 0u);
  EXPECT_TRUE(waiting[0].for_data);
  EXPECT_EQ(waiting[0].transport, "") << "NVLink has no queue pair";
}

TEST_F(WaitingLanesTest, ALaneWithoutASlotWaitsForItsReceiverAndTellsOfItsFlow) {
  const ConnectionId to = Between(1, 9);
  OpenMiddle(pass_on_, 1, Between(0, 1), to);
  table_->slots(to).sender_waits = true;
  EXPECT_FALSE(Waiting().at(0).is_under_way);
  At(to).transport->Post(At(to).flow, PostedMessage::OfData(kBytes));
  const std::vector<WaitingLane> waiting = Waiting();
  ASSERT_THAT(waiting, SizeIs(1));
  EXPECT_EQ(waiting[0].peer, 9u);
  EXPECT_FALSE(waiting[0].for_data);
  EXPECT_EQ(waiting[0].transport, "a flow of fixed latency");
  EXPECT_TRUE(waiting[0].is_under_way);
}

// The other side of each connection may wait too: that is not this lane's reason.
TEST_F(WaitingLanesTest, WhatOthersWaitForIsNoReason) {
  const ConnectionId from = Between(0, 1);
  const ConnectionId to = Between(1, 9);
  OpenMiddle(pass_on_, 1, from, to);
  table_->slots(from).sender_waits = true;
  table_->slots(to).receiver_waits = true;
  EXPECT_THAT(Waiting(), IsEmpty());
}

TEST_F(WaitingLanesTest, ALaneThatOwnsNoConnectionWaitsForThatToItsReceiver) {
  OpenLane(pass_on_, 1);
  const std::vector<WaitingLane> waiting = Waiting();
  ASSERT_THAT(waiting, SizeIs(1));
  EXPECT_EQ(waiting[0].peer, 9u);
  EXPECT_FALSE(waiting[0].for_data);
  EXPECT_EQ(waiting[0].transport, "");
}

// Rank 0 gathers from three ranks, and has the first one's message already.
TEST_F(WaitingLanesTest, OfSeveralPeersTheOneWithoutAMessageIsNamed) {
  const RoundSchedule gather({.others = 3, .chunk_bytes = kBytes, .rounds = 1, .gathers = true});
  Lane& lane = lanes_.lane(OpenLane(gather, 0));
  lane.has_claimed = true;
  LaneConnections& peers = lanes_.connections(lane);
  for (uint32_t i = 0; i < 3; ++i) peers.receive_connections[i] = Between(i + 1, 0);
  table_->slots(Between(2, 0)).receiver_waits = true;
  table_->slots(Between(3, 0)).receiver_waits = true;
  EXPECT_THAT(Waiting(), ElementsAre(Field(&WaitingLane::peer, RankIndex{2})));
}

TEST_F(WaitingLanesTest, ALaneThatHasEndedWaitsForNobody) {
  const LaneIndex id = OpenLane(pass_on_, 1);
  lanes_.CloseLane(id);
  EXPECT_THAT(Waiting(), IsEmpty());
}

// --- Progress ------------------------------------------------------------------------------------

TEST_F(WaitingLanesTest, WithoutLanesNoStepIsDone) { EXPECT_EQ(ShareOfSteps(lanes_), 0.0); }

// A step is done with the last of its two slices, also in a row of steps that was loaded at once.
TEST_F(WaitingLanesTest, StepsAreCountedWhenTheirLastSliceIsDone) {
  const RowSchedule schedule(4);
  const LaneIndex id = OpenLane(schedule, 0);
  std::vector<double> shares;
  for (int slice = 0; slice < 8; ++slice) {
    shares.push_back(ShareOfSteps(lanes_));
    lanes_.NextSlice(id);
  }
  EXPECT_THAT(shares, ElementsAre(0, 0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75));
  EXPECT_EQ(ShareOfSteps(lanes_), 1.0);
}

// One of two steps and none of six are an eighth. Lanes that have ended do not count.
TEST_F(WaitingLanesTest, TheShareIsThatOfAllStepsOfLanesThatRun) {
  const ListedSchedule two = ListedSchedule::OneWay({}, 0, 1, kBytes, 2);
  const ListedSchedule six = ListedSchedule::OneWay({}, 0, 1, kBytes, 6);
  const LaneIndex first = OpenLane(two, 0);
  OpenLane(six, 0);
  lanes_.NextSlice(first);
  EXPECT_EQ(ShareOfSteps(lanes_), 0.125);
  lanes_.CloseLane(first);
  EXPECT_EQ(ShareOfSteps(lanes_), 0.0);
}

}  // namespace
}  // namespace railyard
