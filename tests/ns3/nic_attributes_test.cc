// SPDX-License-Identifier: GPL-2.0-only
// NICs and routes of a fabric whose attributes a program of ns-3's sets by their paths.
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include <ns3/config.h>
#include <ns3/integer.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>

#include "tests/ns3/fabric_program.h"

namespace railyard {
namespace {

class NicAttributesTest : public testing::FabricProgramTest {
 protected:
  int64_t TimeWithWindowPs(const std::string& nics, uint64_t bytes) {
    return ResultOf(TwoServers(1),
                    [&] {
                      ns3::Config::Set("/Railyard/NicList/" + nics + "/WindowBytes",
                                       ns3::UintegerValue(bytes));
                    })
        .simulated_time_ps;
  }
};

// A ring waits for the slowest of its hops.
TEST_F(NicAttributesTest, AnAttributeByPathIsAsInTheScenario) {
  const int64_t plain_ps = ResultOf(TwoServers(1)).simulated_time_ps;
  const int64_t narrow_ps = TimeWithWindowPs("*", 64u << 10);
  EXPECT_GT(narrow_ps, plain_ps);
  ScenarioBuilder narrow = TwoServers(1);
  narrow.Set("nic.window", "64KiB");
  EXPECT_EQ(narrow_ps, ResultOf(narrow).simulated_time_ps);
  const int64_t of_one_ps = TimeWithWindowPs("0", 64u << 10);
  EXPECT_GT(of_one_ps, plain_ps);
  EXPECT_LE(of_one_ps, narrow_ps);
  EXPECT_EQ(TimeWithWindowPs("*", 512u << 10), plain_ps);  // the default
}

TEST_F(NicAttributesTest, CongestionControlByPathIsAsInTheScenario) {
  ScenarioBuilder incast("incast");
  incast.Fabric(scenario::RailOptimized{.servers = 4})
      .Add(scenario::Collective{.operation = scenario::Operation::kGather,
                                .size = DataSize::MiB(8)});
  const RunResult by_path = ResultOf(incast, [] {
    ns3::Config::Set("/Railyard/NicList/*/CongestionControl",
                     ns3::StringValue("railyard::Dcqcn[AlphaGain=0.5]"));
  });
  incast.Set("nic.congestion_control.dcqcn.alpha_gain", 0.5);
  const RunResult stated = ResultOf(incast);
  EXPECT_GT(stated.transport.cnp, 0u);
  EXPECT_EQ(by_path.transport.cnp, stated.transport.cnp);
  EXPECT_EQ(by_path.simulated_time_ps, stated.simulated_time_ps);
}

TEST_F(NicAttributesTest, DelaysOfRoutesByPathDecide) {
  // Each server has leaves of its own, so rings cross spines.
  ScenarioBuilder scenario("test");
  scenario.Fabric(scenario::RailOptimized{.servers = 2, .servers_per_leaf = 1, .spines = 2})
      .Add(scenario::Collective{.size = DataSize::MiB(16)})
      .Set("workload.algorithm", "RING")
      .Set("nccl.IB_TIMEOUT", 14)
      .Add(scenario::Fault{.name = "cut",
                           .kind = scenario::Fault::Kind::kLinkDown,
                           .link = "group0/leaf0--spine0",
                           .at = Duration::Us(50)});
  const auto time_ps = [&](int64_t delay_ps) {
    return ResultOf(scenario,
                    [delay_ps] {
                      ns3::Config::Set("/Railyard/Routing/ConvergenceDelayPs",
                                       ns3::IntegerValue(delay_ps));
                    })
        .simulated_time_ps;
  };
  EXPECT_LT(time_ps(1'000'000'000), time_ps(300'000'000'000));
}

TEST_F(NicAttributesTest, WhatAProgramSetsWronglyAborts) {
  const auto set = [this](const std::string& attribute, const std::string& value) {
    Create(RailyardHelper(TwoServers(1)));
    ns3::Config::Set("/Railyard/NicList/9/" + attribute, ns3::StringValue(value));
    ns3::Simulator::Run();
  };
  EXPECT_DEATH(set("MtuBytes", "1024"),
               "server1/nic1: MtuBytes is of all NICs and checked with the scenario");
  EXPECT_DEATH(set("WindowBytes", "4096"), "server1/nic1: a WindowBytes of 4096 .expected 16384");
  EXPECT_DEATH(set("CongestionControl", "railyard::Cubic"), "no congestion control of RDMA");
  EXPECT_DEATH(set("CongestionControl", "railyard::RegisteredControl[Name=mine]"),
               "\"mine\" is not registered");
}

TEST_F(NicAttributesTest, WithTcpNicsHaveNoAttributesOfTheirOwn) {
  ScenarioBuilder scenario = TwoServers(1);
  scenario.Set("nccl.NET", "Socket");
  Create(RailyardHelper(scenario));
  ns3::Config::Set("/Railyard/NicList/0/WindowBytes", ns3::UintegerValue(4u << 20));
  EXPECT_DEATH(ns3::Simulator::Run(), "with TCP sockets NICs differ in their rate alone");
}

}  // namespace
}  // namespace railyard
