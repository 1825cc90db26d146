// SPDX-License-Identifier: GPL-2.0-only
// Gates against the laws they are named for.
#include "workloads/plans/parallelism/expert_gate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <gtest/gtest.h>

namespace railyard {
namespace {

std::vector<double> Sorted(std::vector<double> shares) {
  std::sort(shares.rbegin(), shares.rend());
  return shares;
}

ExpertRouting Zipf(double exponent) {
  ExpertRouting routing;
  routing.gate = GateKind::kZipf;
  routing.zipf_exponent = exponent;
  return routing;
}

double Sum(const std::vector<double>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

TEST(ExpertGateTest, AUniformGateHasNoFavourites) {
  for (const double share : GateShares({.count = 60, .per_token = 4}, {}, 3, 0)) {
    EXPECT_NEAR(share, 1.0 / 60, 1e-15);
  }
}

TEST(ExpertGateTest, AZipfGateFollowsItsLaw) {
  const ExpertRouting routing = Zipf(0.7);
  const Experts experts{.count = 64, .per_token = 2};
  const std::vector<double> shares = GateShares(experts, routing, 0, 0);
  const std::vector<double> sorted = Sorted(shares);
  for (size_t i = 0; i < sorted.size(); ++i) {
    EXPECT_NEAR(sorted[i] / sorted[0], std::pow(i + 1, -0.7), 1e-12);
  }
  EXPECT_NEAR(Sum(shares), 1, 1e-12);
  EXPECT_NE(shares, GateShares(experts, routing, 1, 0)) << "layers have favourites of their own";
}

// A symmetric Dirichlet of n parts, concentration a: each has variance (1 / n) (1 - 1 / n) / (n a +
// 1). Over 4,000 draws of 8 parts the estimate is within a few percent.
TEST(ExpertGateTest, ADirichletGateHasItsVariance) {
  for (const double concentration : {0.5, 4.0}) {
    ExpertRouting routing;
    routing.gate = GateKind::kDirichlet;
    routing.dirichlet_concentration = concentration;
    const uint32_t layers = 4000;
    double square_sum = 0;
    for (uint32_t layer = 0; layer < layers; ++layer) {
      for (const double share : GateShares({.count = 8, .per_token = 1}, routing, layer, 0)) {
        square_sum += (share - 0.125) * (share - 0.125);
      }
    }
    const double variance = 0.125 * 0.875 / (8 * concentration + 1);
    EXPECT_NEAR(square_sum / (8 * layers) / variance, 1, 0.05) << concentration;
  }
}

TEST(ExpertGateTest, DriftEndsUniform) {
  ExpertRouting routing = Zipf(1);
  routing.drift_iterations = 4;
  const Experts experts{.count = 16, .per_token = 2};
  const double first = Sorted(GateShares(experts, routing, 0, 0))[0];
  const double half = Sorted(GateShares(experts, routing, 0, 2))[0];
  EXPECT_NEAR(half, (first + 1.0 / 16) / 2, 1e-12);
  for (const uint32_t iteration : {4u, 9u}) {
    EXPECT_NEAR(Sorted(GateShares(experts, routing, 0, iteration))[0], 1.0 / 16, 1e-12);
  }
}

// A token takes an expert once: of two per token none has more than half of the choices. Zipf's
// first of four with exponent 3 would have 0.85.
TEST(ExpertGateTest, AnExpertHasNoMoreThanATokenCanGiveIt) {
  const ExpertRouting routing = Zipf(3);
  const std::vector<double> shares =
      Sorted(GateShares({.count = 4, .per_token = 2}, routing, 0, 0));
  EXPECT_DOUBLE_EQ(shares[0], 0.5);
  EXPECT_NEAR(shares[1] / shares[2], std::pow(3.0 / 2, 3), 1e-9);
  EXPECT_NEAR(Sum(shares), 1, 1e-12);
}

// Each choice takes per_token different experts in groups_per_token groups, and each expert as
// often as its share says: 100,000 tokens, 4 standard deviations.
TEST(ExpertGateTest, ChoicesHaveTheGatesShares) {
  const Experts experts{.count = 64, .per_token = 8, .groups = 8, .groups_per_token = 4};
  const ExpertRouting routing = Zipf(1);
  const std::vector<double> shares = GateShares(experts, routing, 0, 0);
  ExpertChooser chooser(experts, shares, RandomStream(5, {}));
  RandomStream random(7, {});
  std::vector<double> counts(experts.count);
  std::vector<uint32_t> chosen;
  const int tokens = 100'000;
  for (int token = 0; token < tokens; ++token) {
    chooser.Choose(random, chosen);
    std::set<uint32_t> groups;
    for (const uint32_t expert : chosen) {
      ++counts[expert];
      groups.insert(expert / 8);
    }
    ASSERT_EQ(std::set<uint32_t>(chosen.begin(), chosen.end()).size(), 8u);
    ASSERT_EQ(groups.size(), 4u);
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    const double probability = 8 * shares[i];
    ASSERT_LE(probability, 1 + 1e-12);
    EXPECT_NEAR(counts[i] / tokens, probability,
                4 * std::sqrt(probability * (1 - probability) / tokens) + 1e-9);
  }
}

// A kernel sends a token once to each server: with 8 of 16 experts on the other one and two chosen
// of all, 1 - C(8,2) / C(16,2) of the tokens. NCCL's draws keep one order, in which a token of a
// uniform gate has one of 8 pairs of experts.
TEST(ExpertGateTest, ExpertsOfATokenAreIndependentForAKernel) {
  for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
    const Experts experts{.count = 16, .per_token = 2, .kernel = ExpertKernel::kDeepEp};
    ExpertChooser chooser(experts, std::vector<double>(16, 1.0 / 16), RandomStream(seed, {}));
    RandomStream random(seed, {7});
    std::vector<uint32_t> chosen;
    const int tokens = 32'768;
    int crossing = 0;
    std::set<std::set<uint32_t>> pairs;
    for (int token = 0; token < tokens; ++token) {
      chooser.Choose(random, chosen);
      crossing += std::ranges::any_of(chosen, [](uint32_t expert) { return expert >= 8; }) ? 1 : 0;
      pairs.insert({chosen.begin(), chosen.end()});
    }
    // The 16 tokens of an order are not independent: 5 standard deviations of orders.
    const double share = 1 - 28.0 / 120;
    EXPECT_NEAR(static_cast<double>(crossing) / tokens, share,
                5 * std::sqrt(share * (1 - share) / (tokens / 16.0)));
    EXPECT_EQ(pairs.size(), 120u);
  }
}

}  // namespace
}  // namespace railyard
