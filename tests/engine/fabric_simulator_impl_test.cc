// SPDX-License-Identifier: GPL-2.0-only
// Order of events, events of ns-3 beside those of the fabric, what runs ahead, and samples.
#include "simulator/engine/fabric_simulator_impl.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/nstime.h>
#include <ns3/object-factory.h>
#include <ns3/simulator.h>

#include "simulator/event_order/event_order.h"
#include "tests/engine/engine_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

class FabricSimulatorImplTest : public testing::EngineFixture {};

// --- Order -------------------------------------------------------------------------------------

TEST_F(FabricSimulatorImplTest, EventsOfOnePicosecondRunByClassThenIdAndNs3EventsLast) {
  ns3::Simulator::Schedule(
      ns3::PicoSeconds(500), +[] {});
  const ns3::EventId last = ns3::Simulator::Schedule(
      ns3::PicoSeconds(500), +[] {});
  engine().ScheduleFabric(500, event_order::kOperation, 0, 1);
  engine().ScheduleFabric(500, event_order::kArrival, 9, 2);
  engine().ScheduleFabric(500, event_order::kArrival, 7, 3);
  engine().ScheduleFabric(500, event_order::kFault, (uint64_t{1} << 50) - 1, 4);
  engine().ScheduleFabric(499, event_order::kOperation, 5, 5);
  on_event_ = [&](const Ran&) { EXPECT_FALSE(last.IsExpired()); };
  engine().Run();
  EXPECT_THAT(Targets(), ElementsAre(5, 4, 3, 2, 1));
  EXPECT_TRUE(last.IsExpired());
  EXPECT_EQ(engine().EventCount(), 7u);
  EXPECT_EQ(ns3::Simulator::GetEventCount(), 7u);
}

TEST_F(FabricSimulatorImplTest, RunBeforeEndsAtAPlaceWithinAPicosecondAndGoesOnFromThere) {
  const auto place = [](int64_t time_ps, EventClass event_class, uint64_t id) {
    return EventPlace{time_ps,
                      static_cast<uint64_t>(event_class) << FabricSimulatorImpl::kIdBits | id};
  };
  engine().ScheduleFabric(500, event_order::kArrival, 7, 1);
  engine().ScheduleFabric(500, event_order::kArrival, 9, 2);
  engine().ScheduleFabric(500, event_order::kOperation, 0, 3);
  engine().ScheduleFabric(900, event_order::kArrival, 1, 4);
  EXPECT_EQ(engine().RunBefore({}), 500);
  EXPECT_EQ(engine().RunBefore(place(500, event_order::kArrival, 9)), 500);
  EXPECT_THAT(Targets(), ElementsAre(1));
  // An event that is added meanwhile and is earlier than those that are left is not missed.
  engine().ScheduleFabric(500, event_order::kArrival, 8, 5);
  EXPECT_EQ(engine().RunBefore({900, 0}), 900);
  EXPECT_THAT(Targets(), ElementsAre(1, 5, 2, 3));
  EXPECT_EQ(engine().RunBefore({901, 0}), INT64_MAX);
  EXPECT_THAT(Targets(), ElementsAre(1, 5, 2, 3, 4));
  EXPECT_EQ(engine().EventCount(), 5u);
}

TEST_F(FabricSimulatorImplTest, RunBeforeEndsAfterTheEventThatStopsIt) {
  for (uint32_t i = 1; i <= 3; ++i) engine().ScheduleFabric(100, event_order::kArrival, i, i);
  on_event_ = [&](const Ran& ran) {
    if (ran.target == 2) engine().Stop();
  };
  EXPECT_EQ(engine().RunBefore({200, 0}), 100);
  EXPECT_THAT(Targets(), ElementsAre(1, 2));
  EXPECT_EQ(engine().last_place().time_ps, 100);
  EXPECT_EQ(engine().last_place().tie & 0xff, 2u);
  engine().RunBefore({200, 0});
  EXPECT_THAT(Targets(), ElementsAre(1, 2, 3));
}

