// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/flow/max_min_rates.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kGbps = 1'000'000'000;

BundleId Add(MaxMinRates& rates, const std::vector<uint32_t>& links, uint32_t flows = 1) {
  std::vector<RouteLink> route;
  for (const uint32_t link : links) route.push_back({.link = LinkId{link}});
  const BundleId bundle = rates.AddBundle(route, 1);
  rates.SetFlows(bundle, flows);
  return bundle;
}

double GbpsOf(const MaxMinRates& rates, BundleId bundle) {
  return std::ldexp(static_cast<double>(rates.rate(bundle)), -kFlowRateBits) * 8e12 / 1e9;
}

// Rates are rounded down to 0.45 bit/s.
constexpr double kNear = 1e-6;

TEST(MaxMinRatesTest, AFlowAloneHasTheRateOfItsSlowestLink) {
  MaxMinRates rates(2);
  rates.SetCapacity(LinkId{0}, 400 * kGbps);
  rates.SetCapacity(LinkId{1}, 100 * kGbps);
  const BundleId flow = Add(rates, {0, 1});
  EXPECT_THAT(rates.Solve(), ElementsAre(flow));
  EXPECT_NEAR(GbpsOf(rates, flow), 100, kNear);
}

TEST(MaxMinRatesTest, FlowsShareABottleneckEqually) {
  MaxMinRates rates(1);
  rates.SetCapacity(LinkId{0}, 400 * kGbps);
  const BundleId one = Add(rates, {0});
  const BundleId seven = Add(rates, {0}, 7);
  rates.Solve();
  EXPECT_NEAR(GbpsOf(rates, one), 50, kNear);
  EXPECT_NEAR(GbpsOf(rates, seven), 50, kNear);
  rates.SetFlows(seven, 1);
  rates.Solve();
  EXPECT_NEAR(GbpsOf(rates, one), 200, kNear);
  rates.SetFlows(seven, 0);
  EXPECT_THAT(rates.Solve(), ElementsAre(one));
  EXPECT_NEAR(GbpsOf(rates, one), 400, kNear);
  EXPECT_EQ(rates.rate(seven), 0u);
}

// The parking lot: one flow crosses k links, and each link has a flow of its own besides.
TEST(MaxMinRatesTest, InAParkingLotAllHaveHalf) {
  constexpr uint32_t kLinks = 10;
  MaxMinRates rates(kLinks);
  std::vector<uint32_t> all;
  std::vector<BundleId> flows;
  for (uint32_t link = 0; link < kLinks; ++link) {
    rates.SetCapacity(LinkId{link}, 100 * kGbps);
    all.push_back(link);
    flows.push_back(Add(rates, {link}));
  }
  flows.push_back(Add(rates, all));
  rates.Solve();
  for (const BundleId flow : flows) EXPECT_NEAR(GbpsOf(rates, flow), 50, kNear);
}

// With unequal capacities the long flow has half of the smallest, and each short one the rest.
TEST(MaxMinRatesTest, WhatABottleneckElsewhereLeavesGoesToTheOthers) {
  MaxMinRates rates(3);
  for (uint32_t link = 0; link < 3; ++link)
    rates.SetCapacity(LinkId{link}, (link + 1) * 10 * kGbps);
  const BundleId all = Add(rates, {0, 1, 2});
  const BundleId first = Add(rates, {0});
  const BundleId second = Add(rates, {1});
  const BundleId third = Add(rates, {2});
  rates.Solve();
  EXPECT_NEAR(GbpsOf(rates, all), 5, kNear);
  EXPECT_NEAR(GbpsOf(rates, first), 5, kNear);
  EXPECT_NEAR(GbpsOf(rates, second), 15, kNear);
  EXPECT_NEAR(GbpsOf(rates, third), 25, kNear);
}

// As in section 6.5.2 of Bertsekas and Gallager: three sessions share one link; one of them shares
// the next link with a fourth, which takes the two thirds that are left; a fifth is alone.
TEST(MaxMinRatesTest, TheSessionsOfTheTextbook) {
  MaxMinRates rates(3);
  for (uint32_t link = 0; link < 3; ++link) rates.SetCapacity(LinkId{link}, 3 * kGbps);
  const BundleId first = Add(rates, {0, 1});
  const BundleId second = Add(rates, {0});
  const BundleId third = Add(rates, {0});
  const BundleId fourth = Add(rates, {1});
  const BundleId fifth = Add(rates, {2});
  rates.Solve();
  for (const BundleId session : {first, second, third}) {
    EXPECT_NEAR(GbpsOf(rates, session), 1, kNear);
  }
  EXPECT_NEAR(GbpsOf(rates, fourth), 2, kNear);
  EXPECT_NEAR(GbpsOf(rates, fifth), 3, kNear);
}

// A GPU's stores over four NVSwitches, to which it has 5, 4, 4 and 5 links of 25 GB/s.
TEST(MaxMinRatesTest, AStripedFlowHasTheSumOfItsLinks) {
  MaxMinRates rates(4);
  constexpr uint32_t kLanes[] = {5, 4, 4, 5};
  std::vector<RouteLink> route;
  for (uint32_t plane = 0; plane < 4; ++plane) {
    rates.SetCapacity(LinkId{plane}, kLanes[plane] * 200 * kGbps);
    route.push_back({.link = LinkId{plane}, .weight = kLanes[plane]});
  }
  const BundleId striped = rates.AddBundle(route, 18);
  rates.SetFlows(striped, 1);
  rates.Solve();
  EXPECT_NEAR(GbpsOf(rates, striped), 3600, 1e-3);
  // Another flow uses one plane only, 1 Tb/s wide, of which each of the two can have x, with
  // x + 5/18 x = 1 Tb/s.
  const BundleId other = Add(rates, {0});
  rates.Solve();
  EXPECT_NEAR(GbpsOf(rates, other), 1000 * 18.0 / 23, 1e-3);
  EXPECT_NEAR(GbpsOf(rates, striped), 1000 * 18.0 / 23, 1e-3);
}

