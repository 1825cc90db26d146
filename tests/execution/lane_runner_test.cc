// SPDX-License-Identifier: GPL-2.0-only
// The start of slices, without transports: a message has come, or left, when the test says so.
#include "simulator/execution/slices/lane_runner.h"

#include <cstdint>
#include <functional>
#include <utility>
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
using ::testing::Pair;

class LaneRunnerTest : public testing::PartsFixture {
 protected:
  static constexpr uint32_t kBytes = 8'192;
  static constexpr int64_t kSlicePs = 8'192 * kPsPerNs;

  LaneRunnerTest()
      : claims_(*table_, lanes_, wakes_, proxies_),
        messages_({.engine = engine(),
                   .table = *table_,
                   .lanes = lanes_,
                   .clock = clock_,
                   .wakes = wakes_,
                   .proxies = proxies_,
                   .network_sums = network_sums_,
                   .switch_sums = switch_sums_,
                   .load_store = *load_store_,
                   .observer = *this}),
        runner_({.engine = engine(),
                 .table = *table_,
                 .lanes = lanes_,
                 .clock = clock_,
                 .wakes = wakes_,
                 .claims = claims_,
                 .messages = messages_,
                 .load_store = *load_store_,
                 .observer = *this}) {}

  uint32_t Start(const CollectiveSchedule& schedule, uint32_t rank) {
    return runner_.Start(ProgramOf(schedule, rank));
  }
  // The next message of the connection has come, and its receiver sees it at `seen_ps`.
  void Deliver(ConnectionId id, int64_t seen_ps) {
    MessageSlots& slots = table_->slots(id);
    const uint32_t slot = slots.delivered++ % kConnectionSlots;
    slots.sizes[slot] = MarkOf(kBytes);
    slots.time_ps[slot] = seen_ps;
    wakes_.WakeReceiver(slots, seen_ps);
    runner_.RunWoken();
  }
  const MessageSlots& SlotsBetween(uint32_t from, uint32_t to) {
    return table_->slots(Between(from, to));
  }
  // Returns when the CTA was done with the message in a slot of the connection.
  int64_t StagedPs(uint32_t from, uint32_t to, uint32_t slot) {
    return table_->staged(At(Between(from, to))).time_ps[slot];
  }

  void OnChannelFinished(RunningIndex operation, int64_t end_ps,
                         const CriticalPath* /*path*/) override {
    ends_ps_.emplace_back(operation, end_ps);
    if (on_channel_finished_) std::exchange(on_channel_finished_, nullptr)();
  }

  LaneClaims claims_;
  SliceMessages messages_;
  LaneRunner runner_;
  std::vector<std::pair<uint32_t, int64_t>> ends_ps_;  // of channels, with their ranks
  std::function<void()> on_channel_finished_;          // by the next of them
};

TEST_F(LaneRunnerTest, ASendersSlicesFollowOneAnotherAtTheCtasRate) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 8, kBytes, 3);
  EXPECT_EQ(Start(schedule, 0), 1u);
  engine().Run();
  EXPECT_EQ(StagedPs(0, 8, 0), kSlicePs);
  EXPECT_EQ(StagedPs(0, 8, 1), 2 * kSlicePs + kOverheadPs);
  EXPECT_EQ(StagedPs(0, 8, 2), 3 * kSlicePs + 2 * kOverheadPs);
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, 3 * kSlicePs + 2 * kOverheadPs)));
}

// Others than the CTA move the second slice, and the third is three times the work.
TEST_F(LaneRunnerTest, AStepSaysHowMuchWorkItIs) {
  const auto sends = [](uint32_t work_per_mille) {
    Step step = ListedSchedule::Sends(8, kBytes);
    step.work_per_mille = work_per_mille;
    return step;
  };
  const ListedSchedule schedule({}, 1,
                                {{0, {sends(1000), sends(0), sends(3000), sends(1000)}}, {8, {}}});
  Start(schedule, 0);
  engine().Run();
  EXPECT_EQ(StagedPs(0, 8, 0), kSlicePs);
  EXPECT_EQ(StagedPs(0, 8, 1), kSlicePs + kOverheadPs);
  EXPECT_EQ(StagedPs(0, 8, 2), 4 * kSlicePs + 2 * kOverheadPs);
  EXPECT_EQ(StagedPs(0, 8, 3), 5 * kSlicePs + 3 * kOverheadPs);
}

