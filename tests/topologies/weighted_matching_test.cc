// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/weighted_matching.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Pair = std::pair<uint32_t, uint32_t>;

// Returns the greatest weight of a matching of the vertices in `left`, a set of bits, by trying
// each partner of the lowest.
int64_t GreatestWeight(uint32_t left, const std::map<Pair, int64_t>& weights,
                       std::map<uint32_t, int64_t>& known) {
  if (left == 0) return 0;
  if (const auto found = known.find(left); found != known.end()) return found->second;
  uint32_t lowest = 0;
  while ((left >> lowest & 1) == 0) ++lowest;
  const uint32_t others = left & ~(1u << lowest);
  int64_t greatest = GreatestWeight(others, weights, known);
  for (uint32_t partner = lowest + 1; others >> partner != 0; ++partner) {
    const auto edge = weights.find({lowest, partner});
    if ((others >> partner & 1) == 0 || edge == weights.end()) continue;
    greatest = std::max(greatest,
                        edge->second + GreatestWeight(others & ~(1u << partner), weights, known));
  }
  return known[left] = greatest;
}

std::vector<WeightedEdge> EdgesOf(const std::map<Pair, int64_t>& weights) {
  std::vector<WeightedEdge> edges;
  for (const auto& [pair, weight] : weights) edges.push_back({pair.first, pair.second, weight});
  return edges;
}

TEST(HeaviestMatchingTest, TheGreatestSumCountsRatherThanTheGreatestEdge) {
  EXPECT_THAT(HeaviestMatching(4, {{0, 1, 5}, {1, 2, 8}, {3, 2, 5}}),
              ElementsAre(Pair{0, 1}, Pair{2, 3}));
  EXPECT_THAT(HeaviestMatching(4, {{0, 1, 5}, {2, 1, 11}, {2, 3, 5}}), ElementsAre(Pair{1, 2}));
  EXPECT_THAT(HeaviestMatching(3, {}), IsEmpty());
}

// An exhaustive search finds the same sum, with odd cycles and equal weights.
TEST(HeaviestMatchingTest, IsAsHeavyAsAnExhaustiveSearchFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    const uint32_t vertices = 2 + random() % 9;
    const int64_t weight_max = round % 3 == 0 ? 3 : int64_t{1} << 56;
    std::map<Pair, int64_t> weights;
    for (uint32_t a = 0; a < vertices; ++a) {
      for (uint32_t b = a + 1; b < vertices; ++b) {
        if (random() % 3 != 0) {
          weights[{a, b}] = std::uniform_int_distribution<int64_t>(1, weight_max)(random);
        }
      }
    }
    std::map<uint32_t, int64_t> known;
    int64_t sum = 0;
    std::set<uint32_t> matched;
    for (const Pair& pair : HeaviestMatching(vertices, EdgesOf(weights))) {
      sum += weights.at(pair);
      EXPECT_TRUE(matched.insert(pair.first).second && matched.insert(pair.second).second);
    }
    EXPECT_EQ(sum, GreatestWeight((1u << vertices) - 1, weights, known)) << "round " << round;
  }
}

TEST(HeaviestMatchingTest, TheGreatestWeightsDoNotOverflow) {
  constexpr int64_t kMost = int64_t{1} << 60;
  EXPECT_THAT(
      HeaviestMatching(
          5, {{0, 1, kMost}, {1, 2, kMost}, {0, 2, kMost - 1}, {2, 3, kMost}, {3, 4, kMost}}),
      ::testing::SizeIs(2));
}

}  // namespace
}  // namespace railyard
