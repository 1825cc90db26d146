// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/direct_connect.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/fabric_facts.h"
#include "tests/topologies/format_test.h"
#include "topologies/measures/fabric_measures.h"
#include "topologies/routing/deadlock.h"

namespace railyard {
namespace {

using testing::CablesOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Lines;
using testing::Radix;
using testing::SwitchDiameter;

DirectConnectSpec Spec(uint32_t servers, std::vector<ServerDemand> demands = {}) {
  DirectConnectSpec spec;
  spec.network.servers[0].count = servers;
  spec.demands = std::move(demands);
  return spec;
}

uint32_t CablesBetween(const FabricGraph& fabric, uint32_t a, uint32_t b) {
  uint32_t count = 0;
  const auto router = [&](uint32_t i) {
    return fabric.FindDevice("router" + std::to_string(i)).value();
  };
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(router(a), fabric.graph()))) {
    count += boost::target(edge, fabric.graph()) == router(b) ? 1 : 0;
  }
  return count;
}

TEST(DirectConnectTest, ARingWithoutDemandsIsARing) {
  DirectConnectSpec spec = Spec(9);
  spec.degree = 2;
  const FabricGraph fabric = MakeDirectConnect(spec);
  EXPECT_EQ(CablesOf(fabric, Tier::kDirect), 9u);
  EXPECT_EQ(SwitchDiameter(fabric), 4u);
}

TEST(DirectConnectTest, FurtherRingsHaveStridesThatShortenWays) {
  DirectConnectSpec spec = Spec(16);
  spec.rings = 2;
  const FabricGraph fabric = MakeDirectConnect(spec);
  // Strides 1 and 3, the odd number nearest to 4: |x + 3y| modulo 16 is at most 3 steps away.
  EXPECT_EQ(CablesBetween(fabric, 0, 3), 1u);
  EXPECT_EQ(CablesOf(fabric, Tier::kDirect), 32u);
  EXPECT_LE(SwitchDiameter(fabric), 4u);
  EXPECT_EQ(Radix(fabric, "router5"), 8u + 4);
}

TEST(DirectConnectTest, PairsThatExchangeMostGetCables) {
  std::vector<ServerDemand> demands;
  for (uint32_t i = 0; i < 4; ++i) demands.push_back({.from = i, .to = i + 4, .bytes = 100});
  demands.push_back({.from = 0, .to = 2, .bytes = 10});
  const FabricGraph fabric = MakeDirectConnect(Spec(8, demands));
  // Two rounds: the four pairs, and again, since half of 100 is more than 10.
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(CablesBetween(fabric, i, i + 4), 2u) << i;
  EXPECT_EQ(CablesBetween(fabric, 0, 2), 0u);
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(Radix(fabric, "router" + std::to_string(i)), 8u + 4);
  }
}

// The greatest matching of six servers has pairs that none of its servers would choose first.
TEST(DirectConnectTest, AMatchingIsTheGreatestRatherThanTheGreediest) {
  DirectConnectSpec spec = Spec(4, {{.from = 0, .to = 1, .bytes = 6},
                                    {.from = 1, .to = 2, .bytes = 7},
                                    {.from = 2, .to = 3, .bytes = 6}});
  spec.degree = 3;
  const FabricGraph fabric = MakeDirectConnect(spec);
  // Beside the ring 0-1-2-3.
  EXPECT_EQ(CablesBetween(fabric, 0, 1), 2u);
  EXPECT_EQ(CablesBetween(fabric, 2, 3), 2u);
  EXPECT_EQ(CablesBetween(fabric, 1, 2), 1u);
}

TEST(DirectConnectTest, NoRouterHasMoreThanItsDegree) {
  std::vector<ServerDemand> demands;
  for (uint32_t i = 0; i < 20; ++i) {
    for (uint32_t j = 0; j < 20; ++j) {
      if (i != j) demands.push_back({.from = i, .to = j, .bytes = 1 + (7 * i + 13 * j) % 101});
    }
  }
  for (const uint32_t degree : {2u, 3u, 6u, 9u}) {
    DirectConnectSpec spec = Spec(20, demands);
    spec.degree = degree;
    const FabricGraph fabric = MakeDirectConnect(spec);
    for (const DeviceId router : testing::Switches(fabric)) {
      EXPECT_LE(boost::out_degree(router, fabric.graph()), 8 + degree);
    }
    EXPECT_LT(SwitchDiameter(fabric), 20u) << "all are joined";
    EXPECT_TRUE(FindDeadlock(fabric).cycle.empty());
  }
}

// Boost 1.74's matching recursed without end on traffic such as this.
TEST(DirectConnectTest, AllPairsOfManyServersGetCables) {
  for (const uint32_t servers : {24u, 32u}) {
    std::vector<ServerDemand> demands;
    for (uint32_t i = 0; i < servers; ++i) {
      for (uint32_t j = 0; j < servers; ++j) {
        if (i != j) demands.push_back({.from = i, .to = j, .bytes = 1'000'000 + (37 * i + j) % 11});
      }
    }
    const FabricGraph fabric = MakeDirectConnect(Spec(servers, demands));
    // Two rings' ends, and a partner in each of two rounds.
    for (const DeviceId router : testing::Switches(fabric)) {
      EXPECT_EQ(boost::out_degree(router, fabric.graph()), 8u + 4);
    }
  }
}