TEST_F(LaneRunnerTest, AProgramRunsOnAllChannelsOfItsRank) {
  const ListedSchedule schedule({}, 2, {{0, {ListedSchedule::Sends(8, kBytes)}}, {8, {}}, {9, {}}});
  EXPECT_EQ(Start(schedule, 0), 2u);
  EXPECT_EQ(Start(schedule, 1), 0u);
  engine().Run();
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, kSlicePs), Pair(0, kSlicePs)));
}

// The second message is there while the CTA still works on the first.
TEST_F(LaneRunnerTest, ASliceStartsWhenItsMessageIsSeenAndTheCtaIsFree) {
  constexpr int64_t kSeenPs = 5 * kPsPerUs;
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kBytes, 2);
  const ConnectionId id = Between(0, 1);
  Start(schedule, 1);
  AtTime(3 * kPsPerUs, [&] { Deliver(id, kSeenPs); });
  AtTime(kSeenPs - 1, [&] { EXPECT_EQ(SlotsBetween(0, 1).consumed, 0); });
  AtTime(kSeenPs + 1, [&] {
    EXPECT_EQ(SlotsBetween(0, 1).consumed, 1);
    Deliver(id, kSeenPs + 1);
  });
  engine().Run();
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(1, kSeenPs + 2 * kSlicePs + kOverheadPs)));
}

TEST_F(LaneRunnerTest, AMessageThatIsThereBeforeItsReceiverIsNotTakenBeforeItIsSeen) {
  constexpr int64_t kSeenPs = 5 * kPsPerUs;
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kBytes, 1);
  Deliver(Between(0, 1), kSeenPs);
  Start(schedule, 1);
  EXPECT_EQ(SlotsBetween(0, 1).consumed, 0);
  engine().Run();
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(1, kSeenPs + kSlicePs)));
}

TEST_F(LaneRunnerTest, ASenderOfFullSlotsWaitsUntilOneIsFree) {
  const ListedSchedule schedule =
      ListedSchedule::OneWay({.in_flight_messages = 2}, 0, 8, kBytes, 3);
  Start(schedule, 0);
  engine().Run();
  EXPECT_EQ(SlotsBetween(0, 8).posted, 2);
  EXPECT_THAT(ends_ps_, IsEmpty());
  constexpr int64_t kFreePs = 100 * kPsPerUs;
  AtTime(kFreePs, [&] {
    MessageSlots& slots = table_->slots(Between(0, 8));
    ++slots.progress.completed;
    wakes_.WakeSender(slots);
    runner_.RunWoken();
  });
  engine().Run();
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, kFreePs + kSlicePs)));
}

// The ports of the sender's GPU cannot take its stores as fast as the CTA makes them.
TEST_F(LaneRunnerTest, AStoreThatHasNotLeftHoldsUpTheNextSlice) {
  constexpr int64_t kLeftPs = 100 * kPsPerUs;
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kBytes, 2);
  const ConnectionId id = Between(0, 1);
  Start(schedule, 0);
  AtTime(50 * kPsPerUs, [&] {
    EXPECT_EQ(SlotsBetween(0, 1).posted, 1);
    runner_.OnInjected(id, kLeftPs);
    runner_.RunWoken();
  });
  AtTime(kLeftPs + kOverheadPs - 1, [&] { EXPECT_EQ(SlotsBetween(0, 1).posted, 1); });
  engine().Run();
  EXPECT_EQ(SlotsBetween(0, 1).posted, 2);
  EXPECT_EQ(SlotsBetween(0, 1).time_ps[1], kLeftPs + kOverheadPs + kSlicePs);
  // Nor does a channel end before its last store has left.
  EXPECT_THAT(ends_ps_, IsEmpty());
  runner_.OnInjected(id, 2 * kLeftPs);
  runner_.RunWoken();
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, 2 * kLeftPs)));
}

