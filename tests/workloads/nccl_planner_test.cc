// SPDX-License-Identifier: GPL-2.0-only
// Expected volumes are the closed forms of ring collectives.
#include "workloads/nccl/nccl_planner.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"

namespace railyard {
namespace {

using ::railyard::testing::Filled;
using ::railyard::testing::Nodes;
using ::railyard::testing::PlanRing;

JobCollective Collective(CollectiveKind kind, uint64_t count, Datatype datatype,
                         RankIndex root = {}) {
  JobCollective collective;
  collective.kind = kind;
  collective.count = count;
  collective.datatype = datatype;
  collective.root = root;
  return collective;
}

template <typename Visitor>
void ForEachSend(const CollectiveSchedule& schedule, const Visitor& visit) {
  for (RankIndex rank{0}; rank < schedule.rank_count(); ++rank) {
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
      PlanRing(planner, Collective(CollectiveKind::kAllReduce, 16 << 20, Datatype::kFloat32));
  for (const uint64_t bytes : SentBytes(*schedule)) EXPECT_EQ(bytes, 2 * 31 * (64u << 20) / 32);
}

TEST(NcclPlanner, SendsEveryByteOfAnAllReduceTwoTimesNMinusOneTimes) {
  for (const uint32_t ranks : {2u, 3u, 8u, 13u, 24u}) {
    const NcclPlanner planner(Filled(ranks), {});
    for (const uint64_t count : {1u, 7u, 1'000u, 333'333u}) {
      uint64_t sum = 0;
      for (const uint64_t bytes : SentBytes(*PlanRing(
               planner, Collective(CollectiveKind::kAllReduce, count, Datatype::kBfloat16)))) {
        sum += bytes;
      }
      EXPECT_EQ(sum, uint64_t{2} * (ranks - 1) * count * 2);
    }
  }
}

TEST(NcclPlanner, SendsNMinusOneBlocksOfAllGatherAndReduceScatter) {
  const NcclPlanner planner(Nodes(3, 8), {});
  for (const CollectiveKind kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    const auto schedule = PlanRing(planner, Collective(kind, 77'777, Datatype::kFloat32));
    for (const uint64_t bytes : SentBytes(*schedule)) EXPECT_EQ(bytes, 23u * 4 * 77'777);
  }
}

TEST(NcclPlanner, SendsAllOfABroadcastOrReduceFromAllButOne) {
  const NcclPlanner planner(Nodes(1, 8), {});
  const auto broadcast = SentBytes(*PlanRing(
      planner, Collective(CollectiveKind::kBroadcast, 99'999, Datatype::kInt8, RankIndex{3})));
  const auto reduce = SentBytes(*PlanRing(
      planner, Collective(CollectiveKind::kReduce, 99'999, Datatype::kInt8, RankIndex{3})));
  for (RankIndex rank{0}; rank < 8; ++rank) {
    EXPECT_EQ(broadcast[rank], rank == 2 ? 0u : 99'999u);  // the root's predecessor is last
    EXPECT_EQ(reduce[rank], rank == 3 ? 0u : 99'999u);
  }
}

TEST(NcclPlanner, LoadsAllNicsOfAnAllReduceEqually) {
  const CommunicatorLayout layout = Nodes(4, 8);
  const NcclPlanner planner(layout, {});
  const auto schedule =
      PlanRing(planner, Collective(CollectiveKind::kAllReduce, 64 << 20, Datatype::kBfloat16));
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> out;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> in;
  ForEachSend(*schedule, [&](const LaneId& lane, const Step& step) {
    const RankIndex to{step.send_to};
    const ConnectionRoute route =
        planner.RouteOf(lane.channel, lane.rank, to, ConnectionUse::kRing);
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
      PlanRing(planner, Collective(CollectiveKind::kAllReduce, 1, Datatype::kFloat32))
          ->message_rule();
  EXPECT_EQ(reduce.slices_per_chunk, 2u);
  EXPECT_EQ(reduce.slice_bytes_min, 32u << 10);
  EXPECT_EQ(reduce.slice_grain_bytes, 64u);  // 16 elements
  EXPECT_EQ(reduce.in_flight_messages, 4u);
  const MessageRule gather =
      PlanRing(planner, Collective(CollectiveKind::kAllGather, 1, Datatype::kFloat32))
          ->message_rule();
  EXPECT_EQ(gather.slice_grain_bytes, 16u);  // copied as bytes
}

TEST(NcclPlanner, PostsBroadcastAndReduceInSingleSlotsWithEightInFlight) {
  const NcclPlanner planner(Nodes(1, 8), {});
  for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
    const auto schedule = PlanRing(planner, Collective(kind, 64 << 20, Datatype::kInt8));
    EXPECT_EQ(schedule->message_rule().slices_per_chunk, 1u);
    EXPECT_EQ(schedule->message_rule().in_flight_messages, 8u);
    EXPECT_EQ(schedule->StepAt({RankIndex{1}, 0, 0, 0}, 0).bytes, 512u << 10);
  }
}

TEST(NcclPlanner, ScalesChunksWithBuffsize) {
  NcclSettings settings;
  settings.buffsize_bytes = 8 << 20;
  const NcclPlanner planner(Nodes(1, 8), settings);
  const auto schedule =
      PlanRing(planner, Collective(CollectiveKind::kAllGather, 1 << 30, Datatype::kInt8));
  EXPECT_EQ(schedule->StepAt({RankIndex{0}, 0, 0, 0}, 0).bytes, 4u << 20);  // four slots of 1 MiB
  EXPECT_EQ(schedule->message_rule().slice_bytes_min, 64u << 10);
}

TEST(NcclPlanner, HasNoStepsForOneRank) {
  const NcclPlanner planner(Nodes(1, 1), {});
  EXPECT_EQ(PlanRing(planner, Collective(CollectiveKind::kAllReduce, 1000, Datatype::kInt8))
                ->channel_count(),
            0u);
}

TEST(RouteOf, StaysOnNvlinkInsideAServer) {
  const NcclPlanner planner(Nodes(2, 8), {});
  EXPECT_FALSE(planner.RouteOf(0, RankIndex{0}, RankIndex{7}, ConnectionUse::kRing).network);
  EXPECT_FALSE(
      planner.RouteOf(0, RankIndex{8}, RankIndex{11}, ConnectionUse::kPointToPoint).network);
}

TEST(RouteOf, RelaysRingsThroughTheRailsGpuWithCrossNic0) {
  NcclSettings settings;
  settings.cross_nic = 0;
  const NcclPlanner planner(Nodes(2, 8), settings);
  const ConnectionRoute route = planner.RouteOf(0, RankIndex{1}, RankIndex{8},
                                                ConnectionUse::kRing);  // ring 0 leaves by GPU 1
  EXPECT_TRUE(route.network);
  EXPECT_EQ(route.sending_local_index, 0u);
  settings.pxn_disable = true;
  EXPECT_EQ(NcclPlanner(Nodes(2, 8), settings)
                .RouteOf(0, RankIndex{1}, RankIndex{8}, ConnectionUse::kRing)
                .sending_local_index,
            1u);
}

TEST(RouteOf, SendsPointToPointOnTheDestinationsRail) {
  const NcclPlanner planner(Nodes(2, 8), {});
  const ConnectionRoute route =
      planner.RouteOf(0, RankIndex{2}, RankIndex{13}, ConnectionUse::kPointToPoint);
  EXPECT_TRUE(route.network);
  EXPECT_EQ(route.sending_local_index, 5u);
  EXPECT_EQ(planner.RouteOf(0, RankIndex{2}, RankIndex{10}, ConnectionUse::kPointToPoint)
                .sending_local_index,
            2u);
}

TEST(RouteOf, SendsPointToPointByItsOwnNicWithoutPxn) {
  NcclSettings settings;
  settings.pxn_disable = true;
  EXPECT_EQ(NcclPlanner(Nodes(2, 8), settings)
                .RouteOf(0, RankIndex{2}, RankIndex{13}, ConnectionUse::kPointToPoint)
                .sending_local_index,
            2u);
}

TEST(RouteOf, DoesNotRelayThroughAGpuOutsideTheCommunicator) {
  const NcclPlanner planner(Nodes({2, 8}), {});
  EXPECT_EQ(planner.RouteOf(0, RankIndex{0}, RankIndex{7}, ConnectionUse::kPointToPoint)
                .sending_local_index,
            0u);  // nobody at index 5 there
  EXPECT_EQ(planner.RouteOf(0, RankIndex{0}, RankIndex{3}, ConnectionUse::kPointToPoint)
                .sending_local_index,
            1u);
}

// The sizes, among powers of two, from which on something else is chosen: NCCL 2.30's own outcome
// on DGX H100 (its tuning code run on that topology).
std::vector<std::pair<uint64_t, std::string>> ChangesOf(const NcclPlanner& planner,
                                                        CollectiveKind kind) {
  std::vector<std::pair<uint64_t, std::string>> changes;
  for (uint64_t bytes = 1024; bytes <= uint64_t{8} << 30; bytes *= 2) {
    JobCollective collective = Collective(kind, bytes / 4, Datatype::kFloat32);
    collective.bytes = bytes;
    const auto choice = planner.Choose(collective, {});
    if (!choice) return {};
    if (changes.empty() || changes.back().second != ReplayName(*choice)) {
      changes.emplace_back(bytes, ReplayName(*choice));
    }
  }
  return changes;
}

TEST(NcclPlanner, ChoosesWhatNcclsTunerChooses) {
  using Changes = std::vector<std::pair<uint64_t, std::string>>;
  constexpr uint64_t kKiB = 1024;
  constexpr uint64_t kMiB = 1024 * kKiB;
  NcclSettings settings;
  settings.version = 23007;
  EXPECT_EQ(ChangesOf(NcclPlanner(Nodes(1, 8), settings), CollectiveKind::kAllReduce),
            (Changes{{kKiB, "RING/LL"}, {2 * kMiB, "NVLS/SIMPLE"}}));
  EXPECT_EQ(
      ChangesOf(NcclPlanner(Nodes(2, 8), settings), CollectiveKind::kAllReduce),
      (Changes{{kKiB, "TREE/LL"}, {256 * kKiB, "TREE/LL128"}, {2 * kMiB, "NVLS_TREE/SIMPLE"}}));
  EXPECT_EQ(ChangesOf(NcclPlanner(Nodes(4, 8), settings), CollectiveKind::kAllReduce),
            (Changes{{kKiB, "TREE/LL"},
                     {256 * kKiB, "TREE/LL128"},
                     {8 * kMiB, "NVLS_TREE/SIMPLE"},
                     {1024 * kMiB, "RING/SIMPLE"}}));
  EXPECT_EQ(ChangesOf(NcclPlanner(Nodes(2, 8), settings), CollectiveKind::kAllGather),
            (Changes{{kKiB, "RING/LL"}, {kMiB, "RING/LL128"}, {64 * kMiB, "RING/SIMPLE"}}));
}

// NVLS came with 2.17, and between servers with 2.18.
TEST(NcclPlanner, NvlsHasAFirstVersion) {
  const auto has_nvls = [](uint32_t servers, uint32_t version) {
    NcclSettings settings;
    settings.version = version;
    for (const auto& [bytes, name] :
         ChangesOf(NcclPlanner(Nodes(servers, 8), settings), CollectiveKind::kAllReduce)) {
      if (name.starts_with("NVLS")) return true;
    }
    return false;
  };
  EXPECT_FALSE(has_nvls(1, 21605));
  EXPECT_TRUE(has_nvls(1, 21701));
  EXPECT_FALSE(has_nvls(2, 21701));
  EXPECT_TRUE(has_nvls(2, 21801));
}

// Ring with Simple: (8.4 + 28 x 3.4 + 28) x 1.4 us, with AMD's CPUs 28 steps of 6 us, and 128 MiB
// at 204.8 GB/s; LL128: 14 + 28 x 1.9 (2) + 8 us, and 156.6 GB/s.
TEST(NcclPlanner, ChoosesByTheCpuToo) {
  CommunicatorLayout layout = Nodes(2, 8);
  JobCollective collective = Collective(CollectiveKind::kAllReduce, 32 << 20, Datatype::kFloat32);
  collective.bytes = 128u << 20;
  const ReplayChoice ring = {Algorithm::kRing, Protocol::kUnstated};
  EXPECT_EQ(NcclPlanner(layout, {}).Choose(collective, ring),
            (ReplayChoice{Algorithm::kRing, Protocol::kSimple}));
  layout.cpu = CommunicatorCpu::kAmd;
  EXPECT_EQ(NcclPlanner(layout, {}).Choose(collective, ring),
            (ReplayChoice{Algorithm::kRing, Protocol::kLl128}));
}

// A ring gets what a server's NICs carry; of a double tree's AllReduce on two servers each NIC
// carries half of its data out and half in, which is nearly twice as fast. p4de.24xlarge reaches 77
// GB/s of bus bandwidth over 4 x 100 Gb/s (awsome-distributed-training, nccl-tests).
TEST(NcclPlanner, TakesTreesOnTwoServersWithFewNics) {
  CommunicatorLayout layout = Nodes(2, 8);
  layout.generation = GpuGeneration::kAmpere;
  layout.nic_bps = 100'000'000'000;
  layout.gpus_per_nic = 2;
  JobCollective large = Collective(CollectiveKind::kAllReduce, 1 << 28, Datatype::kFloat32);
  large.bytes = 1 << 30;
  EXPECT_EQ(NcclPlanner(layout, {}).Choose(large, {})->algorithm, Algorithm::kTree);
  layout.gpus_per_nic = 1;
  layout.nic_bps = 200'000'000'000;
  EXPECT_EQ(NcclPlanner(layout, {}).Choose(large, {})->algorithm, Algorithm::kRing);
}

TEST(NcclPlanner, ChoosesOnlyWhatAlgoAndProtoAllow) {
  NcclSettings settings;
  settings.algorithms.AllowOnly(1u << static_cast<uint32_t>(Algorithm::kTree));
  settings.protocols.AllowOnly(~(1u << static_cast<uint32_t>(Protocol::kLl)));
  const NcclPlanner planner(Nodes(2, 8), settings);
  JobCollective small = Collective(CollectiveKind::kAllReduce, 16, Datatype::kFloat32);
  small.bytes = 64;
  EXPECT_EQ(planner.Choose(small, {}), (ReplayChoice{Algorithm::kTree, Protocol::kLl128}));
  // An algorithm that a log states is not chosen again.
  const ReplayChoice ring_ll = {Algorithm::kRing, Protocol::kLl};
  EXPECT_EQ(planner.Choose(small, ring_ll), ring_ll);
  JobCollective gather = Collective(CollectiveKind::kAllGather, 16, Datatype::kFloat32);
  gather.bytes = 1024;
  EXPECT_EQ(planner.Choose(gather, {}), std::nullopt);  // no tree for it
}

// NVIDIA/nccl issue 1304: with ALGO=Tree and PROTO=Simple 2.21 ran a Broadcast of 24 bytes as a
// ring with LL; 2.22 obeys PROTO. "Strictly enforce the ALGO/PROTO filters" (release notes
// of 2.24.3).
TEST(NcclPlanner, RingsReplaceWhatAlgoLeavesNothingBeforeVersion224) {
  NcclSettings settings;
  settings.algorithms.AllowOnly(1u << static_cast<uint32_t>(Algorithm::kTree));
  settings.protocols.AllowOnly(1u << static_cast<uint32_t>(Protocol::kSimple));
  JobCollective broadcast = Collective(CollectiveKind::kBroadcast, 24, Datatype::kInt8);
  broadcast.bytes = 24;
  const auto choice_of = [&](uint32_t version) {
    settings.version = version;
    return NcclPlanner(Nodes(2, 8), settings).Choose(broadcast, {});
  };
  EXPECT_EQ(choice_of(22105), (ReplayChoice{Algorithm::kRing, Protocol::kLl}));
  EXPECT_EQ(choice_of(22203), (ReplayChoice{Algorithm::kRing, Protocol::kSimple}));
  EXPECT_EQ(choice_of(22403), std::nullopt);
}

TEST(NcclPlanner, AlgoAndProtoMayDifferByKind) {
  NcclSettings settings;
  settings.algorithms.AllowOnly(CollectiveKind::kAllReduce,
                                1u << static_cast<uint32_t>(Algorithm::kTree));
  settings.protocols.AllowOnly(CollectiveKind::kBroadcast,
                               1u << static_cast<uint32_t>(Protocol::kSimple));
  const NcclPlanner planner(Nodes(2, 8), settings);
  const auto choice_of = [&](CollectiveKind kind) {
    JobCollective small = Collective(kind, 256, Datatype::kInt8);
    small.bytes = 256;
    return planner.Choose(small, {});
  };
  EXPECT_EQ(choice_of(CollectiveKind::kAllReduce), (ReplayChoice{Algorithm::kTree, Protocol::kLl}));
  EXPECT_EQ(choice_of(CollectiveKind::kBroadcast),
            (ReplayChoice{Algorithm::kRing, Protocol::kSimple}));
  EXPECT_EQ(choice_of(CollectiveKind::kReduce), (ReplayChoice{Algorithm::kRing, Protocol::kLl}));
}

// nccl.md's formula: every non-root sends its channel's share up once and everyone but the leaves
// sends it down to each child; over a whole tree S goes up n - 1 times and down n - 1 times.
TEST(NcclPlanner, TreesCarryTheVectorUpAndDownOncePerEdge) {
  const NcclPlanner planner(Nodes(4, 8), {});
  const auto schedule =
      planner.Plan(Collective(CollectiveKind::kAllReduce, 16 << 20, Datatype::kFloat32),
                   {Algorithm::kTree, Protocol::kSimple});
  uint64_t sent = 0;
  for (RankIndex rank{0}; rank < 32; ++rank) {
    for (uint32_t channel = 0; channel < schedule->channel_count(); ++channel) {
      for (uint32_t lane = 0; lane < schedule->LaneCount(rank, channel, 0); ++lane) {
        const LaneId id{rank, channel, 0, lane};
        const size_t peers = schedule->PeersOf(id).send_to.size();
        for (uint64_t i = 0; i < schedule->StepCount(id); ++i) {
          sent += schedule->StepAt(id, i).bytes * peers;
        }
      }
    }
  }
  EXPECT_EQ(sent, uint64_t{2} * 31 * (uint64_t{64} << 20));
}

TEST(NcclPlanner, LlAndLl128PutWholeLinesOnTheWire) {
  const NcclPlanner planner(Nodes(2, 8), {});
  const JobCollective collective = Collective(CollectiveKind::kAllReduce, 1, Datatype::kFloat32);
  const auto wire = [&](Protocol protocol, uint64_t bytes) {
    return WireBytes(planner.Plan(collective, {Algorithm::kRing, protocol})->message_rule(), bytes);
  };
  EXPECT_EQ(wire(Protocol::kLl, 4'096), 8'192u);
  EXPECT_EQ(wire(Protocol::kLl, 9), 32u);
  EXPECT_EQ(wire(Protocol::kLl128, 1'920), 2'048u);
  EXPECT_EQ(wire(Protocol::kLl128, 121), 256u);
  EXPECT_EQ(wire(Protocol::kSimple, 4'097), 4'097u);
}

}  // namespace
}  // namespace railyard