TEST_F(FabricSimulatorImplTest, OrderDoesNotDependOnTheOrderOfInsertion) {
  struct Scheduled {
    int64_t time_ps;
    int event_class;
    uint64_t id;
  };
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Scheduled> events;
    for (uint64_t i = 0; i < 2'000; ++i) {
      const int64_t ranges_ps[] = {10, 3'000, 20 * kUs, 5 * kSecond};
      events.push_back({static_cast<int64_t>(random() % static_cast<uint64_t>(ranges_ps[i % 4])),
                        static_cast<int>(random() % 63), i});
    }
    std::vector<Scheduled> expected = events;
    std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
      return std::tie(a.time_ps, a.event_class, a.id) < std::tie(b.time_ps, b.event_class, b.id);
    });
    std::shuffle(events.begin(), events.end(), random);
    ns3::Simulator::Destroy();
    Connect();
    ran_.clear();
    for (const Scheduled& event : events) {
      engine().ScheduleFabric(event.time_ps, static_cast<EventClass>(event.event_class), event.id,
                              static_cast<uint32_t>(event.id));
    }
    engine().Run();
    ASSERT_EQ(ran_.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(ran_[i], (Ran{expected[i].time_ps, static_cast<EventClass>(expected[i].event_class),
                              static_cast<uint32_t>(expected[i].id)}))
          << "seed " << seed << ", event " << i;
    }
  }
}

