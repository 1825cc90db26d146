// SPDX-License-Identifier: GPL-2.0-only
// ns-3's Simulator API on our engine against ns3::DefaultSimulatorImpl: the same random program
// must leave the same trace, line by line.
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ns3/config.h>
#include <ns3/event-id.h>
#include <ns3/nstime.h>
#include <ns3/simulator.h>
#include <ns3/uinteger.h>

#include "tests/engine/forked_run.h"

namespace railyard {
namespace {

// Schedules, withdraws and asks at random; every answer and every event run becomes a trace line.
// All draws come from one generator consumed in event order, so a single event out of order changes
// everything after it.
class RandomProgram {
 public:
  RandomProgram(uint64_t seed, int event_budget, bool log_uids, std::string& trace)
      : random_(seed), events_left_(event_budget), log_uids_(log_uids), trace_(trace) {}

  // Several Run() calls, some ended by Stop, with calls from outside between them; then Destroy.
  void Run() {
    for (int run = 0; events_left_ > 0; ++run) {
      for (int i = 0; i < 20; ++i) {
        Act();
      }
      LogState("before run");
      ns3::Simulator::Run();
      LogState("after run");
    }
    ns3::Simulator::Stop(ns3::MilliSeconds(3));
    ns3::Simulator::Run();
    LogState("stopped");
    ns3::Simulator::Run();
    LogState("drained");
    for (int i = 0; i < 10; ++i) {
      ns3::Simulator::Schedule(ns3::Seconds(1), &RandomProgram::OnEvent, this, next_tag_++);
    }
    Log("destroying with events left");
    ns3::Simulator::Destroy();
    Log("destroyed, now " + std::to_string(ns3::Simulator::Now().GetTimeStep()));
  }

 private:
  void Log(const std::string& line) { (trace_ += line) += '\n'; }

  void LogState(const std::string& what) {
    Log(what + " at " + std::to_string(ns3::Simulator::Now().GetTimeStep()) + " context " +
        std::to_string(ns3::Simulator::GetContext()) + " events " +
        std::to_string(ns3::Simulator::GetEventCount()) + " finished " +
        std::to_string(ns3::Simulator::IsFinished()));
  }

  uint64_t Draw(uint64_t below) { return random_() % below; }

  ns3::Time RandomDelay() {
    switch (Draw(9)) {
      case 0:
        return ns3::PicoSeconds(0);
      case 1:
      case 2:
        return ns3::PicoSeconds(Draw(4));
      case 3:
        return ns3::PicoSeconds(Draw(600));
      case 4:
        return ns3::NanoSeconds(Draw(50));  // equal times are common
      case 5:
      case 6:
        return ns3::PicoSeconds(Draw(2'000'000));
      case 7:
        return ns3::PicoSeconds(Draw(40'000'000));
      default:
        return ns3::PicoSeconds(Draw(5'000'000'000'000));
    }
  }

  void Remember(const ns3::EventId& id) {
    if (log_uids_) {
      Log("uid " + std::to_string(id.GetUid()) + " at " + std::to_string(id.GetTs()));
    }
    if (ids_.size() < 300) {
      ids_.push_back(id);
    } else {
      ids_[Draw(ids_.size())] = id;
    }
  }

  void OnEvent(uint64_t tag) {
    LogState("event " + std::to_string(tag));
    // On average a little over one successor per event, while the budget lasts.
    for (uint64_t actions = Draw(6); actions > 0; --actions) {
      Act();
    }
  }

  void OnDestroy(uint64_t tag) {
    LogState("destroy event " + std::to_string(tag));
    if (tag % 5 == 0) {
      ns3::Simulator::ScheduleDestroy(&RandomProgram::OnDestroy, this, tag + 1);
    }
  }

  void Act() {
    const uint64_t action = Draw(20);
    if (action < 9 && --events_left_ < 0) {
      return;
    }
    const uint64_t tag = next_tag_++;
    if (action < 6) {
      Remember(ns3::Simulator::Schedule(RandomDelay(), &RandomProgram::OnEvent, this, tag));
    } else if (action < 7) {
      Remember(ns3::Simulator::ScheduleNow(&RandomProgram::OnEvent, this, tag));
    } else if (action < 9) {
      ns3::Simulator::ScheduleWithContext(static_cast<uint32_t>(Draw(10)), RandomDelay(),
                                          &RandomProgram::OnEvent, this, tag);
    } else if (action < 10) {
      if (Draw(8) == 0) {
        Remember(ns3::Simulator::ScheduleDestroy(&RandomProgram::OnDestroy, this, tag));
      }
    } else if (action < 11) {
      if (Draw(200) == 0) {
        Draw(2) == 0 ? ns3::Simulator::Stop() : ns3::Simulator::Stop(RandomDelay());
        Log("stop");
      }
    } else if (!ids_.empty()) {
      ActOn(ids_[Draw(ids_.size())]);
    }
  }

  void ActOn(const ns3::EventId& id) {
    switch (Draw(8)) {
      case 0:
        ns3::Simulator::Cancel(id);
        Log("cancelled " + std::to_string(id.IsExpired()));
        break;
      case 1:
        ns3::Simulator::Remove(id);
        Log("removed " + std::to_string(id.IsExpired()));
        break;
      default:
        Log("expired " + std::to_string(id.IsExpired()) + " running " +
            std::to_string(id.IsRunning()) + " left " +
            std::to_string(ns3::Simulator::GetDelayLeft(id).GetTimeStep()));
    }
  }

  std::mt19937_64 random_;
  int events_left_;
  bool log_uids_;
  std::string& trace_;
  uint64_t next_tag_ = 0;
  std::vector<ns3::EventId> ids_;
};

void ExpectSameTrace(const std::function<void(std::string&)>& program, size_t lines_at_least) {
  const std::string expected = RunForked(Implementation::kNs3Default, program);
  const std::string actual = RunForked(Implementation::kFabric, program);
  EXPECT_GT(std::count(expected.begin(), expected.end(), '\n'),
            static_cast<std::ptrdiff_t>(lines_at_least));
  EXPECT_EQ(FirstDifference(expected, actual), "");
}

TEST(Ns3EquivalenceTest, RandomProgramsLeaveTheSameTraceAsTheDefaultImplementation) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ExpectSameTrace(
        [seed](std::string& trace) { RandomProgram(seed, 20'000, /*log_uids=*/true, trace).Run(); },
        20'000);
  }
}

TEST(Ns3EquivalenceTest, ASecondSimulationAfterDestroyLeavesTheSameTraceToo) {
  ExpectSameTrace(
      [](std::string& trace) {
        for (uint64_t seed = 11; seed <= 13; ++seed) {
          RandomProgram(seed, 10'000, /*log_uids=*/true, trace).Run();
        }
      },
      30'000);
}

TEST(Ns3EquivalenceTest, EventUidsMayWrapInMidRun) {
  constexpr uint64_t kUidCount = (uint64_t{1} << 32) - ns3::EventId::VALID;
  ns3::Config::SetDefault("railyard::FabricSimulatorImpl::NextEventSequence",
                          ns3::UintegerValue(kUidCount - 5'000));
  ExpectSameTrace(
      [](std::string& trace) { RandomProgram(14, 20'000, /*log_uids=*/false, trace).Run(); },
      20'000);
  ns3::Config::SetDefault("railyard::FabricSimulatorImpl::NextEventSequence",
                          ns3::UintegerValue(0));
}

}  // namespace
}  // namespace railyard