TEST_F(LaneRunnerTest, AGpuThatStandsStillBeginsNothing) {
  constexpr int64_t kResumesPs = 100 * kPsPerUs;
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 8, kBytes, 2);
  clock_.SetSpeed(GpuIndex{0}, 0);
  Start(schedule, 0);
  AtTime(kResumesPs / 2, [&] {
    runner_.ResumeGpu(GpuIndex{1});
    EXPECT_EQ(SlotsBetween(0, 8).posted, 0);
  });
  AtTime(kResumesPs, [&] {
    clock_.SetSpeed(GpuIndex{0}, 0.5);
    runner_.ResumeGpu(GpuIndex{0});
  });
  engine().Run();
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, kResumesPs + 2 * (2 * kSlicePs + kOverheadPs))));
}

TEST_F(LaneRunnerTest, LanesOfAnEndedPartBeginNothing) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 8, kBytes, 3);
  Start(schedule, 0);
  AtTime(kSlicePs, [&] {
    lanes_.EndPart(PartIndex{3});
    runner_.ForgetEnded();
  });
  engine().Run();
  EXPECT_EQ(SlotsBetween(0, 8).posted, 1);
  EXPECT_THAT(ends_ps_, IsEmpty());
}

// The observer starts the next program while lanes are examined, so the new lanes are examined
// after them. The two use the same connection one after the other.
TEST_F(LaneRunnerTest, AProgramMayStartWhenAnotherEnds) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 8, kBytes, 1);
  on_channel_finished_ = [&] {
    EXPECT_EQ(Start(schedule, 0), 1u);
    EXPECT_EQ(SlotsBetween(0, 8).posted, 1);
  };
  Start(schedule, 0);
  EXPECT_EQ(SlotsBetween(0, 8).posted, 2);
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, kSlicePs), Pair(0, kSlicePs)));
  EXPECT_TRUE(wakes_.empty());
  EXPECT_EQ(SlotsBetween(0, 8).sender, LaneIndex::kNone);
}

// Rank 0 has the switch add up what ranks 1 and 2 have.
class SumSchedule final : public CollectiveSchedule {
 public:
  uint32_t rank_count() const override { return 3; }
  uint32_t channel_count() const override { return 1; }
  const MessageRule& message_rule() const override { return rule_; }
  uint32_t BatchCount(RankIndex /*rank*/, uint32_t /*channel*/) const override { return 1; }
  uint32_t LaneCount(RankIndex /*rank*/, uint32_t /*channel*/, uint32_t /*batch*/) const override {
    return 1;
  }
  LanePeers PeersOf(const LaneId& /*lane*/) const override {
    constexpr ConnectionUse kOperand = ConnectionUse::kSwitchOperand;
    return {.recv_from = {{RankIndex{1}, kOperand}, {RankIndex{2}, kOperand}}, .send_to = {}};
  }
  uint64_t StepCount(const LaneId& /*lane*/) const override { return 1; }
  Step StepAt(const LaneId& /*lane*/, uint64_t /*step*/) const override {
    return {.recv_from = kAllPeers, .bytes = 8'192, .reduce = true};
  }

 private:
  MessageRule rule_;
};

// The sum comes later than the CTA needs to load it.
TEST_F(LaneRunnerTest, ASumIsAskedForWhenAllOperandsAreThereAndTakenWhenItComes) {
  constexpr int64_t kSeenPs = 5 * kPsPerUs;
  constexpr int64_t kSumPs = 100 * kPsPerUs;
  const SumSchedule schedule;
  const ConnectionId first = Between(1, 0, 0, ConnectionUse::kSwitchOperand);
  const ConnectionId second = Between(2, 0, 0, ConnectionUse::kSwitchOperand);
  Start(schedule, 0);
  Deliver(first, 0);
  EXPECT_EQ(At(first).flow, FlowId::kNone);  // the group is not open: nothing was asked
  AtTime(kSeenPs, [&] {
    Deliver(second, kSeenPs);
    EXPECT_NE(At(first).flow, FlowId::kNone);
    EXPECT_EQ(table_->slots(first).consumed, 0);
  });
  AtTime(kSumPs, [&] {
    runner_.OnSwitchSum(first);
    runner_.RunWoken();
  });
  engine().Run();
  EXPECT_EQ(table_->slots(first).consumed, 1);
  EXPECT_EQ(table_->slots(second).consumed, 1);
  EXPECT_THAT(ends_ps_, ElementsAre(Pair(0, kSumPs)));
}

}  // namespace
}  // namespace railyard
