// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/p2p_schedule.h"

#include <map>
#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {
namespace {

using ::railyard::testing::Nodes;

NcclSettings Version(uint32_t version) {
  NcclSettings settings;
  settings.version = version;
  return settings;
}

std::vector<P2pCall> AllToAllCalls(uint32_t rank_count, uint64_t bytes) {
  std::vector<P2pCall> calls;
  for (uint32_t peer = 0; peer < rank_count; ++peer) {
    calls.push_back({true, RankIndex{peer}, bytes});
    calls.push_back({false, RankIndex{peer}, bytes});
  }
  return calls;
}

// The steps of every lane, in order of channel, batch, lane.
struct LaneSteps {
  LaneId id;
  std::vector<Step> steps;
};
std::vector<LaneSteps> LanesOf(const CollectiveSchedule& schedule, uint32_t number) {
  const RankIndex rank{number};
  std::vector<LaneSteps> lanes;
  for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
    for (uint32_t batch = 0; batch < schedule.BatchCount(rank, channel); ++batch) {
      for (uint32_t lane = 0; lane < schedule.LaneCount(rank, channel, batch); ++lane) {
        LaneSteps steps{{rank, channel, batch, lane}, {}};
        for (uint64_t i = 0; i < schedule.StepCount(steps.id); ++i) {
          steps.steps.push_back(schedule.StepAt(steps.id, i));
        }
        lanes.push_back(std::move(steps));
      }
    }
  }
  return lanes;
}

TEST(P2pSchedule, SendsItsBlockToEveryOtherRankOfAnAllToAll) {
  for (const uint32_t version : {22705u, 23007u}) {
    const NcclPlanner planner(Nodes(4, 8), Version(version));
    constexpr uint64_t kBlock = 1'000'003;
    const auto calls = AllToAllCalls(32, kBlock);
    for (const uint32_t rank : {0u, 13u, 31u}) {
      const auto schedule = planner.PlanP2p(RankIndex{rank}, calls.data(), 64);
      std::map<int32_t, uint64_t> sent;
      std::map<int32_t, uint64_t> received;
      for (const LaneSteps& lane : LanesOf(*schedule, rank)) {
        for (const Step& step : lane.steps) {
          if (step.send_to != kNoPeer) sent[step.send_to] += step.bytes;
          if (step.recv_from != kNoPeer) received[step.recv_from] += step.bytes;
        }
      }
      EXPECT_EQ(sent.size(), 31u);
      EXPECT_EQ(received.size(), 31u);
      EXPECT_FALSE(sent.contains(static_cast<int32_t>(rank)));
      for (const auto& [peer, bytes] : sent) EXPECT_EQ(bytes, kBlock);
      for (const auto& [peer, bytes] : received) EXPECT_EQ(bytes, kBlock);
    }
  }
}

TEST(P2pSchedule, PutsAtMostEightWorksInABatch) {
  const NcclPlanner planner(Nodes(16, 8), Version(22705));
  const auto calls = AllToAllCalls(128, 4096);
  const auto schedule = planner.PlanP2p(RankIndex{5}, calls.data(), 256);
  uint32_t batches = 0;
  for (uint32_t channel = 0; channel < 16; ++channel) {
    batches += schedule->BatchCount(RankIndex{5}, channel);
    for (uint32_t batch = 0; batch < schedule->BatchCount(RankIndex{5}, channel); ++batch) {
      // Eight works of a Send and a Recv; the one with itself has no lanes.
      EXPECT_GE(schedule->LaneCount(RankIndex{5}, channel, batch), 14u);
      EXPECT_LE(schedule->LaneCount(RankIndex{5}, channel, batch), 16u);
    }
  }
  EXPECT_EQ(batches, 16u);  // 128 works of one part, one group of eight rounds per channel
  EXPECT_EQ(schedule->message_rule().in_flight_messages, 2u);  // eight share 16 slots
}

TEST(P2pSchedule, HasAllEightSlotsForAFewMessages) {
  const NcclPlanner planner(Nodes(2, 8), Version(22705));
  const std::vector<P2pCall> calls = {{true, RankIndex{8}, 1 << 20}, {true, RankIndex{1}, 1 << 20}};
  EXPECT_EQ(planner.PlanP2p(RankIndex{0}, calls.data(), 2)->message_rule().in_flight_messages, 8u);
}

