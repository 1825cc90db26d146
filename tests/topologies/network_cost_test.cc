// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/prices/network_cost.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/format_test.h"
#include "topologies/generators/fat_tree.h"
#include "topologies/generators/optical.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/platforms/platform.h"
#include "topologies/prices/prices.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

const PartCost& PartOf(const NetworkCost& cost, NetworkPart part) {
  for (const PartCost& of : cost.parts) {
    if (of.part == part) return of;
  }
  ADD_FAILURE() << "no " << NetworkPartName(part);
  return cost.parts.front();
}

TEST(NetworkCostTest, PartsAreCountedAndPricedByHand) {
  // 2 servers of 8 NICs, 8 leaves, 2 spines: 16 + 16 cables; 16 ports of NICs, 48 of switches.
  const NetworkCost cost = CostOf(MakeRailOptimized({.servers = 2}), PublicPrices());
  EXPECT_EQ(PartOf(cost, NetworkPart::kCable).count, 32u);
  EXPECT_EQ(PartOf(cost, NetworkPart::kNicTransceiver).count, 16u);
  EXPECT_EQ(PartOf(cost, NetworkPart::kSwitchPort).count, 48u);
  EXPECT_DOUBLE_EQ(cost.cost, 48 * 562.5 + 32 * 1'320);
  EXPECT_DOUBLE_EQ(cost.watts, 48 * (11.7 + 8.5) + 16 * 9);
}

TEST(NetworkCostTest, OtherRatesCountInProportion) {
  const double full = CostOf(MakeRailOptimized({.servers = 2, .spines = 0}), PublicPrices()).cost;
  const double half =
      CostOf(MakeRailOptimized({.servers = 2, .spines = 0, .nic_rate_bps = 200'000'000'000}),
             PublicPrices())
          .cost;
  EXPECT_DOUBLE_EQ(half * 2, full);
}

// Wang et al., arXiv 2307.12169: rail-only costs 38 to 77 % less than a full-bisection network for
// any to any, and draws 37 to 75 % less.
TEST(NetworkCostTest, RailOnlySavesWhatItsAuthorsSayAgainstTwoAndThreeTiers) {
  // 1,024 GPUs; a rail of 128 NICs on a switch of its own.
  const NetworkCost rail_only =
      CostOf(MakeRailOptimized({.servers = 128, .spines = 0}), PublicPrices());
  NetworkSpec network;
  network.servers[0].count = 128;
  const auto saving = [&](double part, double of) { return 1 - part / of; };
  for (const uint32_t tiers : {2u, 3u}) {
    const NetworkCost clos =
        CostOf(MakeFatTree({.network = network, .radix = tiers == 2 ? 64u : 16u, .tiers = tiers}),
               PublicPrices());
    EXPECT_GT(saving(rail_only.cost, clos.cost), 0.38) << tiers;
    EXPECT_LT(saving(rail_only.cost, clos.cost), 0.77) << tiers;
    EXPECT_GT(saving(rail_only.watts, clos.watts), 0.37) << tiers;
    EXPECT_LT(saving(rail_only.watts, clos.watts), 0.75) << tiers;
  }
  // By hand: a port and a cable for each NIC, against 3 and 2 with two full tiers.
  const NetworkCost two =
      CostOf(MakeFatTree({.network = network, .radix = 64, .tiers = 2}), PublicPrices());
  EXPECT_NEAR(saving(rail_only.cost, two.cost), 1 - (562.5 + 1'320) / (3 * 562.5 + 2 * 1'320),
              1e-9);
}

TEST(NetworkCostTest, OfCircuitsThoseThatExistAtATimeCount) {
  NetworkSpec network;
  network.servers[0].count = 8;
  const NetworkCost cost =
      CostOf(MakeOptical({.network = network, .circuit_switches = 6}), PublicPrices());
  // 16 racks of 6 uplinks.
  EXPECT_EQ(PartOf(cost, NetworkPart::kCircuitPort).count, 96u);
  EXPECT_EQ(PartOf(cost, NetworkPart::kCable).count, 64u + 48);
}

class PricesTest : public testing::FormatTest {
 protected:
  std::string FindingsOf(const std::string& text) {
    Diagnostics diagnostics;
    prices_ = LoadPrices(Write("prices.textproto", text), diagnostics);
    std::string findings = diagnostics.ToString();
    EXPECT_EQ(prices_.has_value(), findings.empty());
    return findings;
  }
  std::optional<Prices> prices_;
};

TEST_F(PricesTest, AUsersFileIsRead) {
  EXPECT_EQ(FindingsOf("currency: \"EUR\"\n"
                       "cable { rate: \"800Gbps\" cost: 100 cost_source: \"an offer\" }\n"),
            "");
  EXPECT_EQ(prices_->name, "prices");
  const NetworkCost cost = CostOf(MakeRailOptimized({.servers = 2}), *prices_);
  EXPECT_DOUBLE_EQ(cost.cost, 32 * 50.0);
  EXPECT_DOUBLE_EQ(cost.watts, 0);
  EXPECT_FALSE(PartOf(cost, NetworkPart::kSwitchPort).has_cost);
}

TEST_F(PricesTest, NumbersWithoutASourceAndAbsurdOnesAreErrors) {
  EXPECT_THAT(FindingsOf("currency: \"EUR\"\ncable { rate: \"1Gbps\" cost: 1 }\n"),
              HasSubstr("prices.textproto:2:1: error: cable.cost_source: missing (expected where "
                        "cost is from)"));
  EXPECT_THAT(FindingsOf("cable { rate: \"1Gbps\" cost: -1 cost_source: \"a\" }\n"),
              HasSubstr("cable.cost: -1 is out of range"));
  EXPECT_THAT(FindingsOf("cable { rate: \"1Gbps\" cost: 1 cost_source: \"a\" }\n"),
              HasSubstr("currency: missing"));
  EXPECT_THAT(FindingsOf("cable { watts: 1 watts_source: \"a\" }\n"),
              HasSubstr("cable.rate: missing"));
  EXPECT_THAT(FindingsOf("cable { rate: \"1bps\" watts: 1 watts_source: \"a\" }\n"),
              HasSubstr("cable.rate: 1 bps is out of range"));
  EXPECT_THAT(FindingsOf("cable { rate: \"1Gbps\" watts_source: \"a\" }\n"),
              HasSubstr("cable.watts_source: has no effect without watts"));
  EXPECT_THAT(FindingsOf("cables { }\n"), HasSubstr("did you mean \"cable\"?"));
}

TEST(PublicPricesTest, EveryNumberHasItsSource) {
  for (const PartPrice& part : PublicPrices().parts) {
    EXPECT_EQ(part.cost.has_value(), !part.cost_source.empty());
    EXPECT_EQ(part.watts.has_value(), !part.watts_source.empty());
  }
  EXPECT_EQ(PublicPrices().currency, "USD");
}

}  // namespace
}  // namespace railyard
