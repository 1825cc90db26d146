// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/replayable.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

constexpr ReplayChoice kRingSimple{Algorithm::kRing, Protocol::kSimple};

JobCollective Logged(Algorithm algorithm, Protocol protocol) {
  JobCollective collective;
  collective.logged_algorithm = algorithm;
  collective.logged_protocol = protocol;
  return collective;
}

TEST(ReplayableTest, WhatALogLeavesOpenIsReplayedAsTheFirstOfTheList) {
  EXPECT_EQ(ReplayableChoices().front(), kRingSimple);
  EXPECT_EQ(ReplayChoiceOf(Logged(Algorithm::kUnstated, Protocol::kUnstated), {}), kRingSimple);
  EXPECT_EQ(ReplayChoiceOf(Logged(Algorithm::kRing, Protocol::kUnstated), {}), kRingSimple);
  EXPECT_EQ(ReplayChoiceOf(Logged(Algorithm::kUnstated, Protocol::kSimple), {}), kRingSimple);
}

TEST(ReplayableTest, EveryChoiceOfTheListIsTakenWhereALogStatesIt) {
  for (const ReplayChoice& choice : ReplayableChoices()) {
    EXPECT_EQ(ReplayChoiceOf(Logged(choice.algorithm, choice.protocol), {}), choice);
  }
}

TEST(ReplayableTest, WhatIsNotInTheListIsReplayedOnlyWhenAChoiceIsForced) {
  const JobCollective pat = Logged(Algorithm::kPat, Protocol::kSimple);
  EXPECT_EQ(ReplayChoiceOf(pat, {}), std::nullopt);
  EXPECT_EQ(ReplayChoiceOf(pat, kRingSimple), kRingSimple);
  EXPECT_EQ(ReplayNameOf(pat, kRingSimple), "RING/SIMPLE");
}

TEST(ReplayableTest, AChoiceIsFoundByTheNameOfItsAlgorithm) {
  EXPECT_EQ(FindReplayable("RING"), kRingSimple);
  EXPECT_EQ(FindReplayable("BUTTERFLY"), std::nullopt);
}

TEST(ReplayableTest, NamesAreThoseOfLogs) {
  EXPECT_EQ(ReplayName({Algorithm::kTree, Protocol::kLl128}), "TREE/LL128");
  EXPECT_EQ(ReplayableNames().substr(0, 11), "RING/SIMPLE");
}

// NCCL's tuner has no say in Send and Recv, and on networks they use Simple.
TEST(ReplayableTest, SendsAndReceivesHaveANameOfTheirOwn) {
  JobCollective collective;
  collective.kind = CollectiveKind::kSend;
  EXPECT_EQ(ReplayNameOf(collective, {}), "P2P/SIMPLE");
  EXPECT_EQ(ReplayNameOf(collective, kRingSimple), "P2P/SIMPLE");
  collective.kind = CollectiveKind::kAllReduce;
  EXPECT_EQ(ReplayNameOf(collective, {}), "RING/SIMPLE");
}

}  // namespace
}  // namespace railyard