TEST(P2pSchedule, ShapesNetworkChunksByTheMessage) {
  const NcclPlanner planner(Nodes(2, 8), Version(22705));
  const auto first_chunk = [&](uint32_t peer, uint64_t bytes) {
    const P2pCall call{true, RankIndex{peer}, bytes};
    const auto schedule = planner.PlanP2p(RankIndex{0}, &call, 1);
    return LanesOf(*schedule, 0).front().steps.front().bytes;
  };
  EXPECT_EQ(first_chunk(8, 100'000), 32u << 10);    // below 128 KiB
  EXPECT_EQ(first_chunk(8, 1'000'000), 64u << 10);  // below 1 MiB
  EXPECT_EQ(first_chunk(8, 1 << 20), 128u << 10);
  EXPECT_EQ(first_chunk(1, 100'000), 100'000u);  // NVLink: the full 128 KiB
}

TEST(P2pSchedule, CapsTheChunkAtASlotOfTheBuffer) {
  NcclSettings settings;
  settings.buffsize_bytes = 512 << 10;
  const NcclPlanner planner(Nodes(1, 8), settings);
  const P2pCall call{true, RankIndex{1}, 16 << 20};
  EXPECT_EQ(LanesOf(*planner.PlanP2p(RankIndex{0}, &call, 1), 0).front().steps.front().bytes,
            64u << 10);
}

TEST(P2pSchedule, SplitsAMessageInPartsOnChannelsOfTheirOwn) {
  // 2.30, 2 x 8: four channels per peer, one of them to begin with (16 ranks on 16 channels);
  // 1 MiB doubles to four parts of 256 KiB, still above 128 KiB.
  const NcclPlanner planner(Nodes(2, 8), Version(23007));
  const P2pCall call{true, RankIndex{8}, 1 << 20};
  const auto schedule = planner.PlanP2p(RankIndex{0}, &call, 1);
  const auto lanes = LanesOf(*schedule, 0);
  ASSERT_EQ(lanes.size(), 4u);
  std::set<uint32_t> channels;
  std::set<uint64_t> offsets;
  for (const LaneSteps& lane : lanes) {
    channels.insert(lane.id.channel);
    offsets.insert(lane.steps.front().offset_bytes);
    EXPECT_EQ(lane.steps.size(), 2u);  // chunks of 128 KiB
  }
  // Round 8 is base 1, reversed in four bits 8.
  EXPECT_EQ(channels, (std::set<uint32_t>{8, 9, 10, 11}));
  EXPECT_EQ(offsets, (std::set<uint64_t>{0, 256 << 10, 512 << 10, 768 << 10}));
}

TEST(P2pSchedule, UsesFourChannelsPerPeerOfAServer) {
  // 1 x 8: 32 channels, 4 parts of at least 64 KiB to begin with.
  const NcclPlanner planner(Nodes(1, 8), Version(23007));
  const P2pCall small{true, RankIndex{1}, 100'000};
  EXPECT_EQ(LanesOf(*planner.PlanP2p(RankIndex{0}, &small, 1), 0).size(), 2u);
  const P2pCall large{true, RankIndex{1}, 4 << 20};
  EXPECT_EQ(LanesOf(*planner.PlanP2p(RankIndex{0}, &large, 1), 0).size(), 4u);
}

// addP2pToPlan (src/enqueue.cc): up to 2.28 a part has at least an eighth of a slot of the
// message's protocol, 64 KiB with LL (LL's buffer of 512 KiB has 8) and 512 KiB with Simple; later
// of Simple's.
TEST(P2pSchedule, ThePartsOfAMessageDependOnItsProtocolUpTo228) {
  const auto parts = [](uint32_t version, RankIndex peer, uint64_t bytes) {
    const NcclPlanner planner(Nodes(1, 8), Version(version));
    const P2pCall call{true, peer, bytes};
    return LanesOf(*planner.PlanP2p(RankIndex{0}, &call, 1), 0).size();
  };
  EXPECT_EQ(parts(22602, RankIndex{1}, 8 << 10), 1u);
  EXPECT_EQ(parts(22602, RankIndex{1}, 16 << 10), 2u);
  EXPECT_EQ(parts(22602, RankIndex{1}, 32 << 10), 4u);
  EXPECT_EQ(parts(22602, RankIndex{1}, 64 << 10), 4u);
  EXPECT_EQ(parts(23007, RankIndex{1}, 64 << 10), 1u);
  // A rank's copy to itself does not go by LL.
  EXPECT_EQ(parts(22602, RankIndex{0}, 64 << 10), 1u);
}

TEST(P2pSchedule, SendsAMessageOfNoBytes) {
  const NcclPlanner planner(Nodes(2, 8), Version(22705));
  const P2pCall call{true, RankIndex{9}, 0};
  const auto lanes = LanesOf(*planner.PlanP2p(RankIndex{0}, &call, 1), 0);
  ASSERT_EQ(lanes.size(), 1u);
  ASSERT_EQ(lanes[0].steps.size(), 1u);
  EXPECT_EQ(lanes[0].steps[0].bytes, 0u);
  EXPECT_EQ(lanes[0].steps[0].send_to, 9);
}

TEST(P2pSchedule, CopiesMessagesToItselfUnlessInPlace) {
  const std::vector<P2pCall> calls = {{true, RankIndex{0}, 1 << 20},
                                      {false, RankIndex{0}, 1 << 20}};
  const NcclPlanner planner(Nodes(2, 8), {});
  const auto schedule = planner.PlanP2p(RankIndex{0}, calls.data(), 2);
  uint64_t copied_bytes = 0;
  for (const LaneSteps& lane : LanesOf(*schedule, 0)) {
    const LanePeers peers = schedule->PeersOf(lane.id);
    EXPECT_TRUE(peers.recv_from.empty() && peers.send_to.empty());
    ASSERT_EQ(lane.steps.size(), 1u);
    EXPECT_TRUE(lane.steps[0].load_local && lane.steps[0].store);
    EXPECT_EQ(lane.steps[0].offset_bytes, copied_bytes);
    copied_bytes += lane.steps[0].bytes;
  }
  EXPECT_EQ(copied_bytes, 1u << 20);
  EXPECT_TRUE(
      LanesOf(*planner.PlanP2p(RankIndex{0}, calls.data(), 2, /*in_place=*/true), 0).empty());
  // A communicator of one rank has no channels.
  const NcclPlanner alone(Nodes(1, 1), {});
  EXPECT_TRUE(LanesOf(*alone.PlanP2p(RankIndex{0}, calls.data(), 2), 0).empty());
}

// NCCL_P2P_LL_THRESHOLD: 16 KiB on each channel that a message may have, from 2.29 on that it has.
TEST(P2pSchedule, SmallMessagesInsideAServerGoAsLl) {
  const auto line_bytes = [](uint32_t version, uint32_t nodes, uint64_t bytes) {
    const NcclPlanner planner(Nodes(nodes, 8), Version(version));
    const P2pCall call = {true, RankIndex{1}, bytes};
    const auto schedule = planner.PlanP2p(RankIndex{0}, &call, 1);
    const LaneSteps lane = LanesOf(*schedule, 0).front();
    EXPECT_LE(lane.steps.front().bytes, 32u << 10);
    return schedule->MessageRuleOf(lane.id).line_wire_bytes;
  };
  EXPECT_EQ(line_bytes(23007, 1, 16 << 10), 16u);
  EXPECT_EQ(line_bytes(23007, 1, (16 << 10) + 1), 1u);
  EXPECT_EQ(line_bytes(22705, 1, (16 << 10) + 1), 16u);
  // This holds within each of several servers, but not between them.
  EXPECT_EQ(line_bytes(23007, 2, 16 << 10), 16u);
  const NcclPlanner planner(Nodes(2, 8), Version(23007));
  const P2pCall away = {true, RankIndex{9}, 16 << 10};
  const auto schedule = planner.PlanP2p(RankIndex{0}, &away, 1);
  EXPECT_EQ(schedule->MessageRuleOf(LanesOf(*schedule, 0).front().id).line_wire_bytes, 1u);
}

// ncclAddWorkBatchToPlan (src/enqueue.cc): rounds of one batch are of the same eight.
TEST(P2pSchedule, BatchesHoldRoundsOfTheSameEight) {
  for (const uint32_t version : {22705u, 23007u}) {
    const NcclPlanner planner(Nodes(16, 1), Version(version));
    const P2pOrder order(Nodes(16, 1), version, planner.channels().p2p_channel_count);
    const auto calls = AllToAllCalls(16, 1 << 20);
    const auto schedule = planner.PlanP2p(RankIndex{0}, calls.data(), 32);
    bool is_mixed = false;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> eight;
    for (const LaneSteps& lane : LanesOf(*schedule, 0)) {
      const int32_t to = lane.steps.front().send_to;
      if (to < 0) continue;
      const uint32_t round = order.RoundOf(RankIndex{0}, RankIndex{to});
      const auto [at, is_new] = eight.try_emplace({lane.id.channel, lane.id.batch}, round / 8);
      is_mixed = is_mixed || at->second != round / 8;
    }
    EXPECT_EQ(is_mixed, version == 22705);
  }
}

// The warps of a CTA are shared by its batch's works, half of each for a direction (nWarpPerWork,
// nSendWarpPerWork in src/device/sendrecv.h); a copy has both halves.
TEST(P2pSchedule, WorksOfABatchShareTheWarps) {
  const NcclPlanner planner(Nodes(1, 8), {});
  const auto calls = AllToAllCalls(8, 512 << 20);  // on all channels each
  for (const bool in_place : {false, true}) {
    const auto schedule = planner.PlanP2p(RankIndex{0}, calls.data(), 16, in_place);
    for (const LaneSteps& lane : LanesOf(*schedule, 0)) {
      const bool is_copy = schedule->PeersOf(lane.id).send_to.empty() &&
                           schedule->PeersOf(lane.id).recv_from.empty();
      const WarpShare share = schedule->WarpShareOf(lane.id);
      EXPECT_EQ(share.parts, is_copy ? 2u : 1u);
      EXPECT_EQ(share.of, in_place ? 7u : 8u);
    }
  }
  // Sends without receives are works of their own.
  const std::vector<P2pCall> sends = {{true, RankIndex{1}, 1 << 20}, {true, RankIndex{2}, 1 << 20}};
  const auto schedule = planner.PlanP2p(RankIndex{0}, sends.data(), 2);
  for (const LaneSteps& lane : LanesOf(*schedule, 0)) {
    const uint32_t lanes = schedule->LaneCount(RankIndex{0}, lane.id.channel, lane.id.batch);
    EXPECT_EQ(schedule->WarpShareOf(lane.id).of, lanes);
  }
}

// 20 warps are divided among the works; up to four of a work are halved, of more one is left out
// and sends (nSendWarpPerWork and nRecvWarpPerWork, src/device/sendrecv.h). If three or more send,
// one of them posts (nworkers, src/device/prims_simple.h).
TEST(P2pSchedule, WorksHaveTheWarpsOfNcclsKernel) {
  const std::vector<uint32_t> warps_by_works = {9, 4, 2, 2, 2, 1, 1, 1};
  for (uint32_t works = 1; works <= 8; ++works) {
    NcclSettings settings;
    settings.max_nchannels = 1;
    const NcclPlanner planner(Nodes(1, 9), settings);
    std::vector<P2pCall> calls;
    for (uint32_t peer = 1; peer <= works; ++peer) {
      calls.push_back({true, RankIndex{peer}, 1 << 20});
      calls.push_back({false, RankIndex{9 - peer}, 1 << 20});
    }
    const auto schedule =
        planner.PlanP2p(RankIndex{0}, calls.data(), static_cast<uint32_t>(calls.size()));
    uint32_t seconds = 0;
    for (const LaneSteps& lane : LanesOf(*schedule, 0)) {
      ASSERT_EQ(schedule->WarpShareOf(lane.id).of, works);
      EXPECT_EQ(schedule->WarpShareOf(lane.id).warps, warps_by_works[works - 1]);
      seconds += schedule->SharesWithLaneBefore(lane.id) ? 1 : 0;
    }
    EXPECT_EQ(seconds, works);
  }
}

TEST(P2pSchedule, AWorkWithOneDirectionHasTheWarpsOfBoth) {
  const NcclPlanner planner(Nodes(2, 8), {});
  const auto warps_of = [&](const P2pCall& call) {
    const auto schedule = planner.PlanP2p(RankIndex{0}, &call, 1);
    return schedule->WarpShareOf(LanesOf(*schedule, 0).front().id).warps;
  };
  EXPECT_EQ(warps_of({true, RankIndex{1}, 1 << 20}), 18u);
  EXPECT_EQ(warps_of({false, RankIndex{1}, 1 << 20}), 19u);
  EXPECT_EQ(warps_of({true, RankIndex{0}, 1 << 20}), 19u);
  EXPECT_EQ(warps_of({true, RankIndex{8}, 1 << 20}), 0u);  // over the network
}

TEST(P2pSchedule, ServesRepeatedMessagesToAPeerInBatchesOfTheirOwn) {
  const NcclPlanner planner(Nodes(2, 8), Version(22705));
  const std::vector<P2pCall> calls = {
      {true, RankIndex{8}, 1000}, {true, RankIndex{8}, 2000}, {false, RankIndex{8}, 3000}};
  const auto schedule = planner.PlanP2p(RankIndex{0}, calls.data(), 3);
  const auto lanes = LanesOf(*schedule, 0);
  ASSERT_EQ(lanes.size(), 3u);
  // Round 8 sends to the other server and receives from it: the first Send and the Recv share a
  // work.
  EXPECT_EQ(lanes[0].id.batch, 0u);
  EXPECT_EQ(lanes[0].steps[0].recv_from, 8);
  EXPECT_EQ(lanes[1].id.batch, 0u);
  EXPECT_EQ(lanes[1].steps[0].bytes, 1000u);
  EXPECT_EQ(lanes[2].id.batch, 1u);
  EXPECT_EQ(lanes[2].steps[0].bytes, 2000u);
}

TEST(P2pSchedule, DefinesOnlyTheLanesOfItsRank) {
  const NcclPlanner planner(Nodes(2, 8), {});
  const auto calls = AllToAllCalls(16, 4096);
  const auto schedule = planner.PlanP2p(RankIndex{3}, calls.data(), 32);
  for (uint32_t channel = 0; channel < schedule->channel_count(); ++channel) {
    EXPECT_EQ(schedule->BatchCount(RankIndex{4}, channel), 0u);
    EXPECT_EQ(schedule->LaneCount(RankIndex{4}, channel, 0), 0u);
  }
}

}  // namespace
}  // namespace railyard
