// SPDX-License-Identifier: GPL-2.0-only
// The effect of slices on their connections, without a LaneRunner: the test moves slices, and
// stores are complete when it says so.
#include "simulator/execution/slices/slice_messages.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/event_order/event_order.h"
#include "tests/execution/listed_schedule.h"
#include "tests/execution/parts_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::ListedSchedule;
using ::testing::Pair;

class SliceMessagesTest : public testing::PartsFixture {
 protected:
  static constexpr uint32_t kBytes = 1'000;
  static constexpr int64_t kDonePs = kPsPerUs;

  SliceMessagesTest()
      : messages_({.engine = engine(),
                   .table = *table_,
                   .lanes = lanes_,
                   .clock = clock_,
                   .wakes = wakes_,
                   .proxies = proxies_,
                   .network_sums = network_sums_,
                   .switch_sums = switch_sums_,
                   .load_store = *load_store_,
                   .observer = *this}) {
    engine().Register(event_order::kChannel, {.name = "slices"}, &SliceMessagesTest::HandleChannel,
                      this);
  }

  // The lane of a rank that sends over the connection.
  Lane& Sender(const CollectiveSchedule& schedule, uint32_t rank, ConnectionId id) {
    Lane& lane = lanes_.lane(OpenLane(schedule, rank));
    lane.send_connection = id;
    lane.sends_over_nvlink = !At(id).is_on_network();
    lane.send_flow = At(id).flow;
    return lane;
  }
  Lane& Receiver(const CollectiveSchedule& schedule, uint32_t rank, ConnectionId id) {
    const LaneIndex index = OpenLane(schedule, rank);
    lanes_.lane(index).receive_connection = id;
    table_->slots(id).receiver = index;
    return lanes_.lane(index);
  }
  // The next message of the connection has come.
  void Deliver(ConnectionId id, uint32_t bytes) {
    MessageSlots& slots = table_->slots(id);
    slots.sizes[slots.delivered++ % kConnectionSlots] = MarkOf(bytes);
  }

  void OnPayloadTaken(CollectiveIndex collective, uint64_t bytes) override {
    payload_.emplace_back(collective, bytes);
  }

  SliceMessages messages_;
  std::vector<std::pair<int64_t, uint32_t>> woken_later_;  // times and lanes
  std::vector<std::pair<uint32_t, uint64_t>> payload_;

 private:
  static void HandleChannel(void* self, uint32_t lane) {
    static_cast<SliceMessagesTest*>(self)->woken_later_.emplace_back(engine().NowPs(), lane);
  }
};

// The first store is complete while the CTA still works, the second one long after.
TEST_F(SliceMessagesTest, AStoredMessageIsSeenAStepAfterItsFlag) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kBytes, 2);
  const ConnectionId id = Between(0, 1);
  Lane& lane = Sender(schedule, 0, id);
  MessageSlots& slots = table_->slots(id);
  slots.receiver = LaneIndex{7};
  slots.receiver_waits = true;
  messages_.Move(lane, kDonePs);
  EXPECT_EQ(lane.free_ps, kDonePs);
  EXPECT_EQ(lane.awaits, 1);
  EXPECT_EQ(slots.posted, 1);
  EXPECT_EQ(slots.delivered, 0);
  messages_.OnStored(id);
  EXPECT_EQ(slots.delivered, 1);
  EXPECT_EQ(slots.sizes[0], MarkOf(kBytes));
  const int64_t seen_ps = kDonePs + FlagPs() + kNvlinkStepPs;
  EXPECT_EQ(slots.time_ps[0], seen_ps);
  messages_.Move(lane, 2 * kDonePs);
  constexpr int64_t kLatePs = 50 * kPsPerUs;
  AtTime(kLatePs, [&] { messages_.OnStored(id); });
  engine().Run();
  EXPECT_EQ(slots.time_ps[1], kLatePs + kNvlinkStepPs);
  EXPECT_THAT(woken_later_, ElementsAre(Pair(seen_ps, 7)));
  EXPECT_THAT(Woken(), IsEmpty());
}

// With LL and LL128 the data contains its flags.
TEST_F(SliceMessagesTest, LinesNeedNoFlagBehindThem) {
  const MessageRule lines = {.line_payload_bytes = 8, .line_wire_bytes = 16};
  const ListedSchedule schedule = ListedSchedule::OneWay(lines, 0, 1, kBytes, 1);
  costs_ = AddCosts(lines);
  const ConnectionId id = Between(0, 1);
  messages_.Move(Sender(schedule, 0, id), kDonePs);
  messages_.OnStored(id);
  EXPECT_EQ(table_->slots(id).time_ps[0], kDonePs + kNvlinkStepPs);
}

