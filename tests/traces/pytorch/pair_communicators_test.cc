// SPDX-License-Identifier: GPL-2.0-only
#include "traces/pytorch/pair_communicators.h"

#include <numeric>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace_check.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PairCommunicatorsTest : public ::testing::Test {
 protected:
  // A group "0" of all ranks.
  void SetRanks(uint32_t count) {
    trace_.rank_count = count;
    trace_.operations.resize(count);
    std::vector<GlobalRank> ranks(count);
    std::iota(ranks.begin(), ranks.end(), GlobalRank{0});
    trace_.communicators = {{.name = "0", .ranks = ranks}};
  }
  void Add(uint32_t rank, CollectiveKind kind, uint32_t peer = 0, uint32_t group = 0) {
    trace_.operations[GlobalRank{rank}].push_back(
        {.kind = kind, .count = 8, .peer = peer, .group = group});
  }
  void Separate() {
    SeparatePairsInCircles(trace_, report_);
    Diagnostics diagnostics;
    EXPECT_TRUE(CheckTrace(trace_, "trace", diagnostics)) << diagnostics.ToString();
  }

  Trace trace_;
  ImportReport report_;
};

// Each rank sends to the next one before it receives.
TEST_F(PairCommunicatorsTest, ARingOfLoneMessagesBecomesPairs) {
  SetRanks(4);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    Add(rank, CollectiveKind::kAllReduce);
    Add(rank, CollectiveKind::kSend, (rank + 1) % 4);
    Add(rank, CollectiveKind::kRecv, (rank + 3) % 4);
  }
  Separate();
  ASSERT_EQ(trace_.communicators.size(), 5u);
  std::set<std::vector<GlobalRank>> pairs;
  for (size_t i = 1; i < 5; ++i) pairs.insert(trace_.communicators[i].ranks);
  EXPECT_THAT(pairs, ElementsAre(GlobalRanksOf({0, 1}), GlobalRanksOf({0, 3}),
                                 GlobalRanksOf({1, 2}), GlobalRanksOf({2, 3})));
  const auto& program = trace_.operations[GlobalRank{3}];
  EXPECT_EQ(program[0].communicator, 0u);
  EXPECT_EQ(trace_.communicators[program[1].communicator].name, "0 0:3");
  EXPECT_EQ(program[1].peer, 0u);  // rank 0 is the first of the pair
  EXPECT_EQ(trace_.communicators[program[2].communicator].name, "0 2:3");
  EXPECT_EQ(program[2].peer, 0u);
  EXPECT_EQ((std::set{program[0].stream, program[1].stream, program[2].stream}.size()), 3u);
  EXPECT_THAT(report_.ToString(), HasSubstr("Sends and Recvs of group \"0\" outside batches would "
                                            "wait for each other in a circle"));
}

TEST_F(PairCommunicatorsTest, WhatComesToItsEndStaysAsItIs) {
  // A pipeline, a batch that would be a circle as lone messages, and one that mixes both.
  SetRanks(3);
  for (GlobalRank rank{0}; rank < 3; ++rank) {
    if (rank > 0) Add(rank, CollectiveKind::kRecv, rank - 1);
    if (rank < 2) Add(rank, CollectiveKind::kSend, rank + 1);
    Add(rank, CollectiveKind::kSend, (rank + 1) % 3, 1);
    Add(rank, CollectiveKind::kRecv, (rank + 2) % 3, 1);
    Add(rank, CollectiveKind::kAllReduce);
  }
  const Trace before = trace_;
  Separate();
  EXPECT_EQ(trace_.communicators.size(), 1u);
  for (GlobalRank rank{0}; rank < 3; ++rank) {
    EXPECT_EQ(trace_.operations[GlobalRank{rank}], before.operations[GlobalRank{rank}]);
  }
  EXPECT_TRUE(report_.assumed.empty());
}

// NCCL runs both directions of a pair one after the other: two ranks that both send first wait for
// each other there, too.
TEST_F(PairCommunicatorsTest, APairThatWaitsForItselfStays) {
  SetRanks(2);
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    Add(rank, CollectiveKind::kSend, 1 - rank);
    Add(rank, CollectiveKind::kRecv, 1 - rank);
  }
  Separate();
  EXPECT_EQ(trace_.communicators.size(), 1u);
}

// A collective that some ranks call behind their messages is not what is separated.
TEST_F(PairCommunicatorsTest, OnlyTheGroupInTheCircleIsSeparated) {
  SetRanks(3);
  trace_.communicators.push_back({.name = "1", .ranks = GlobalRanksOf({0, 1, 2})});
  for (GlobalRank rank{0}; rank < 3; ++rank) {
    Add(rank, CollectiveKind::kSend, (rank + 1) % 3);
    Add(rank, CollectiveKind::kRecv, (rank + 2) % 3);
    if (rank > 0) {
      Add(rank, CollectiveKind::kRecv, rank - 1);
      trace_.operations[GlobalRank{rank}].back().communicator = 1;
    }
    if (rank < 2) {
      Add(rank, CollectiveKind::kSend, rank + 1);
      trace_.operations[GlobalRank{rank}].back().communicator = 1;
    }
  }
  Separate();
  EXPECT_EQ(trace_.communicators.size(), 2u + 3u);
  EXPECT_EQ(report_.assumed.size(), 1u);
  for (GlobalRank rank{0}; rank < 3; ++rank) {
    EXPECT_EQ(trace_.operations[GlobalRank{rank}].back().communicator, 1u);
  }
}

}  // namespace
}  // namespace railyard