TEST(MaxMinRatesTest, OnlyWhatSharesSomethingIsSolvedAgain) {
  MaxMinRates rates(4);
  for (uint32_t link = 0; link < 4; ++link) rates.SetCapacity(LinkId{link}, kGbps);
  const BundleId a = Add(rates, {0, 1});
  const BundleId b = Add(rates, {1, 2});
  const BundleId apart = Add(rates, {3});
  EXPECT_THAT(rates.Solve(), UnorderedElementsAre(a, b, apart));
  EXPECT_THAT(rates.Solve(), IsEmpty());
  const BundleId c = Add(rates, {0});
  EXPECT_THAT(rates.Solve(), UnorderedElementsAre(a, b, c));
  rates.SetFlows(apart, 2);
  EXPECT_THAT(rates.Solve(), ElementsAre(apart));
}

TEST(MaxMinRatesTest, CapacitiesMayChange) {
  MaxMinRates rates(2);
  rates.SetCapacity(LinkId{0}, 8 * kGbps);
  rates.SetCapacity(LinkId{1}, 8 * kGbps);
  const BundleId both = Add(rates, {0, 1});
  const BundleId one = Add(rates, {0});
  rates.Solve();
  rates.SetCapacity(LinkId{1}, 2 * kGbps);
  EXPECT_THAT(rates.Solve(), UnorderedElementsAre(both, one));
  EXPECT_NEAR(GbpsOf(rates, both), 2, kNear);
  EXPECT_NEAR(GbpsOf(rates, one), 6, kNear);
  rates.SetCapacity(LinkId{1}, 0);
  rates.Solve();
  EXPECT_EQ(rates.rate(both), 0u);
  EXPECT_NEAR(GbpsOf(rates, one), 8, kNear);
}

// Rates are max-min fair if and only if each flow has a bottleneck: a full link on which no flow is
// faster (Bertsekas and Gallager, proposition 6.5.2). Rates that are computed
// after every change and rates that are computed at once differ by rounding alone.
TEST(MaxMinRatesTest, InRandomNetworksEachFlowHasABottleneck) {
  constexpr uint32_t kLinks = 30;
  std::mt19937 random(1);
  const auto draw = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  for (int round = 0; round < 50; ++round) {
    MaxMinRates rates(kLinks);
    MaxMinRates at_once(kLinks);
    std::vector<uint64_t> capacities;
    for (uint32_t link = 0; link < kLinks; ++link) {
      capacities.push_back((1 + draw(8)) * 50 * kGbps);
      rates.SetCapacity(LinkId{link}, capacities.back());
      at_once.SetCapacity(LinkId{link}, capacities.back());
    }
    struct Route {
      std::vector<RouteLink> links;
      uint32_t whole = 0;
    };
    std::vector<Route> routes;
    for (uint32_t i = 0; i < 40; ++i) {
      Route route;
      std::vector<uint32_t> links(kLinks);
      for (uint32_t link = 0; link < kLinks; ++link) links[link] = link;
      std::ranges::shuffle(links, random);
      route.whole = 1 + draw(4);
      for (uint32_t hop = 0; hop <= draw(5); ++hop) {
        route.links.push_back({.link = LinkId{links[hop]}, .weight = 1 + draw(route.whole)});
      }
      rates.AddBundle(route.links, route.whole);
      at_once.AddBundle(route.links, route.whole);
      routes.push_back(route);
    }
    for (int change = 0; change < 100; ++change) {
      rates.SetFlows(BundleId{draw(40)}, draw(6));
      rates.Solve();
    }
    for (BundleId id{0}; id < routes.size(); ++id) at_once.SetFlows(id, rates.flows(id));
    at_once.Solve();
    std::vector<double> load(kLinks);
    std::vector<double> fastest(kLinks);
    for (BundleId id{0}; id < routes.size(); ++id) {
      const double rate = GbpsOf(rates, id);
      EXPECT_NEAR(rate, GbpsOf(at_once, id), 1e-5);
      if (rates.flows(id) == 0) continue;
      for (const RouteLink& over : routes[id].links) {
        load[over.link] += rate * rates.flows(id) * over.weight / routes[id].whole;
        fastest[over.link] = std::max(fastest[over.link], rate);
      }
    }
    for (uint32_t link = 0; link < kLinks; ++link) {
      EXPECT_LE(load[link], static_cast<double>(capacities[link] / kGbps) + 1e-9);
    }
    for (BundleId id{0}; id < routes.size(); ++id) {
      if (rates.flows(id) == 0) continue;
      EXPECT_TRUE(std::ranges::any_of(routes[id].links, [&](const RouteLink& over) {
        return load[over.link] > static_cast<double>(capacities[over.link] / kGbps) - 1e-5 &&
               fastest[over.link] <= GbpsOf(rates, id) + 1e-5;
      }));
    }
  }
}

}  // namespace
}  // namespace railyard
