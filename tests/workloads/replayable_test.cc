// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/replayable.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace railyard {
namespace {

constexpr ReplayChoice kRingSimple{Algorithm::kRing, Protocol::kSimple};

JobCollective Logged(Algorithm algorithm, Protocol protocol, const ReplayChoice& forced = {}) {
  JobCollective collective;
  collective.logged_algorithm = algorithm;
  collective.logged_protocol = protocol;
  collective.forced_algorithm = forced.algorithm;
  collective.forced_protocol = forced.protocol;
  return collective;
}

TEST(ReplayableTest, WhatTheScenarioForcesGoesBeforeWhatTheLogStates) {
  const auto tree_ll = [](const ReplayChoice& forced) {
    return StatedChoice(Logged(Algorithm::kTree, Protocol::kLl, forced));
  };
  EXPECT_EQ(tree_ll({}), (ReplayChoice{Algorithm::kTree, Protocol::kLl}));
  EXPECT_EQ(tree_ll(kRingSimple), kRingSimple);
  // The log's protocol was chosen for the log's algorithm.
  EXPECT_EQ(tree_ll({Algorithm::kRing, Protocol::kUnstated}),
            (ReplayChoice{Algorithm::kRing, Protocol::kUnstated}));
  EXPECT_EQ(tree_ll({Algorithm::kUnstated, Protocol::kSimple}),
            (ReplayChoice{Algorithm::kTree, Protocol::kSimple}));
  EXPECT_EQ(StatedChoice(Logged(Algorithm::kUnstated, Protocol::kUnstated)), ReplayChoice{});
}

TEST(ReplayableTest, TheListIsWhatIsReplayable) {
  const auto is_listed = [](const ReplayChoice& choice) {
    return std::ranges::count(ReplayableChoices(), choice) == 1;
  };
  for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
    EXPECT_TRUE(is_listed({Algorithm::kRing, protocol}));
    EXPECT_TRUE(is_listed({Algorithm::kTree, protocol}));
  }
  EXPECT_FALSE(is_listed({Algorithm::kCollnetChain, Protocol::kLl}));
  EXPECT_FALSE(is_listed({Algorithm::kNvls, Protocol::kLl}));
  EXPECT_FALSE(is_listed({Algorithm::kPat, Protocol::kLl128}));
}

TEST(ReplayableTest, NamesAreThoseOfLogs) {
  EXPECT_EQ(ReplayName({Algorithm::kTree, Protocol::kLl128}), "TREE/LL128");
  EXPECT_EQ(ReplayName({Algorithm::kTree, Protocol::kUnstated}), "TREE");
  EXPECT_EQ(ReplayName({Algorithm::kUnstated, Protocol::kLl}), "LL");
  EXPECT_EQ(ReplayName({}), "-");
}

}  // namespace
}  // namespace railyard
