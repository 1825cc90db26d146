// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/lane_table.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/execution/connection_fixture.h"
#include "tests/execution/listed_schedule.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using testing::ListedSchedule;

class LaneTableTest : public testing::ConnectionFixture {
 protected:
  LaneTableTest() : clock_(16) { clock_.AddCosts({.slice_overhead_ps = 700}, {}); }

  LaneIndex OpenLane(const CollectiveSchedule& schedule, uint32_t rank, int64_t now_ps = 0) {
    const ChannelIndex channel =
        lanes().OpenChannel({.rank = RankIndex{rank}, .schedule = &schedule}, 0, now_ps);
    EXPECT_EQ(lanes().NextBatch(channel), 1u);
    return lanes().OpenLane(channel, 0);
  }
  LaneTable& lanes() { return lanes_.has_value() ? *lanes_ : lanes_.emplace(*table_, clock_); }

  CtaClock clock_;
  std::optional<LaneTable> lanes_;
};

// A chunk of 1,000 B in four slices of at least 300 B, then one of 200 B, of which three are empty.
TEST_F(LaneTableTest, AStepIsTakenSliceBySlice) {
  const ListedSchedule schedule(
      {.slices_per_chunk = 4, .slice_bytes_min = 300}, 1,
      {{0, {ListedSchedule::Sends(1, 1'000), ListedSchedule::Sends(1, 200)}}});
  const LaneIndex id = OpenLane(schedule, 0);
  std::vector<uint32_t> slices;
  for (; lanes().lane(id).steps_left > 0; lanes().NextSlice(id)) {
    EXPECT_TRUE(lanes().lane(id).sends);
    EXPECT_FALSE(lanes().lane(id).receives);
    slices.push_back(lanes().lane(id).slice_bytes);
  }
  EXPECT_THAT(slices, ElementsAre(300, 300, 300, 100, 200, 0, 0, 0));
}

TEST_F(LaneTableTest, TheFirstSliceWaitsForNoOverhead) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, 1'000, 1);
  const LaneIndex id = OpenLane(schedule, 0, 10'000);
  EXPECT_EQ(lanes().lane(id).free_ps + clock_.OverheadPs(lanes().lane(id).cta), 10'000);
}

// Three chunks of two slices are six messages; what the lane only sends is granted to nobody.
TEST_F(LaneTableTest, EveryMessageToReceiveIsGrantedOnce) {
  std::vector<Step> steps(3, ListedSchedule::Receives(0, 1'000));
  steps.insert(steps.begin() + 1, ListedSchedule::Sends(2, 1'000));
  const ListedSchedule schedule({.slices_per_chunk = 2}, 1, {{1, steps}});
  const LaneIndex id = OpenLane(schedule, 1);
  const ConnectionId connection = Between(0, 1);
  uint32_t granted = 0;
  const auto grant_up_to = [&](uint32_t limit) {
    lanes().GrantMessages(
        id, connection, [&] { return granted < limit; }, [&] { ++granted; });
  };
  grant_up_to(4);
  EXPECT_EQ(granted, 4u);
  grant_up_to(100);
  EXPECT_EQ(granted, 6u);
}

// Two parts of a CTA move 1 B/ns alone and 0.75 beside the other. A slice keeps the end it has when
// it begins: the other part's next one makes up for it.
TEST_F(LaneTableTest, PartsOfACtaShareItsLimit) {
  constexpr int64_t kAlonePs = 8'000 * kPsPerNs;
  const uint8_t costs =
      clock_.AddCosts({.warp_rate_bps = 4'000'000'000, .parts_rate_bps = 12'000'000'000}, {});
  const testing::ExchangeSchedule schedule(8'000, 3);
  const ChannelIndex channel =
      lanes().OpenChannel({.rank = RankIndex{0}, .costs = costs, .schedule = &schedule}, 0, 0);
  ASSERT_EQ(lanes().NextBatch(channel), 2u);
  const LaneIndex receive = lanes().OpenLane(channel, 0);
  const LaneIndex send = lanes().OpenLane(channel, 1);
  EXPECT_TRUE(lanes().lane(receive).is_part);
  const auto begin = [&](LaneIndex id, int64_t start_ps) {
    const int64_t slice_ps = lanes().PartSlicePs(id, start_ps);
    lanes().BeginPartSlice(id, start_ps, start_ps + slice_ps);
    return slice_ps;
  };
  EXPECT_EQ(begin(send, 0), kAlonePs);
  // Half of the send is left: a quarter of this half is lost to the receive, and to the next send.
  EXPECT_EQ(begin(receive, kAlonePs / 2), kAlonePs + kAlonePs / 8);
  EXPECT_EQ(begin(send, 2 * kAlonePs), kAlonePs + kAlonePs / 8);
  // A lead that was made up for is forgotten, and a part that has ended leaves everything to the
  // other.
  EXPECT_FALSE(lanes().CloseLane(receive));
  EXPECT_EQ(begin(send, 4 * kAlonePs), kAlonePs);
}

TEST_F(LaneTableTest, AChannelEndsWithItsLastLaneAndItsRecordIsUsedAgain) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, 1'000, 1);
  const LaneIndex id = OpenLane(schedule, 0);
  const ChannelIndex channel = lanes().position(id).channel;
  lanes().lane(id).free_ps = 5'000;
  EXPECT_TRUE(lanes().CloseLane(id));
  EXPECT_EQ(lanes().channel(channel).end_ps, 5'000);
  ++lanes().channel(channel).batch;
  EXPECT_EQ(lanes().NextBatch(channel), 0u);
  lanes().CloseChannel(channel);
  EXPECT_EQ(OpenLane(schedule, 1), id);
  EXPECT_EQ(lanes().position(id).channel, channel);
  EXPECT_EQ(lanes().GpuOf(id), 1u);
}

TEST_F(LaneTableTest, LanesOfAPartAreEndedWhereTheyAre) {
  const ListedSchedule schedule = ListedSchedule::OneWay({}, 0, 1, 1'000, 1);
  const LaneIndex id = OpenLane(schedule, 0);
  lanes().EndPart(PartIndex{2});
  EXPECT_TRUE(lanes().lane(id).in_use);
  lanes().EndPart(PartIndex{3});
  EXPECT_FALSE(lanes().lane(id).in_use);
}

}  // namespace
}  // namespace railyard
