// SPDX-License-Identifier: GPL-2.0-only
// Ends of a simulation, and events from other threads.
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/nstime.h>
#include <ns3/simple-ref-count.h>
#include <ns3/simulator.h>

#include "simulator/event_order/event_order.h"
#include "tests/engine/engine_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

class EngineStopTest : public testing::EngineFixture {};

// --- Stop, exceptions, Destroy -----------------------------------------------------------------

TEST_F(EngineStopTest, StopFromAFabricEventEndsRunAfterThatEvent) {
  for (uint32_t i = 0; i < 4; ++i) {
    engine().ScheduleFabric(100, event_order::kArrival, i, i);
  }
  on_event_ = [&](const Ran& ran) {
    if (ran.target == 1) {
      ns3::Simulator::Stop();
    }
  };
  ns3::Simulator::Run();
  EXPECT_THAT(Targets(), ElementsAre(0, 1));
  EXPECT_TRUE(ns3::Simulator::IsFinished());
  ns3::Simulator::Run();
  EXPECT_THAT(Targets(), ElementsAre(0, 1, 2, 3));
}

TEST_F(EngineStopTest, StopAfterADelayComesBehindTheFabricEventsOfItsTime) {
  engine().ScheduleFabric(kUs, event_order::kOperation, 0, 1);
  engine().ScheduleFabric(kUs + 1, event_order::kFault, 0, 2);
  ns3::Simulator::Stop(ns3::MicroSeconds(1));
  ns3::Simulator::Run();
  EXPECT_THAT(Targets(), ElementsAre(1));
  EXPECT_EQ(engine().NowPs(), kUs);
  // Between the runs, an event before the one the wheel holds next.
  engine().ScheduleFabric(kUs, event_order::kFault, 0, 3);
  ns3::Simulator::Run();
  EXPECT_THAT(Targets(), ElementsAre(1, 3, 2));
}

TEST_F(EngineStopTest, AnExceptionLeavesRunAndTheNextRunGoesOnBehindIt) {
  for (uint32_t i = 0; i < 4; ++i) {
    engine().ScheduleFabric(100, event_order::kArrival, i, i);
  }
  ns3::Simulator::Schedule(
      ns3::PicoSeconds(150), +[] { throw std::runtime_error("ns-3 event"); });
  ns3::Simulator::Schedule(
      ns3::PicoSeconds(160), +[] {});
  on_event_ = [&](const Ran& ran) {
    if (ran.target == 1) {
      engine().ScheduleFabric(100, event_order::kQueuePort, 0, 9);
      throw std::runtime_error("fabric event");
    }
  };
  EXPECT_THROW(ns3::Simulator::Run(), std::runtime_error);
  EXPECT_THAT(Targets(), ElementsAre(0, 1));
  EXPECT_FALSE(ns3::Simulator::IsFinished());
  EXPECT_THROW(ns3::Simulator::Run(), std::runtime_error);
  EXPECT_THAT(Targets(), ElementsAre(0, 1, 2, 3, 9));
  EXPECT_EQ(engine().NowPs(), 150);
  ns3::Simulator::Run();
  EXPECT_EQ(engine().NowPs(), 160);
  EXPECT_EQ(engine().EventCount(), 7u);
}

// Counts its living instances; ns-3 holds one in each event's bound arguments.
class Counted : public ns3::SimpleRefCount<Counted> {
 public:
  Counted() { ++alive; }
  ~Counted() { --alive; }
  static int alive;
};
int Counted::alive = 0;

TEST_F(EngineStopTest, WhatPendingEventsHeldIsReleased) {
  const auto schedule = [](int64_t delay_ps) {
    return ns3::Simulator::Schedule(
        ns3::PicoSeconds(static_cast<uint64_t>(delay_ps)), +[](const ns3::Ptr<Counted>&) {},
        ns3::Create<Counted>());
  };
  schedule(1);
  schedule(kUs);
  schedule(kSecond);
  ns3::EventId removed = schedule(2 * kSecond);
  ASSERT_EQ(Counted::alive, 4);
  ns3::Simulator::Stop(ns3::PicoSeconds(2));
  ns3::Simulator::Run();
  EXPECT_EQ(Counted::alive, 3);  // run
  ns3::Simulator::Remove(removed);
  removed = ns3::EventId();
  EXPECT_EQ(Counted::alive, 2);  // removed: at once, not when its time comes
  ns3::Simulator::Destroy();
  EXPECT_EQ(Counted::alive, 0);
}

TEST_F(EngineStopTest, AfterDestroyANewSimulationStartsAtZeroWithoutHandlers) {
  engine().ScheduleFabric(kUs, event_order::kPost, 0, 1);
  engine().ScheduleFabric(kSecond, event_order::kPost, 0, 2);
  ns3::Simulator::Stop(ns3::MicroSeconds(2));
  ns3::Simulator::Run();
  ns3::Simulator::Destroy();
  Connect();
  EXPECT_EQ(engine().NowPs(), 0);
  EXPECT_EQ(engine().EventCount(), 0u);
  EXPECT_TRUE(ns3::Simulator::IsFinished());
  engine().ScheduleFabric(5, event_order::kPost, 0, 3);
  ns3::Simulator::Run();
  EXPECT_THAT(Targets(), ElementsAre(1, 3));
}

// --- Threads -----------------------------------------------------------------------------------

TEST_F(EngineStopTest, EventsFromOtherThreadsAllRunOnTheSimulationsThread) {
  constexpr int kThreads = 4;
  constexpr int kEventsEach = 2'000;
  struct Shared {
    std::thread::id simulation = std::this_thread::get_id();
    int events = 0;
    int elsewhere = 0;
    uint32_t contexts = 0;
  } shared;
  std::atomic<int> threads_left{kThreads};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&shared, &threads_left, t] {
      for (int i = 0; i < kEventsEach; ++i) {
        ns3::Simulator::ScheduleWithContext(
            t, ns3::NanoSeconds(3),
            +[](Shared* of) {
              ++of->events;
              of->elsewhere += std::this_thread::get_id() != of->simulation ? 1 : 0;
              of->contexts |= 1u << ns3::Simulator::GetContext();
            },
            &shared);
      }
      --threads_left;
    });
  }
  // Nothing but fabric events runs while the threads are at work.
  engine().ScheduleFabric(0, event_order::kPost, 0, 0);
  on_event_ = [&](const Ran& ran) {
    ran_.clear();
    if (threads_left > 0) {
      engine().ScheduleFabric(ran.time_ps + 1'000, event_order::kPost, 0, 0);
    }
  };
  ns3::Simulator::Run();
  for (std::thread& thread : threads) {
    thread.join();
  }
  ns3::Simulator::Run();  // what came after the last fabric event had been looked behind
  EXPECT_EQ(shared.events, kThreads * kEventsEach);
  EXPECT_EQ(shared.elsewhere, 0);
  EXPECT_EQ(shared.contexts, (1u << kThreads) - 1);
}

TEST_F(EngineStopTest, AnEventFromAnotherThreadInTheLastEventIsStillRun) {
  engine().ScheduleFabric(100, event_order::kPost, 0, 1);
  int64_t ran_at_ps = -1;
  on_event_ = [&](const Ran&) {
    std::thread([&ran_at_ps] {
      ns3::Simulator::ScheduleWithContext(
          1, ns3::PicoSeconds(50),
          +[](int64_t* at_ps) { *at_ps = ns3::Simulator::Now().GetTimeStep(); }, &ran_at_ps);
    }).join();
  };
  ns3::Simulator::Run();
  EXPECT_EQ(ran_at_ps, 150);
}

}  // namespace
}  // namespace railyard
