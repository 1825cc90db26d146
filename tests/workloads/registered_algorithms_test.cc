// SPDX-License-Identifier: GPL-2.0-only
// Algorithms that are code, and the check of any algorithm that is written out.
#include "workloads/collectives/registered_algorithms.h"

#include <bit>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/collectives/explicit_check.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

constexpr CollectiveKind kAllReduce = CollectiveKind::kAllReduce;

std::string WrongWith(const ExplicitAlgorithm& algorithm) {
  SchedulePlace place;
  return WhatIsWrong(std::make_shared<const ExplicitAlgorithm>(algorithm), place);
}

TEST(RecursiveDoublingTest, AddsEverythingUpOnceInLogarithmicallyManySends) {
  for (uint32_t ranks = 2; ranks <= 256; ranks *= 2) {
    const auto algorithm = MakeAlgorithm("recursive_doubling", {kAllReduce, ranks});
    ASSERT_NE(algorithm, nullptr) << ranks;
    EXPECT_EQ(WrongWith(*algorithm), "") << ranks;
    int sends = 0;
    for (const ExplicitStep& step : algorithm->lanes.at({RankIndex{0}, 0}).front()) {
      if (step.step.send_to != kNoPeer) ++sends;
    }
    EXPECT_EQ(sends, std::bit_width(ranks) - 1) << ranks;
  }
}

TEST(RecursiveDoublingTest, ServesAllReduceOfPowersOfTwo) {
  EXPECT_EQ(MakeAlgorithm("recursive_doubling", {kAllReduce, 24}), nullptr);
  EXPECT_EQ(MakeAlgorithm("recursive_doubling", {CollectiveKind::kAllGather, 8}), nullptr);
}

TEST(RegisteredAlgorithmsTest, OneOfTheSameNameIsReplaced) {
  RegisterAlgorithm("none", [](const AlgorithmRequest&) { return nullptr; });
  EXPECT_THAT(RegisteredAlgorithms(), ::testing::IsSupersetOf({"none", "recursive_doubling"}));
  RegisterAlgorithm("none", [](const AlgorithmRequest& request) {
    return MakeAlgorithm("recursive_doubling", request);
  });
  EXPECT_NE(MakeAlgorithm("none", {kAllReduce, 4}), nullptr);
}

class ExplicitCheckTest : public ::testing::Test {
 protected:
  // A valid AllReduce of two ranks, to which each test makes one change.
  ExplicitAlgorithm algorithm_ = *MakeAlgorithm("recursive_doubling", {kAllReduce, 2});
  Step& first_ = algorithm_.lanes.at({RankIndex{0}, 0})[0][0].step;
};

TEST_F(ExplicitCheckTest, CountsOutsideTheirRangesAreMistakes) {
  algorithm_.chunk_count = 0;
  EXPECT_EQ(WrongWith(algorithm_), "0 chunks (expected 1 to 65536)");
  algorithm_.chunk_count = 1;
  algorithm_.channel_count = 65;
  EXPECT_EQ(WrongWith(algorithm_), "65 channels (expected 1 to 64)");
  algorithm_.channel_count = 1;
  algorithm_.rank_count = 1;
  EXPECT_EQ(WrongWith(algorithm_), "1 ranks (expected 2 to 1024)");
}

TEST_F(ExplicitCheckTest, NumbersThatDoNotExistAreMistakes) {
  first_.send_to = 2;
  EXPECT_EQ(WrongWith(algorithm_), "peer 2 (expected a rank from 0 to 1)");
  first_.send_to = kAllPeers;
  EXPECT_EQ(WrongWith(algorithm_), "peer -2 (expected a rank from 0 to 1)");
  first_.send_to = 1;
  algorithm_.lanes.at({RankIndex{0}, 0})[0][0].chunk = 1;
  EXPECT_EQ(WrongWith(algorithm_), "chunk 1 (expected at most 0)");
  algorithm_.lanes.at({RankIndex{0}, 0})[0][0].chunk = 0;
  EXPECT_EQ(WrongWith(algorithm_), "");
  algorithm_.lanes[{RankIndex{2}, 0}] = algorithm_.lanes.at({RankIndex{0}, 0});
  EXPECT_EQ(WrongWith(algorithm_), "steps of a rank or channel that does not exist");
}

TEST_F(ExplicitCheckTest, TwoLanesThatShareAPeerAreAMistake) {
  algorithm_.lanes.at({RankIndex{0}, 0}).push_back({{.step = {.send_to = 1, .load_local = true}}});
  EXPECT_THAT(WrongWith(algorithm_), HasSubstr("lanes 0 and 1 send to rank 1"));
}

TEST_F(ExplicitCheckTest, AContributionThatIsMissingIsAMistake) {
  algorithm_.lanes.at({RankIndex{0}, 0})[0][1].step.load_kept = false;
  EXPECT_THAT(WrongWith(algorithm_),
              HasSubstr("expected every rank to end with every contribution to its result once"));
}

}  // namespace
}  // namespace railyard
