// SPDX-License-Identifier: GPL-2.0-only
// Threads stand for the processes: they share the same memory in the same way, and ThreadSanitizer
// sees them.
#include "simulator/shards/window_exchange.h"

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace railyard {
namespace {

Crossing CrossingOf(uint32_t from, uint32_t number) {
  Crossing crossing;
  crossing.packet.flow = from;
  crossing.packet.sequence = number;
  crossing.packet.hop_count = 1;
  return crossing;
}

void RunMembers(WindowExchange& exchange, const std::function<void(WindowExchange::Member&)>& run) {
  std::vector<std::thread> threads;
  for (uint32_t shard = 0; shard < exchange.shards(); ++shard) {
    threads.emplace_back([&exchange, &run, shard] {
      WindowExchange::Member member(exchange, shard);
      run(member);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(WindowExchangeTest, EveryShardSeesTheReportsOfTheSameRound) {
  constexpr uint32_t kShards = 3;
  constexpr int64_t kRounds = 500;
  WindowExchange exchange(kShards);
  RunMembers(exchange, [&](WindowExchange::Member& member) {
    for (int64_t round = 0; round < kRounds; ++round) {
      ShardReport report;
      report.next_ps = round * kShards + member.shard();
      report.is_done = round + member.shard() >= kRounds;
      const std::vector<ShardReport>& reports = member.Meet(report);
      ASSERT_EQ(reports.size(), kShards);
      for (uint32_t shard = 0; shard < kShards; ++shard) {
        ASSERT_EQ(reports[shard].next_ps, round * kShards + shard);
        ASSERT_EQ(reports[shard].is_done, round + shard >= kRounds);
      }
    }
  });
}

// Each shard sends each other one more than a ring holds before anybody ends the round.
TEST(WindowExchangeTest, WhatWasSentBeforeARoundEndedIsThereInOrderEvenIfRingsFill) {
  constexpr uint32_t kShards = 3;
  constexpr uint32_t kRounds = 20;
  constexpr uint32_t kSent = 50;
  WindowExchange exchange(kShards, 8);
  RunMembers(exchange, [&](WindowExchange::Member& member) {
    std::vector<uint32_t> received(kShards);
    for (uint32_t round = 1; round <= kRounds; ++round) {
      for (uint32_t to = 0; to < kShards; ++to) {
        if (to == member.shard()) continue;
        for (uint32_t i = 0; i < kSent; ++i) {
          member.Send(to, CrossingOf(member.shard(), (round - 1) * kSent + i));
        }
      }
      member.Meet({});
      for (const Crossing& crossing : member.received()) {
        ASSERT_EQ(crossing.packet.sequence, received[crossing.packet.flow]++);
      }
      member.received().clear();
      for (uint32_t from = 0; from < kShards; ++from) {
        if (from != member.shard()) {
          ASSERT_GE(received[from], round * kSent);
        }
      }
    }
  });
}

TEST(WindowExchangeTest, AWishToEndReachesAllShards) {
  WindowExchange exchange(2);
  exchange.AskToEnd();
  RunMembers(exchange, [&](WindowExchange::Member& member) {
    ShardReport report;
    report.is_asked_to_end = member.IsAskedToEnd();
    for (const ShardReport& seen : member.Meet(report)) EXPECT_TRUE(seen.is_asked_to_end);
  });
}

TEST(CrossingTest, PacketsAndPauseFramesAreDistinguished) {
  EXPECT_FALSE(CrossingOf(0, 0).is_pause_frame());
  const Crossing frame = Crossing::OfPauseFrame(77, LinkId{5}, 11);
  EXPECT_TRUE(frame.is_pause_frame());
  EXPECT_EQ(frame.time_ps(), 77);
  EXPECT_EQ(frame.packet.link, LinkId{5});
}

}  // namespace
}  // namespace railyard
