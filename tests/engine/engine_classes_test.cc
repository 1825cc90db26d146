// SPDX-License-Identifier: GPL-2.0-only
// Classes of events, which clients register, and misuse.
#include <array>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include "simulator/event_order/event_order.h"
#include "tests/engine/engine_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

class EngineClassesTest : public testing::EngineFixture {};
using EngineClassesDeathTest = EngineClassesTest;

TEST_F(EngineClassesDeathTest, AnEventInThePastIsRefused) {
  engine().ScheduleFabric(100, event_order::kPost, 0, 1);
  engine().Run();
  EXPECT_DEATH(engine().ScheduleFabric(99, event_order::kPost, 3, 1),
               "fabric event at 99 ps, now 100 ps, class 21, id 3");
}

TEST_F(EngineClassesDeathTest, AnIdThatDoesNotFitIsRefused) {
  EXPECT_DEATH(engine().ScheduleFabric(5, event_order::kPost, uint64_t{1} << 50, 1),
               "fabric event at 5 ps, now 0 ps, class 21, id 1125899906842624");
}

TEST_F(EngineClassesDeathTest, TheClassOfNs3EventsIsNotForFabricEvents) {
  EXPECT_DEATH(engine().ScheduleFabric(5, EventClass::kNs3, 0, 1), "class 63, id 0");
  EXPECT_DEATH(engine().Register(EventClass::kNs3, {}, nullptr, nullptr),
               "ns-3 events have no handler");
}

// Two clients of one priority would leave their order to chance.
TEST_F(EngineClassesDeathTest, APriorityThatIsTakenIsRefused) {
  ns3::Simulator::Destroy();
  FabricSimulatorImpl& fresh = FabricSimulatorImpl::Get();
  const auto ignore = [](void*, uint32_t) {};
  fresh.Register(EventClass{5}, {.name = "arrivals"}, ignore, nullptr);
  EXPECT_DEATH(fresh.Register(EventClass{5}, {.name = "looks"}, ignore, nullptr),
               "priority 5 of looks is that of arrivals");
}

// Priorities decide, not the order in which clients came.
TEST_F(EngineClassesTest, ClientsMayRegisterInAnyOrder) {
  ns3::Simulator::Destroy();
  FabricSimulatorImpl& fresh = FabricSimulatorImpl::Get();
  std::vector<uint32_t> ran;
  const auto note = [](void* to, uint32_t target) {
    static_cast<std::vector<uint32_t>*>(to)->push_back(target);
  };
  for (const uint8_t priority : std::array<uint8_t, 4>{62, 0, 40, 17}) {
    fresh.Register(EventClass{priority}, {.name = "events"}, note, &ran);
    fresh.ScheduleFabric(5, EventClass{priority}, 0, priority);
  }
  fresh.Run();
  EXPECT_THAT(ran, ElementsAre(0, 17, 40, 62));
}

TEST_F(EngineClassesTest, AClassSaysWhatItsPendingEventsMean) {
  ns3::Simulator::Destroy();
  FabricSimulatorImpl& fresh = FabricSimulatorImpl::Get();
  fresh.Register(
      EventClass{5}, {.name = "faults", .pending = PendingMeans::kChange}, [](void*, uint32_t) {},
      nullptr);
  EXPECT_EQ(fresh.TraitsOf(EventClass{5}).pending, PendingMeans::kChange);
  EXPECT_EQ(fresh.TraitsOf(EventClass::kNs3).pending, PendingMeans::kAnything);
}

TEST_F(EngineClassesDeathTest, AClassWithoutAHandlerIsRefused) {
  ns3::Simulator::Destroy();
  FabricSimulatorImpl& fresh = FabricSimulatorImpl::Get();
  fresh.ScheduleFabric(5, event_order::kPost, 0, 42);
  EXPECT_DEATH(fresh.Run(), "fabric event of a class without a handler, target 42");
}

TEST_F(EngineClassesDeathTest, ANegativeDelayOfAnNs3EventIsRefused) {
  EXPECT_DEATH(ns3::Simulator::Schedule(
                   ns3::Time(-1), +[] {}),
               "ns-3 event with a delay of -1 ps");
}

}  // namespace
}  // namespace railyard