TEST_F(FabricSimulatorImplTest, AnEventInsertedIntoThePresentPicosecondTakesItsPlaceInTheOrder) {
  engine().ScheduleFabric(1'000, event_order::kArrival, 1, 1);
  engine().ScheduleFabric(1'000, event_order::kArrival, 5, 5);
  engine().ScheduleFabric(1'000, event_order::kQueueTimer, 0, 20);
  engine().ScheduleFabric(1'001, event_order::kFault, 0, 30);
  on_event_ = [&](const Ran& ran) {
    if (ran.target == 1) {
      engine().ScheduleFabric(1'000, event_order::kQueuePort, 0, 10);
      engine().ScheduleFabric(1'000, event_order::kArrival, 3, 3);
      engine().ScheduleFabric(1'002, event_order::kFault, 0, 40);
      engine().ScheduleFabric(1'000, event_order::kPost, 0, 25);
    }
  };
  engine().Run();
  EXPECT_THAT(Targets(), ElementsAre(1, 3, 5, 10, 20, 25, 30, 40));
}

TEST_F(FabricSimulatorImplTest, SecondsAndPicosecondsMix) {
  engine().ScheduleFabric(3 * kSecond + 1, event_order::kQueueTimer, 1, 4);
  engine().ScheduleFabric(3 * kSecond, event_order::kQueueTimer, 1, 3);
  engine().ScheduleFabric(1, event_order::kQueueTimer, 1, 1);
  engine().ScheduleFabric(INT64_MAX, event_order::kQueueTimer, 1, 6);
  on_event_ = [&](const Ran& ran) {
    if (ran.target == 1) {
      engine().ScheduleFabric(kSecond, event_order::kQueueTimer, 1, 2);
    } else if (ran.target == 4) {
      engine().ScheduleFabric(ran.time_ps + 1, event_order::kQueueTimer, 1, 5);
    }
  };
  engine().Run();
  EXPECT_THAT(Targets(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(engine().NowPs(), INT64_MAX);
}

TEST_F(FabricSimulatorImplTest, AHundredThousandEventsAtTimeZeroRunInOrderOfId) {
  // Half of them are scheduled while the bucket of time zero is being drained.
  constexpr uint32_t kCount = 100'000;
  for (uint32_t i = 0; i < kCount; i += 2) {
    const uint32_t id = kCount - 2 - i;
    engine().ScheduleFabric(0, event_order::kArrival, id, id);
  }
  on_event_ = [&](const Ran& ran) {
    if (ran.target % 2 == 0) {
      engine().ScheduleFabric(0, event_order::kArrival, ran.target + 1, ran.target + 1);
    }
  };
  engine().Run();
  ASSERT_EQ(ran_.size(), kCount);
  for (uint32_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(ran_[i].target, i);
  }
  EXPECT_EQ(engine().NowPs(), 0);
}

// --- ns-3 beside fabric events -----------------------------------------------------------------

TEST_F(FabricSimulatorImplTest, AFabricEventSeesNoContextWhateverRanBefore) {
  uint32_t context_of_ns3_event = 0;
  ns3::Simulator::ScheduleWithContext(
      7, ns3::PicoSeconds(10), +[](uint32_t* context) { *context = ns3::Simulator::GetContext(); },
      &context_of_ns3_event);
  engine().ScheduleFabric(20, event_order::kPost, 0, 1);
  uint32_t context_of_fabric_event = 0;
  on_event_ = [&](const Ran&) { context_of_fabric_event = ns3::Simulator::GetContext(); };
  engine().Run();
  EXPECT_EQ(context_of_ns3_event, 7u);
  EXPECT_EQ(context_of_fabric_event, static_cast<uint32_t>(ns3::Simulator::NO_CONTEXT));
}

TEST_F(FabricSimulatorImplTest, AnOlderUidIsStillPendingWhenAFabricEventReachesItsTimeFirst) {
  const ns3::EventId older = ns3::Simulator::Schedule(
      ns3::PicoSeconds(100), +[] {});
  ns3::Simulator::Schedule(
      ns3::PicoSeconds(50), +[] {});
  engine().ScheduleFabric(100, event_order::kPost, 0, 1);
  bool was_pending = false;
  on_event_ = [&](const Ran&) { was_pending = older.IsRunning(); };
  engine().Run();
  EXPECT_TRUE(was_pending);
  EXPECT_TRUE(older.IsExpired());
}

TEST_F(FabricSimulatorImplTest, Ns3EventsScheduledByFabricEventsRunAtTheirTime) {
  engine().ScheduleFabric(100, event_order::kPost, 0, 1);
  int64_t ran_at_ps = -1;
  on_event_ = [&](const Ran&) {
    ns3::Simulator::Schedule(
        ns3::NanoSeconds(1), +[](int64_t* at_ps) { *at_ps = ns3::Simulator::Now().GetTimeStep(); },
        &ran_at_ps);
  };
  engine().Run();
  EXPECT_EQ(ran_at_ps, 1'100);
}

TEST_F(FabricSimulatorImplTest, ARemovedEventMovesNeitherTheClockNorTheCount) {
  engine().ScheduleFabric(10, event_order::kPost, 0, 1);
  const ns3::EventId id = ns3::Simulator::Schedule(
      ns3::MicroSeconds(5), +[] {});
  EXPECT_FALSE(ns3::Simulator::IsFinished());
  ns3::Simulator::Remove(id);
  EXPECT_TRUE(id.IsExpired());
  engine().Run();
  EXPECT_EQ(engine().NowPs(), 10);
  EXPECT_EQ(engine().EventCount(), 1u);
  // The wheel has passed the removed event; the present has not.
  engine().ScheduleFabric(11, event_order::kPost, 0, 2);
  engine().Run();
  EXPECT_THAT(Targets(), ElementsAre(1, 2));
  EXPECT_EQ(engine().NowPs(), 11);
}

TEST_F(FabricSimulatorImplTest, ACancelledEventMovesTheClockAndTheCountWithoutRunning) {
  const ns3::EventId id = ns3::Simulator::Schedule(
      ns3::MicroSeconds(5), +[] { FAIL(); });
  ns3::Simulator::Cancel(id);
  EXPECT_FALSE(ns3::Simulator::IsFinished());
  engine().Run();
  EXPECT_EQ(engine().NowPs(), 5 * kUs);
  EXPECT_EQ(engine().EventCount(), 1u);
}

// --- Ahead -------------------------------------------------------------------------------------

TEST_F(FabricSimulatorImplTest, WhatRunsAheadIsOverBeforeAnythingElseComes) {
  on_event_ = [this](const Ran& ran) {
    if (ran.target == 1) {
      engine().RunAhead([this] {
        engine().ScheduleFabric(7 * kUs, event_order::kPost, 10, 10);
        engine().ScheduleFabric(5 * kUs, event_order::kPost, 11, 11);
      });
      EXPECT_EQ(engine().NowPs(), kUs);
      engine().ScheduleFabric(2 * kUs, event_order::kPost, 2, 2);
    } else if (ran.target == 10) {
      engine().ScheduleFabric(9 * kSecond, event_order::kPost, 12, 12);
    }
  };
  engine().ScheduleFabric(kUs, event_order::kPost, 1, 1);
  engine().ScheduleFabric(6 * kUs, event_order::kPost, 3, 3);
  engine().ScheduleFabric(8 * kSecond, event_order::kPost, 4, 4);
  engine().Run();
  EXPECT_THAT(Targets(), ElementsAre(1, 11, 10, 12, 2, 3, 4));
  EXPECT_EQ(ran_[1].time_ps, 5 * kUs);
  EXPECT_EQ(ran_[3].time_ps, 9 * kSecond);
  EXPECT_EQ(ran_[4].time_ps, 2 * kUs);
  EXPECT_EQ(engine().EventCount(), 7u);
}

TEST_F(FabricSimulatorImplTest, ARunAheadMayBeginAtAnEarlierTimeThanTheLastEnded) {
  on_event_ = [this](const Ran& ran) {
    if (ran.target >= 10) return;
    engine().RunAhead([this] {
      for (uint32_t i = 0; i < 3; ++i) {
        engine().ScheduleFabric(engine().NowPs() + (3 - i) * kUs, event_order::kPost, 10 + i,
                                10 + i);
      }
    });
  };
  engine().ScheduleFabric(100 * kUs, event_order::kPost, 1, 1);
  engine().ScheduleFabric(101 * kUs, event_order::kPost, 2, 2);
  engine().Run();
  EXPECT_THAT(Targets(), ElementsAre(1, 12, 11, 10, 2, 12, 11, 10));
  EXPECT_EQ(ran_.back().time_ps, 104 * kUs);
}

TEST_F(FabricSimulatorImplTest, AnExceptionInARunAheadEndsItAndLeavesTheRest) {
  on_event_ = [this](const Ran& ran) {
    if (ran.target == 10) throw std::runtime_error("ahead");
    if (ran.target != 1) return;
    EXPECT_THROW(engine().RunAhead([this] {
      engine().ScheduleFabric(5 * kUs, event_order::kPost, 10, 10);
      engine().ScheduleFabric(6 * kUs, event_order::kPost, 11, 11);
    }),
                 std::runtime_error);
    EXPECT_EQ(engine().NowPs(), kUs);
  };
  engine().ScheduleFabric(kUs, event_order::kPost, 1, 1);
  engine().ScheduleFabric(2 * kUs, event_order::kPost, 2, 2);
  engine().Run();
  EXPECT_THAT(Targets(), ElementsAre(1, 10, 2));
}

TEST_F(FabricSimulatorImplTest, OnlyRemovedEventsLeftMeansFinished) {
  ns3::Simulator::Remove(ns3::Simulator::Schedule(
      ns3::Seconds(1), +[] {}));
  EXPECT_TRUE(ns3::Simulator::IsFinished());
}

TEST_F(FabricSimulatorImplTest, ANs3DelayBeyondTheEndOfTimeEndsThere) {
  engine().ScheduleFabric(10, event_order::kPost, 0, 1);
  on_event_ = [](const Ran&) {
    ns3::Simulator::Schedule(
        ns3::Simulator::GetMaximumSimulationTime(), +[] {});
  };
  engine().Run();
  EXPECT_EQ(engine().NowPs(), INT64_MAX);
  EXPECT_EQ(ns3::Simulator::GetMaximumSimulationTime().GetTimeStep(), INT64_MAX);
}

TEST_F(FabricSimulatorImplTest, AnotherSchedulerIsAcceptedAndChangesNothing) {
  ns3::Simulator::Schedule(
      ns3::NanoSeconds(1), +[] {});
  engine().ScheduleFabric(10, event_order::kPost, 0, 1);
  ns3::ObjectFactory factory("ns3::HeapScheduler");
  ns3::Simulator::SetScheduler(factory);
  engine().Run();
  EXPECT_EQ(engine().EventCount(), 2u);
  EXPECT_EQ(ns3::Simulator::GetSystemId(), 0u);
}

// --- Samples -----------------------------------------------------------------------------------

// A sample comes between two events, while it is still the time of the one before, and is no event.
TEST_F(FabricSimulatorImplTest, SamplesComeBetweenEvents) {
  for (const int64_t time_us : {1, 2, 3, 10, 11}) {
    engine().ScheduleFabric(time_us * kUs, event_order::kArrival, 0,
                            static_cast<uint32_t>(time_us));
  }
  std::vector<std::tuple<int64_t, int64_t>> samples;  // now, next
  engine().SetSample(2 * kUs, [&](int64_t next_event_ps) {
    samples.emplace_back(engine().NowPs() / kUs, next_event_ps / kUs);
    return std::max(next_event_ps, 4 * kUs);
  });
  ns3::Simulator::Run();
  // None before the event at 2 us, for it is not later; the one at 10 us is later than both.
  EXPECT_THAT(samples, ElementsAre(std::tuple(2, 3), std::tuple(3, 10), std::tuple(10, 11)));
  EXPECT_EQ(engine().EventCount(), 5u);
  engine().SetSample(0, {});
  engine().ScheduleFabric(12 * kUs, event_order::kArrival, 0, 12);
  ns3::Simulator::Run();
  EXPECT_EQ(samples.size(), 3u);
}

// Neither keeps the other from being seen.
TEST_F(FabricSimulatorImplTest, SamplesEndWithSimulatedTime) {
  int count = 0;
  engine().SetSample(1 * kUs, [&](int64_t next_event_ps) {
    ++count;
    return next_event_ps;
  });
  engine().SetTimeEnd(5 * kUs);
  for (const int64_t time_us : {1, 5, 6}) {
    engine().ScheduleFabric(time_us * kUs, event_order::kArrival, 0, 0);
  }
  ns3::Simulator::Run();
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(engine().HasReachedTimeEnd());
  EXPECT_EQ(engine().NowPs(), 5 * kUs);
}

}  // namespace
}  // namespace railyard