// A chunk of one slice with bytes and two without: they are flags, which do not overtake the data.
TEST_F(SliceMessagesTest, SlicesWithoutBytesFollowTheSliceBefore) {
  const ListedSchedule schedule =
      ListedSchedule::OneWay({.slices_per_chunk = 3, .slice_bytes_min = kBytes}, 0, 1, kBytes, 1);
  const ConnectionId id = Between(0, 1);
  const LaneIndex index = lanes_.IndexOf(Sender(schedule, 0, id));
  const MessageSlots& slots = table_->slots(id);
  for (const int64_t done_ps : {kDonePs, kDonePs, 3 * kDonePs}) {
    messages_.Move(lanes_.lane(index), done_ps);
    lanes_.NextSlice(index);
  }
  EXPECT_EQ(lanes_.lane(index).awaits, 1);
  EXPECT_EQ(slots.posted, 3);
  EXPECT_EQ(slots.delivered, 0);
  messages_.OnStored(id);
  EXPECT_EQ(slots.delivered, 3);
  EXPECT_EQ(slots.time_ps[0], kDonePs + FlagPs() + kNvlinkStepPs);
  EXPECT_EQ(slots.time_ps[1], slots.time_ps[0]);
  EXPECT_EQ(slots.time_ps[2], 3 * kDonePs + FlagPs() + kNvlinkStepPs);
}

TEST_F(SliceMessagesTest, ASliceWithoutBytesNeedsNoStoreIfNoneIsUnderWay) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, 0, 1);
  const ConnectionId id = Between(0, 1);
  Lane& lane = Sender(schedule, 0, id);
  messages_.Move(lane, kDonePs);
  EXPECT_EQ(lane.awaits, 0);
  EXPECT_EQ(table_->slots(id).delivered, 1);
  EXPECT_EQ(table_->slots(id).time_ps[0], kDonePs + FlagPs() + kNvlinkStepPs);
}

TEST_F(SliceMessagesTest, ATakenMessageFreesItsSlotAFlagLater) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kBytes, 1);
  const ConnectionId id = Between(0, 1);
  Lane& lane = Receiver(schedule, 1, id);
  MessageSlots& slots = table_->slots(id);
  slots.sender = LaneIndex{9};
  slots.sender_waits = true;
  Deliver(id, kBytes);
  messages_.Move(lane, kDonePs);
  EXPECT_EQ(slots.consumed, 1);
  EXPECT_EQ(table_->taken_bytes(id), kBytes);
  EXPECT_EQ(slots.time_ps[0], kDonePs + FlagPs());
  EXPECT_THAT(Woken(), ElementsAre(9));
}

// Eight of ten messages are granted in advance; the ninth is when the CTA has read the first.
TEST_F(SliceMessagesTest, OverTheNetworkATakenMessageGrantsAnother) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 8, kBytes, 10);
  const ConnectionId id = Between(0, 8);
  Lane& lane = Receiver(schedule, 8, id);
  proxies_.Grant(lanes_.IndexOf(lane), id);
  Deliver(id, kBytes);
  messages_.Move(lane, kDonePs);
  const MessageSlots& slots = table_->slots(id);
  AtTime(kDonePs - 1, [&] { EXPECT_EQ(slots.progress.granted, 8); });
  engine().Run();
  EXPECT_EQ(slots.progress.granted, 9);
}

TEST_F(SliceMessagesTest, OverTheNetworkASliceIsStagedForItsProxy) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 8, kBytes, 1);
  const ConnectionId id = Between(0, 8);
  Lane& lane = Sender(schedule, 0, id);
  messages_.Move(lane, kDonePs);
  EXPECT_EQ(lane.awaits, 0);
  EXPECT_EQ(table_->staged(At(id)).bytes[0], kBytes);
  EXPECT_EQ(table_->staged(At(id)).time_ps[0], kDonePs);
  const NetworkProgress& progress = table_->slots(id).progress;
  constexpr int64_t kSeenPs = kDonePs + kNetworkStepPs / 2;
  AtTime(kSeenPs - 1, [&] { EXPECT_EQ(progress.staged, 0); });
  engine().Run();
  EXPECT_EQ(engine().NowPs(), kSeenPs);
  EXPECT_EQ(progress.staged, 1);
}

TEST_F(SliceMessagesTest, PayloadOfWatchedCollectivesIsReported) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kBytes, 2);
  const ConnectionId id = Between(0, 1);
  Lane& lane = Receiver(schedule, 1, id);
  table_->connection(id).collective = CollectiveIndex{4};
  Deliver(id, kBytes);
  messages_.Move(lane, kDonePs);
  EXPECT_THAT(payload_, IsEmpty());
  messages_.WatchPayload(CollectiveIndex{4});
  Deliver(id, kBytes);
  messages_.Move(lane, kDonePs);
  EXPECT_THAT(payload_, ElementsAre(Pair(4, kBytes)));
}

TEST_F(SliceMessagesTest, ASliceThatWasNotSentIsAProgramError) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, kBytes, 1);
  const ConnectionId id = Between(0, 1);
  Lane& lane = Receiver(schedule, 1, id);
  Deliver(id, kBytes + 1);
  EXPECT_DEATH(messages_.Move(lane, kDonePs), "not the one that was sent");
}

}  // namespace
}  // namespace railyard
