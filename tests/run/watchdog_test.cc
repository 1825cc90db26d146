// SPDX-License-Identifier: GPL-2.0-only
// The watchdog alone: GPUs are halted by hand, while other events happen all the time.
#include "simulator/run/watchdog.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/replay_fixture.h"

namespace railyard::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

constexpr int64_t kLimitPs = 8 * kPsPerMs;
constexpr int64_t kLookPs = kLimitPs / 8;

class WatchdogTest : public ReplayFixture {
 protected:
  static constexpr uint64_t kFloats = 1 << 10;

  void Watch(const std::vector<TraceOperation>& program, Watchdog::OnBark on_bark = {}) {
    Programs programs = Idle();
    programs[0] = programs[1] = program;
    Build(JobOf({{0, 1}}, programs));
    watchdog_.emplace(settings_, engine(), *network_, *replay_, std::move(on_bark));
    watchdog_->SetOnEnd([this] {
      ended_ps_.push_back(engine().NowPs());
      ns3::Simulator::Stop();
    });
    watchdog_->Start();
  }
  // Something that is not the job's happens each `period_ps` until that time.
  void Tick(int64_t period_ps, int64_t until_ps) {
    if (engine().NowPs() >= until_ps) return;
    At(period_ps, [this, period_ps, until_ps] { Tick(period_ps, until_ps); });
  }
  // The GPU of rank 1 stands still from then on.
  void HaltAt(int64_t time_ps) {
    At(time_ps, [this] { replay_->SetGpuSpeed(GpuIndex{1}, 0); });
  }

  WatchdogSettings settings_{.no_progress_ps = kLimitPs};
  std::optional<Watchdog> watchdog_;
  std::vector<int64_t> ended_ps_;
};

TEST_F(WatchdogTest, ItLooksEightTimesWithinItsLimit) {
  Watch({AllReduce(kFloats)});
  EXPECT_EQ(watchdog_->LooksBefore(0), 0u);
  EXPECT_EQ(watchdog_->LooksBefore(kLookPs), 0u);
  EXPECT_EQ(watchdog_->LooksBefore(kLookPs + 1), 1u);
  EXPECT_EQ(watchdog_->LooksBefore(kLimitPs + 1), 8u);
}

// The call begins at once, and rank 1 never takes part in it.
TEST_F(WatchdogTest, ACallThatStandsStillIsEndedAnEighthLateAtMost) {
  Watch({AllReduce(kFloats)});
  replay_->SetGpuSpeed(GpuIndex{1}, 0);
  Tick(kPsPerUs * 100, kPsPerSecond);
  Run();
  EXPECT_FALSE(replay_->is_complete());
  ASSERT_THAT(ended_ps_, SizeIs(1));
  EXPECT_THAT(ended_ps_[0], AllOf(Ge(kLimitPs), Le(kLimitPs + kLookPs + kPsPerMs / 10)));
  EXPECT_TRUE(watchdog_->has_barked());
  EXPECT_EQ(watchdog_->why(), "nothing went on for 8 ms of simulated time");
}

// The ranks compute for ten times the limit.
TEST_F(WatchdogTest, ComputationIsProgress) {
  Watch({AllReduce(kFloats, 10 * kLimitPs)});
  Tick(kPsPerUs * 100, 11 * kLimitPs);
  Run();
  EXPECT_TRUE(replay_->is_complete());
  EXPECT_THAT(ended_ps_, IsEmpty());
  EXPECT_EQ(watchdog_->why(), "");
}

TEST_F(WatchdogTest, AComputationThatWasHaltedIsNone) {
  Watch({AllReduce(kFloats, 10 * kLimitPs)});
  HaltAt(kLimitPs);
  Tick(kPsPerUs * 100, kPsPerSecond);
  Run();
  EXPECT_THAT(ended_ps_,
              ElementsAre(AllOf(Ge(2 * kLimitPs - kLookPs), Le(2 * kLimitPs + kLookPs))));
}

// The job goes on after two of three barks, and each time it has the whole limit again.
TEST_F(WatchdogTest, AJobThatContinuesIsWatchedFromThenOn) {
  std::vector<int64_t> barked_ps;
  Watch({AllReduce(kFloats)}, [&](const std::string& why) {
    EXPECT_EQ(why, "nothing went on for 8 ms of simulated time");
    barked_ps.push_back(engine().NowPs());
    return barked_ps.size() < 3;
  });
  replay_->SetGpuSpeed(GpuIndex{1}, 0);
  Tick(kPsPerUs * 100, kPsPerSecond);
  Run();
  ASSERT_THAT(barked_ps, SizeIs(3));
  EXPECT_EQ(barked_ps[1] - barked_ps[0], kLimitPs);
  EXPECT_EQ(barked_ps[2] - barked_ps[1], kLimitPs);
  EXPECT_EQ(ended_ps_, std::vector<int64_t>{barked_ps[2]});
}

// Only its own looks would be left as events, and they do not keep the run going.
TEST_F(WatchdogTest, ARunWithoutEventsEndsByItself) {
  Watch({AllReduce(kFloats)});
  replay_->SetGpuSpeed(GpuIndex{1}, 0);
  Run();
  EXPECT_FALSE(watchdog_->has_barked());
  EXPECT_LT(engine().NowPs(), kLimitPs);
}

// Simulated time creeps: 1 ps each event.
TEST_F(WatchdogTest, RealTimeHasALimitToo) {
  settings_.no_progress_real_ps = 80 * kPsPerMs;
  Watch({AllReduce(kFloats)});
  replay_->SetGpuSpeed(GpuIndex{1}, 0);
  Tick(1, kPsPerSecond);
  Run();
  EXPECT_THAT(ended_ps_, SizeIs(1));
  EXPECT_EQ(watchdog_->why(), "nothing went on for 80 ms of real time");
}

}  // namespace
}  // namespace railyard::testing
