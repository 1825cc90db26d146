// SPDX-License-Identifier: GPL-2.0-only
// Counts what an expert kernel's schedules send, token by token by hand.
#include "workloads/experts/expert_schedule.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/collectives/schedule_check.h"

namespace railyard {
namespace {

constexpr uint64_t kToken = 1000;

// Two servers of two ranks.
CommunicatorLayout TwoByTwo() {
  CommunicatorLayout layout;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    layout.ranks.push_back({.node = rank / 2, .local_index = rank % 2});
  }
  return layout;
}

// Adds both ends of a hop; of a combine, in the other direction.
class Calls {
 public:
  Calls(ExpertKernel kernel, bool combines, uint8_t channels)
      : common_{
            .token_bytes = kToken, .kernel = kernel, .combines = combines, .channels = channels} {}

  void Add(uint32_t from, uint32_t to, uint64_t tokens, uint32_t relayed_for = 0) {
    ExpertCall call = common_;
    call.relayed_for = relayed_for;
    if (common_.combines) std::swap(from, to);
    calls_[from].push_back({true, RankIndex{to}, tokens * kToken, call});
    calls_[to].push_back({false, RankIndex{from}, tokens * kToken, call});
  }

  std::vector<std::shared_ptr<const CollectiveSchedule>> Schedules() const {
    std::vector<std::shared_ptr<const CollectiveSchedule>> schedules;
    for (uint32_t rank = 0; rank < calls_.size(); ++rank) {
      schedules.push_back(
          std::make_shared<ExpertSchedule>(TwoByTwo(), RankIndex{rank}, calls_[rank]));
    }
    return schedules;
  }

