// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/nccl/p2p_order.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workloads/layouts.h"

namespace railyard {
namespace {

using ::railyard::testing::Filled;
using ::railyard::testing::Nodes;
using ::testing::ElementsAre;

// In each round a rank sends to one rank and receives from one.
TEST(P2pOrder, MakesEveryRoundAPermutation) {
  for (const uint32_t version : {22705u, 22809u, 23007u}) {
    for (const CommunicatorLayout& layout :
         {Nodes(1, 1), Nodes(1, 6), Nodes(1, 8), Nodes(4, 8), Nodes(3, 5), Nodes(5, 3),
          Nodes({8, 4}), Nodes({8, 3, 1}), Nodes(2, 16, 16), Filled(61)}) {
      const P2pOrder order(layout, version, 16);
      const uint32_t n = static_cast<uint32_t>(layout.ranks.size());
      ASSERT_EQ(order.round_count(), n);
      for (RankIndex rank{0}; rank < n; ++rank) {
        std::set<uint32_t> sends;
        std::set<uint32_t> receives;
        for (RankIndex peer{0}; peer < n; ++peer) {
          sends.insert(order.RoundOf(rank, peer));
          receives.insert(order.RoundOf(peer, rank));
        }
        ASSERT_EQ(sends.size(), n);
        ASSERT_EQ(receives.size(), n);
        ASSERT_EQ(*sends.rbegin(), n - 1);
        ASSERT_EQ(order.RoundOf(rank, rank), 0u);
      }
    }
  }
}

TEST(P2pOrder, VisitsServersByTriangularNumbers) {
  // Deltas 0, 1, 3, 2 (6 mod 4) of four servers.
  const P2pOrder order(Nodes(4, 8), 22705, 16);
  EXPECT_EQ(order.RoundOf(RankIndex{0}, RankIndex{1}), 1u);
  EXPECT_EQ(order.RoundOf(RankIndex{0}, RankIndex{8}), 8u);
  EXPECT_EQ(order.RoundOf(RankIndex{0}, RankIndex{24}), 16u);
  EXPECT_EQ(order.RoundOf(RankIndex{0}, RankIndex{16}), 24u);
  EXPECT_EQ(order.RoundOf(RankIndex{5}, RankIndex{8 + (5 + 4) % 8}), 12u);
  EXPECT_EQ(order.RoundOf(RankIndex{24}, RankIndex{0}), 8u);
}

TEST(P2pOrder, SkipsDeltasBeyondTheNumberOfGroups) {
  // Three servers skip 3 of the residues 0, 1, 3, 2.
  const P2pOrder order(Nodes(3, 8), 22705, 16);
  EXPECT_EQ(order.RoundOf(RankIndex{0}, RankIndex{8}), 8u);
  EXPECT_EQ(order.RoundOf(RankIndex{0}, RankIndex{16}), 16u);
}

TEST(P2pOrder, SpreadsPartsOverChannelsBefore229) {
  // Round 9 is in the second group: base 1; parts 0..3 go 0, 8, 4, 12 channels on.
  const P2pOrder order(Nodes(4, 8), 22705, 16);
  const std::vector<uint32_t> channels = {order.ChannelOfPart(9, 0), order.ChannelOfPart(9, 1),
                                          order.ChannelOfPart(9, 2), order.ChannelOfPart(9, 3)};
  EXPECT_THAT(channels, ElementsAre(1, 9, 5, 13));
}

TEST(P2pOrder, SpreadsRoundsOverChannelsFrom229) {
  const P2pOrder order(Nodes(4, 8), 23007, 16);
  const std::vector<uint32_t> channels = {order.ChannelOfPart(9, 0), order.ChannelOfPart(9, 1),
                                          order.ChannelOfPart(17, 0), order.ChannelOfPart(31, 3)};
  EXPECT_THAT(channels, ElementsAre(8, 9, 4, 15));
}

TEST(P2pOrder, GivesEachRoundOfOneServerItsOwnChannel) {
  const P2pOrder order(Nodes(1, 8), 23007, 32);
  EXPECT_EQ(order.ChannelOfPart(1, 0), 16u);
  EXPECT_EQ(order.ChannelOfPart(3, 0), 24u);
}

}  // namespace
}  // namespace railyard
