// SPDX-License-Identifier: GPL-2.0-only
// Wakes alone: the test hands them a connection's slots, and sees which lanes they list and which
// they schedule.
#include "simulator/execution/lanes/lane_wakes.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/execution/connection_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class LaneWakesTest : public testing::ConnectionFixture {
 protected:
  LaneWakesTest() : wakes_(engine()) {
    engine().Register(
        event_order::kChannel, {.name = "slices"},
        [](void* self, uint32_t lane) { static_cast<LaneWakesTest*>(self)->Note(lane); }, this);
  }

  void Note(uint32_t lane) { started_.emplace_back(engine().NowPs(), lane); }
  std::vector<uint32_t> Woken() {
    std::vector<uint32_t> woken;
    wakes_.TakeAll([&](LaneIndex lane) { woken.push_back(lane); });
    return woken;
  }

  LaneWakes wakes_;
  std::vector<std::pair<int64_t, uint32_t>> started_;  // by events: time and lane
};

TEST_F(LaneWakesTest, WhoDoesNotWaitIsNotWoken) {
  MessageSlots slots;
  slots.sender = LaneIndex{3};
  slots.receiver = LaneIndex{4};
  wakes_.WakeReceiver(slots, 0);
  wakes_.WakeSender(slots);
  EXPECT_TRUE(wakes_.empty());
}

TEST_F(LaneWakesTest, AMessageThatIsSeenNowWakesAtOnceAndOnce) {
  MessageSlots slots;
  slots.receiver_waits = true;
  slots.sender = LaneIndex{3};
  slots.receiver = LaneIndex{4};
  wakes_.WakeReceiver(slots, engine().NowPs());
  EXPECT_FALSE(slots.receiver_waits);
  wakes_.WakeReceiver(slots, engine().NowPs());
  EXPECT_THAT(Woken(), ElementsAre(4));
  EXPECT_TRUE(wakes_.empty());
}

// The later of both counts: when the message is seen, and when the CTA has done its last slice.
TEST_F(LaneWakesTest, ALaneStartsWhenItSeesTheMessageAndIsFree) {
  MessageSlots seen_late;
  seen_late.receiver_waits = true;
  seen_late.receiver = LaneIndex{4};
  seen_late.receiver_free_ps = 500;
  MessageSlots free_late;
  free_late.receiver_waits = true;
  free_late.receiver = LaneIndex{5};
  free_late.receiver_free_ps = 900;
  free_late.receiver_tie = 1;
  wakes_.WakeReceiver(seen_late, 700);
  wakes_.WakeReceiver(free_late, 700);
  EXPECT_TRUE(wakes_.empty());
  engine().Run();
  EXPECT_THAT(started_, ElementsAre(Pair(700, 4), Pair(900, 5)));
}

TEST_F(LaneWakesTest, ASenderThatWaitsForASlotIsWoken) {
  MessageSlots slots;
  slots.sender_waits = true;
  slots.sender = LaneIndex{3};
  slots.receiver = LaneIndex{4};
  wakes_.WakeSender(slots);
  EXPECT_FALSE(slots.sender_waits);
  EXPECT_THAT(Woken(), ElementsAre(3));
}

TEST_F(LaneWakesTest, WhatIsWokenMeanwhileIsTakenToo) {
  wakes_.Wake(LaneIndex{1});
  std::vector<uint32_t> taken;
  wakes_.TakeAll([&](LaneIndex lane) {
    taken.push_back(lane);
    if (lane == LaneIndex{1}) wakes_.Wake(LaneIndex{2});
  });
  EXPECT_THAT(taken, ElementsAre(1, 2));
  EXPECT_THAT(Woken(), IsEmpty());
}

}  // namespace
}  // namespace railyard
