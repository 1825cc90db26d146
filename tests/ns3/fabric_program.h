// SPDX-License-Identifier: GPL-2.0-only
// A program of ns-3's with one fabric after another.
#pragma once

#include <cstdint>
#include <functional>

#include <gtest/gtest.h>

#include <ns3/config.h>
#include <ns3/ptr.h>
#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>
#include <ns3/string.h>

#include "railyard/ns3/fabric_simulation.h"
#include "railyard/ns3/railyard_helper.h"

namespace railyard::testing {

class FabricProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RailyardHelper::UseEngine();
    // ns-3 waits up to 10 ms before it asks for an address.
    ns3::Config::SetDefault("ns3::ArpL3Protocol::RequestJitter",
                            ns3::StringValue("ns3::ConstantRandomVariable[Constant=0]"));
  }
  void TearDown() override {
    fabric_ = nullptr;
    ns3::Simulator::Destroy();
    ns3::RngSeedManager::SetSeed(1);
  }

  static ScenarioBuilder TwoServers(uint32_t repeat = 2, uint64_t mebibytes = 16) {
    ScenarioBuilder scenario("test");
    scenario.Fabric(scenario::RailOptimized{.servers = 2})
        .Add(scenario::Collective{.size = DataSize::MiB(mebibytes), .repeat = repeat})
        .Set("workload.algorithm", "RING");
    return scenario;
  }
  void Create(const RailyardHelper& helper) {
    Diagnostics diagnostics;
    fabric_ = helper.Create(diagnostics);
    ASSERT_NE(fabric_, nullptr) << diagnostics.ToString();
  }
  // Returns the result of a scenario for which `set` has set attributes.
  RunResult ResultOf(
      const ScenarioBuilder& scenario, const std::function<void()>& set = [] {}) {
    Create(RailyardHelper(scenario));
    set();
    ns3::Simulator::Run();
    RunResult result = fabric_->GetResult();
    TearDown();
    return result;
  }

  ns3::Ptr<FabricSimulation> fabric_;
};

}  // namespace railyard::testing