TEST(DirectConnectTest, EachInvalidParameterHasItsMessage) {
  const auto check = [](auto change) {
    DirectConnectSpec spec = Spec(8, {{.from = 0, .to = 1, .bytes = 1}});
    change(spec);
    return Lines(CheckDirectConnect(spec));
  };
  EXPECT_THAT(check([](auto& s) { s.degree = 1; }),
              ElementsAre("degree: 1 is out of range (expected 2 to 64)"));
  EXPECT_THAT(check([](auto& s) { s.rings = 0; }),
              ElementsAre("rings: 0 is out of range (expected 1 to 32)"));
  EXPECT_THAT(check([](auto& s) { s.rings = 3; }),
              ElementsAre("degree: 4 is not enough for 3 rings (expected at least 6)",
                          "rings: 8 servers have only 2 different rings (expected at most 2)"));
  EXPECT_THAT(check([](auto& s) { s.direct.rate_bps = 0; }),
              ElementsAre("direct.rate: 0 bps is out of range (expected 1Mbps to 100Tbps)"));
  EXPECT_THAT(check([](auto& s) { s.direct.count = 0; }),
              ElementsAre("direct.count: 0 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(check([](auto& s) { s.network.servers[0].count = 2; }),
              ElementsAre("servers: there are 2 (expected 3 to 512)"));
  EXPECT_THAT(check([](auto& s) { s.network.servers[0].gpus = 0; }),
              ElementsAre("servers[0].gpus: 0 is out of range (expected 1 to 1024)"));
  EXPECT_THAT(check([](auto& s) { s.demands[0].to = 8; }),
              ElementsAre("demands[0].to: 8 is out of range (expected 0 to 7)"));
  EXPECT_THAT(check([](auto& s) { s.demands[0].to = 0; }),
              ElementsAre("demands[0].to: server 0 needs no cable to itself"));
  EXPECT_THAT(check([](auto& s) { s.demands[0].bytes = 0; }),
              ElementsAre("demands[0].bytes: 0 is out of range (expected 1 to "
                          "1152921504606846976)"));
}

class TrafficTest : public testing::FormatTest {
 protected:
  std::string FindingsOf(const std::string& csv) {
    Write("pairs.csv", csv);
    Load("f.textproto", "direct_connect { servers { count: 4 } degree: 3 traffic: \"pairs.csv\" }");
    return findings_;
  }
};

TEST_F(TrafficTest, APairsCsvOfAnEarlierRunDecidesTheCables) {
  Write("pairs.csv",
        "source_gpu,destination_gpu,tiers_crossed,payload_bytes\n"
        "0,1,NVLINK,999999999\n"  // within a server
        "0,17,HOST+NIC_LEAF,500\n"
        "25,9,HOST+NIC_LEAF,400\n"
        "0,31,HOST+NIC_LEAF,450\n");
  const auto fabric = Load(
      "f.textproto", "direct_connect { servers { count: 4 } degree: 3 traffic: \"pairs.csv\" }");
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_EQ(CablesBetween(*fabric, 0, 2), 1u);
  EXPECT_EQ(CablesBetween(*fabric, 1, 3), 1u);
}

TEST_F(TrafficTest, MistakesAreAtTheirLines) {
  EXPECT_THAT(FindingsOf(""), HasSubstr("the file is empty (expected a first line \"source_gpu,"));
  EXPECT_THAT(FindingsOf("a,b\n"),
              HasSubstr("pairs.csv:1:1: error: there is no column source_gpu"));
  const std::string head = "source_gpu,destination_gpu,payload_bytes\n";
  EXPECT_THAT(
      FindingsOf(head + "0,32,5\n"),
      HasSubstr("pairs.csv:2:3: error: destination_gpu: \"32\" (expected a whole number, 0 to "
                "31)"));
  EXPECT_THAT(FindingsOf(head + "0,8,-5\n"), HasSubstr("payload_bytes: \"-5\""));
  EXPECT_THAT(FindingsOf(head + "0,8\n"),
              HasSubstr("pairs.csv:2:1: error: 2 cells (expected 3, as"));
  EXPECT_THAT(FindingsOf(head + "0,1,5\n"),
              HasSubstr("direct_connect.traffic: nothing goes from server to server"));
  Load("f.textproto", "direct_connect { servers { count: 4 } traffic: \"no.csv\" }");
  EXPECT_THAT(findings_, HasSubstr("direct_connect.traffic: \"no.csv\": there is no such file"));
  Write("pairs.csv", head + "0,8,5\n");
  Load("f.textproto",
       "direct_connect { servers { count: 4 } traffic: \"pairs.csv\" "
       "demands { from: 1 to: 2 bytes: \"1KiB\" } }");
  EXPECT_THAT(findings_, HasSubstr("traffic: stands beside demands (expected one of the two)"));
  Load("f.textproto", "direct_connect { servers { count: 4 } }");
  EXPECT_THAT(findings_, HasSubstr("traffic: missing (expected a pairs.csv, or demands { })"));
  Load("f.textproto",
       "direct_connect { servers { count: 4 } demands { from: 1 to: 9 bytes: \"1KiB\" } }");
  EXPECT_THAT(findings_, HasSubstr("demands[0].to: 9 is out of range (expected 0 to 3)"));
}

}  // namespace
}  // namespace railyard
