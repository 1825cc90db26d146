// SPDX-License-Identifier: GPL-2.0-only
// Expected volumes are the closed forms of ring collectives.
#include "workloads/nccl_planner.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"

namespace railyard {
namespace {

using ::railyard::testing::Filled;
using ::railyard::testing::Nodes;

JobCollective Collective(CollectiveKind kind, uint64_t count, Datatype datatype,
                         uint32_t root = 0) {
  JobCollective collective;
  collective.kind = kind;
  collective.count = count;
  collective.datatype = datatype;
  collective.root = root;
  return collective;
}

template <typename Visitor>
void ForEachSend(const CollectiveSchedule& schedule, const Visitor& visit) {
  for (uint32_t rank = 0; rank < schedule.rank_count(); ++rank) {
    for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
      if (schedule.BatchCount(rank, channel) == 0) continue;
      const LaneId lane{rank, channel, 0, 0};
      for (uint64_t i = 0; i < schedule.StepCount(lane); ++i) {
        const Step step = schedule.StepAt(lane, i);
        if (step.send_to != kNoPeer) visit(lane, step);
      }
    }
  }
}

std::vector<uint64_t> SentBytes(const CollectiveSchedule& schedule) {
  std::vector<uint64_t> sent(schedule.rank_count());
  ForEachSend(schedule,
              [&](const LaneId& lane, const Step& step) { sent[lane.rank] += step.bytes; });
  return sent;
}

TEST(NcclPlanner, SendsTwoTimesNMinusOneOverNOfAnAllReduce) {
  const NcclPlanner planner(Nodes(4, 8), {});
  const auto schedule =
      planner.PlanRing(Collective(CollectiveKind::kAllReduce, 16 << 20, Datatype::kFloat32));
  for (const uint64_t bytes : SentBytes(*schedule)) EXPECT_EQ(bytes, 2 * 31 * (64u << 20) / 32);
}

TEST(NcclPlanner, SendsEveryByteOfAnAllReduceTwoTimesNMinusOneTimes) {
  for (const uint32_t ranks : {2u, 3u, 8u, 13u, 24u}) {
    const NcclPlanner planner(Filled(ranks), {});
    for (const uint64_t count : {1u, 7u, 1'000u, 333'333u}) {
      uint64_t sum = 0;
      for (const uint64_t bytes : SentBytes(*planner.PlanRing(
               Collective(CollectiveKind::kAllReduce, count, Datatype::kBfloat16)))) {
        sum += bytes;
      }
      EXPECT_EQ(sum, 2 * (ranks - 1) * count * 2);
    }
  }
}

TEST(NcclPlanner, SendsNMinusOneBlocksOfAllGatherAndReduceScatter) {
  const NcclPlanner planner(Nodes(3, 8), {});
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    const auto schedule = planner.PlanRing(Collective(kind, 77'777, Datatype::kFloat32));
    for (const uint64_t bytes : SentBytes(*schedule)) EXPECT_EQ(bytes, 23u * 4 * 77'777);
  }
}

TEST(NcclPlanner, SendsAllOfABroadcastOrReduceFromAllButOne) {
  const NcclPlanner planner(Nodes(1, 8), {});
  const auto broadcast = SentBytes(
      *planner.PlanRing(Collective(CollectiveKind::kBroadcast, 99'999, Datatype::kInt8, 3)));
  const auto reduce =
      SentBytes(*planner.PlanRing(Collective(CollectiveKind::kReduce, 99'999, Datatype::kInt8, 3)));
  for (uint32_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(broadcast[rank], rank == 2 ? 0u : 99'999u);  // the root's predecessor is last
    EXPECT_EQ(reduce[rank], rank == 3 ? 0u : 99'999u);
  }
}

TEST(NcclPlanner, LoadsAllNicsOfAnAllReduceEqually) {
  const CommunicatorLayout layout = Nodes(4, 8);
  const NcclPlanner planner(layout, {});
  const auto schedule =
      planner.PlanRing(Collective(CollectiveKind::kAllReduce, 64 << 20, Datatype::kBfloat16));
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> out;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> in;
  ForEachSend(*schedule, [&](const LaneId& lane, const Step& step) {
    const uint32_t to = static_cast<uint32_t>(step.send_to);
    const ConnectionRoute route = planner.RouteOf(lane.channel, lane.rank, to, false);
    if (!route.network) return;
    out[{layout.ranks[lane.rank].node, route.sending_local_index}] += step.bytes;
    in[{layout.ranks[to].node, layout.ranks[to].local_index}] += step.bytes;
  });
  ASSERT_EQ(out.size(), 32u);
  ASSERT_EQ(in.size(), 32u);
  // Two of sixteen channels leave by each NIC.
  for (const auto& [nic, bytes] : out) EXPECT_EQ(bytes, 62u * (16u << 20) / 32);
  for (const auto& [nic, bytes] : in) EXPECT_EQ(bytes, 62u * (16u << 20) / 32);
}

TEST(NcclPlanner, PostsRingSimpleInTwoSlicesWithFourInFlight) {
  const NcclPlanner planner(Nodes(1, 8), {});
  const MessageRule reduce =
      planner.PlanRing(Collective(CollectiveKind::kAllReduce, 1, Datatype::kFloat32))
          ->message_rule();
  EXPECT_EQ(reduce.slices_per_chunk, 2u);
  EXPECT_EQ(reduce.slice_bytes_min, 32u << 10);
  EXPECT_EQ(reduce.slice_grain_bytes, 64u);  // 16 elements
  EXPECT_EQ(reduce.in_flight_messages, 4u);
  const MessageRule gather =
      planner.PlanRing(Collective(CollectiveKind::kAllGather, 1, Datatype::kFloat32))
          ->message_rule();
  EXPECT_EQ(gather.slice_grain_bytes, 16u);  // copied as bytes
}

TEST(NcclPlanner, PostsBroadcastAndReduceInSingleSlotsWithEightInFlight) {
  const NcclPlanner planner(Nodes(1, 8), {});
  for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
    const auto schedule = planner.PlanRing(Collective(kind, 64 << 20, Datatype::kInt8));
    EXPECT_EQ(schedule->message_rule().slices_per_chunk, 1u);
    EXPECT_EQ(schedule->message_rule().in_flight_messages, 8u);
    EXPECT_EQ(schedule->StepAt({1, 0, 0, 0}, 0).bytes, 512u << 10);
  }
}

TEST(NcclPlanner, ScalesChunksWithBuffsize) {
  NcclSettings settings;
  settings.buffsize_bytes = 8 << 20;
  const NcclPlanner planner(Nodes(1, 8), settings);
  const auto schedule =
      planner.PlanRing(Collective(CollectiveKind::kAllGather, 1 << 30, Datatype::kInt8));
  EXPECT_EQ(schedule->StepAt({0, 0, 0, 0}, 0).bytes, 4u << 20);  // four slots of 1 MiB
  EXPECT_EQ(schedule->message_rule().slice_bytes_min, 64u << 10);
}

TEST(NcclPlanner, HasNoStepsForOneRank) {
  const NcclPlanner planner(Nodes(1, 1), {});
  EXPECT_EQ(planner.PlanRing(Collective(CollectiveKind::kAllReduce, 1000, Datatype::kInt8))
                ->channel_count(),
            0u);
}

TEST(RouteOf, StaysOnNvlinkInsideAServer) {
  const NcclPlanner planner(Nodes(2, 8), {});
  EXPECT_FALSE(planner.RouteOf(0, 0, 7, false).network);
  EXPECT_FALSE(planner.RouteOf(0, 8, 11, true).network);
}

TEST(RouteOf, RelaysRingsThroughTheRailsGpuWithCrossNic0) {
  NcclSettings settings;
  settings.cross_nic = 0;
  const NcclPlanner planner(Nodes(2, 8), settings);
  const ConnectionRoute route = planner.RouteOf(0, 1, 8, false);  // ring 0 leaves by GPU 1
  EXPECT_TRUE(route.network);
  EXPECT_EQ(route.sending_local_index, 0u);
  settings.pxn_disable = true;
  EXPECT_EQ(NcclPlanner(Nodes(2, 8), settings).RouteOf(0, 1, 8, false).sending_local_index, 1u);
}

TEST(RouteOf, SendsPointToPointOnTheDestinationsRail) {
  const NcclPlanner planner(Nodes(2, 8), {});
  const ConnectionRoute route = planner.RouteOf(0, 2, 13, true);
  EXPECT_TRUE(route.network);
  EXPECT_EQ(route.sending_local_index, 5u);
  EXPECT_EQ(planner.RouteOf(0, 2, 10, true).sending_local_index, 2u);
}

TEST(RouteOf, SendsPointToPointByItsOwnNicWithoutPxn) {
  NcclSettings settings;
  settings.pxn_disable = true;
  EXPECT_EQ(NcclPlanner(Nodes(2, 8), settings).RouteOf(0, 2, 13, true).sending_local_index, 2u);
}

TEST(RouteOf, DoesNotRelayThroughAGpuOutsideTheCommunicator) {
  const NcclPlanner planner(Nodes({2, 8}), {});
  EXPECT_EQ(planner.RouteOf(0, 0, 7, true).sending_local_index, 0u);  // nobody at index 5 there
  EXPECT_EQ(planner.RouteOf(0, 0, 3, true).sending_local_index, 1u);
}

}  // namespace
}  // namespace railyard