 private:
  ExpertCall common_;
  std::vector<std::vector<P2pCall>> calls_{4};
};

// Rank 0 has three tokens: one for experts on ranks 1 and 2, one for 2 and 3, one for its own. Rank
// 3 has one for rank 0. Each server's tokens reach the other by one copy, on the sender's own
// place.
Calls FourTokens(bool combines) {
  Calls calls(ExpertKernel::kHybridEp, combines, 2);
  calls.Add(0, 2, 2);     // both tokens, to the other server
  calls.Add(3, 1, 1);     // rank 3's, to rank 1, which is on its place there
  calls.Add(0, 1, 1, 1);  // of rank 0, within its server
  calls.Add(0, 0, 1, 1);
  calls.Add(2, 2, 2, 1);  // of rank 0, relayed by rank 2
  calls.Add(2, 3, 1, 1);
  calls.Add(1, 0, 1, 4);  // of rank 3, relayed by rank 1
  return calls;
}

using Sent = std::map<std::pair<uint32_t, int32_t>, uint64_t>;
Sent SentBy(const std::vector<std::shared_ptr<const CollectiveSchedule>>& schedules) {
  Sent sent;
  for (RankIndex rank{0}; rank < schedules.size(); ++rank) {
    const CollectiveSchedule& schedule = *schedules[rank];
    for (uint32_t channel = 0; channel < schedule.channel_count(); ++channel) {
      if (schedule.BatchCount(rank, channel) == 0) continue;
      for (uint32_t lane = 0; lane < schedule.LaneCount(rank, channel, 0); ++lane) {
        const LaneId id{rank, channel, 0, lane};
        for (uint64_t step = 0; step < schedule.StepCount(id); ++step) {
          const Step at = schedule.StepAt(id, step);
          if (at.send_to != kNoPeer) sent[{rank, at.send_to}] += at.bytes;
        }
      }
    }
  }
  return sent;
}

std::string Check(const std::vector<std::shared_ptr<const CollectiveSchedule>>& schedules) {
  return CheckSchedule(
      {.kind = CollectiveKind::kSend, .block_bytes = 0}, static_cast<uint32_t>(schedules.size()),
      [&](uint32_t rank) -> const CollectiveSchedule& { return *schedules[rank]; });
}

TEST(ExpertScheduleTest, ATokenCrossesToAServerOnce) {
  const auto dispatch = FourTokens(false).Schedules();
  EXPECT_EQ(SentBy(dispatch), (Sent{{{0, 2}, 2 * kToken},
                                    {{3, 1}, kToken},
                                    {{0, 1}, kToken},
                                    {{2, 3}, kToken},
                                    {{1, 0}, kToken}}));
  EXPECT_EQ(Check(dispatch), "");
  const auto combine = FourTokens(true).Schedules();
  EXPECT_EQ(SentBy(combine), (Sent{{{2, 0}, 2 * kToken},
                                   {{1, 3}, kToken},
                                   {{1, 0}, kToken},
                                   {{3, 2}, kToken},
                                   {{0, 1}, kToken}}));
  EXPECT_EQ(Check(combine), "");
}

// All four ranks on one machine, of which the kernel takes two for a server: between those, tokens
// go from NIC to NIC; and each has its own part of the channels.
TEST(ExpertScheduleTest, AKernelsServersAreItsOwn) {
  CommunicatorLayout layout;
  for (uint32_t rank = 0; rank < 4; ++rank)
    layout.ranks.push_back({.node = 0, .local_index = rank});
  const ExpertCall between{
      .token_bytes = kToken, .kernel = ExpertKernel::kHybridEp, .channels = 1, .server_ranks = 2};
  ExpertCall within = between;
  within.relayed_for = 1;
  const std::vector<P2pCall> calls = {{true, RankIndex{2}, kToken, between},
                                      {true, RankIndex{1}, kToken, within}};
  const ExpertSchedule schedule(layout, RankIndex{0}, calls);
  EXPECT_EQ(schedule.channel_count(), 2u);
  std::map<uint32_t, ConnectionUse> uses;
  for (uint32_t lane = 0; lane < schedule.LaneCount(RankIndex{0}, 0, 0); ++lane) {
    for (const LanePeer& peer : schedule.PeersOf({RankIndex{0}, 0, 0, lane}).send_to) {
      uses[peer.rank] = peer.use;
    }
  }
  EXPECT_EQ(uses.at(1), ConnectionUse::kExchange);
  EXPECT_EQ(uses.at(2), ConnectionUse::kRemoteWrite);
  EXPECT_EQ(ConnectionUseOf(between), ConnectionUse::kRemoteWrite);
  EXPECT_EQ(ConnectionUseOf(within), ConnectionUse::kExchange);
  EXPECT_EQ(ConnectionUseOf({}), ConnectionUse::kPointToPoint);
}

// Chunks of DeepEP with 16 ranks: 20 tokens between servers, 16 within. A relay passes tokens on
// behind the chunk that they came with, and returns a sum behind all of its terms.
TEST(ExpertScheduleTest, ARelayFollowsItsChunks) {
  const auto steps_of_relay = [](bool combines) {
    Calls calls(ExpertKernel::kHybridEp, combines, 1);  // 64 and 8 tokens
    calls.Add(0, 2, 128);
    calls.Add(2, 3, 32, 1);
    const auto schedules = calls.Schedules();
    EXPECT_EQ(Check(schedules), "");
    std::vector<std::pair<int32_t, uint64_t>> steps;  // the peer, and the tokens
    const LaneId lane{RankIndex{2}, 0, 0, 0};
    for (uint64_t i = 0; i < schedules[2]->StepCount(lane); ++i) {
      const Step step = schedules[2]->StepAt(lane, i);
      steps.emplace_back(step.send_to != kNoPeer ? step.send_to : step.recv_from,
                         step.bytes / kToken);
    }
    return steps;
  };
  using Steps = std::vector<std::pair<int32_t, uint64_t>>;
  EXPECT_EQ(steps_of_relay(false), (Steps{{0, 64}, {3, 8}, {3, 8}, {0, 64}, {3, 8}, {3, 8}}));
  EXPECT_EQ(steps_of_relay(true), (Steps{{3, 8}, {3, 8}, {0, 64}, {3, 8}, {3, 8}, {0, 64}}));
}

// The work of all steps of each rank, in tokens that it copies. With DeepEP warps copy tokens into
// a buffer from which the NIC or the other GPU's warps take them, and a relay's warps take no time
// for what arrives or leaves over the network. With hybrid-ep relays alone load and store
// (hybrid_ep_backend.cuh), and add up the other servers' sums.
TEST(ExpertScheduleTest, WarpsTakeTimeForWhatTheyMove) {
  const auto work = [](ExpertKernel kernel, bool combines) {
    Calls calls(kernel, combines, 1);
    calls.Add(0, 2, 2);     // to the other server
    calls.Add(2, 2, 2, 1);  // rank 2's own, which it copies
    calls.Add(2, 3, 1, 1);
    std::vector<double> tokens(4);
    const auto schedules = calls.Schedules();
    for (RankIndex rank{0}; rank < 4; ++rank) {
      ForEachLaneOf(*schedules[rank], rank, [&](const LaneId& lane) {
        for (uint64_t i = 0; i < schedules[rank]->StepCount(lane); ++i) {
          const Step step = schedules[rank]->StepAt(lane, i);
          tokens[rank] += static_cast<double>(step.bytes * step.work_per_mille) / 1000 / kToken;
        }
      });
    }
    return tokens;
  };
  using ::testing::DoubleNear;
  using ::testing::ElementsAre;
  EXPECT_THAT(work(ExpertKernel::kDeepEp, false), ElementsAre(2, 0, 3, 1));
  EXPECT_THAT(work(ExpertKernel::kDeepEp, true), ElementsAre(2, 0, 3, 1));
  for (const bool combines : {false, true}) {
    const TokenTime time = TokenTimeOf(
        {.token_bytes = kToken, .kernel = ExpertKernel::kHybridEp, .combines = combines});
    const double once = time.once_ns / time.usual_ns;
    const double copy = time.copy_ns / time.usual_ns;
    EXPECT_THAT(work(ExpertKernel::kHybridEp, combines),
                ElementsAre(DoubleNear(combines ? 2 * copy : 0, 0.01), 0,
                            DoubleNear(2 * once + 3 * copy, 0.01), 0));
  }
}

// Every pair of token and expert goes by its own write, within a server too; a rank's own is
// copied.
TEST(ExpertScheduleTest, LowLatencyWritesEachTokenByItself) {
  Calls calls(ExpertKernel::kDeepEpLowLatency, false, 4);
  calls.Add(0, 1, 10);
  calls.Add(0, 0, 3);
  calls.Add(2, 1, 5);
  const auto schedules = calls.Schedules();
  EXPECT_EQ(Check(schedules), "");
  EXPECT_EQ(SentBy(schedules), (Sent{{{0, 1}, 10 * kToken}, {{2, 1}, 5 * kToken}}));
  uint64_t messages = 0;
  for (uint32_t channel = 0; channel < 4; ++channel) {
    for (uint32_t lane = 0; lane < schedules[0]->LaneCount(RankIndex{0}, channel, 0); ++lane) {
      const LaneId id{RankIndex{0}, channel, 0, lane};
      const LanePeers peers = schedules[0]->PeersOf(id);
      if (peers.send_to.empty()) continue;
      EXPECT_EQ(peers.send_to.front().use, ConnectionUse::kRemoteWrite);
      EXPECT_EQ(schedules[0]->StepAt(id, 0).bytes, kToken);
      EXPECT_EQ(schedules[0]->AlikeFrom(id, 0), schedules[0]->StepCount(id));
      messages += schedules[0]->StepCount(id);
    }
  }
  EXPECT_EQ(messages, 10u);
}

}  // namespace
}  // namespace railyard
