// SPDX-License-Identifier: GPL-2.0-only
// The runner alone, on a machine that only tests have: a call is launched kLaunchPs after its begin
// and takes a millisecond then.
#include "simulator/replay/streams/stream_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/small_replay.h"

namespace railyard::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kCallPs = FakeHost::kLaunchPs + kPsPerMs;

// Ranks 0 and 1 make the same calls.
Job Two(const std::vector<TraceOperation>& calls, uint32_t communicators = 1) {
  return JobOf(std::vector<std::vector<uint32_t>>(communicators, {0, 1}), {calls, calls});
}

TEST(StreamRunnerTest, ACallLaunchesAndEndsWithItsLastChannel) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8, 3 * kPsPerUs)}), none);
  test.host.channels_ps = {kPsPerMs, 3 * kPsPerMs, 2 * kPsPerMs};
  test.Run();
  EXPECT_EQ(test.BeginPs(0), 3 * kPsPerUs);
  EXPECT_EQ(test.EndPs(0), 3 * kPsPerUs + FakeHost::kLaunchPs + 3 * kPsPerMs);
  EXPECT_EQ(test.ledger.calls_left(), 0u);
}

TEST(StreamRunnerTest, ACallWithoutChannelsEndsAsItLaunches) {
  NoReplay none;
  SmallReplay test(1, JobOf({{0}}, {{AllReduce(8)}}), none);
  test.host.channels_ps = {};
  test.Run();
  EXPECT_EQ(test.EndPs(0), FakeHost::kLaunchPs);
}

TEST(StreamRunnerTest, CallsOfAStreamFollowOneAnotherWithTheirGaps) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8), AllReduce(8, 7 * kPsPerUs), AllReduce(8)}), none);
  test.Run();
  EXPECT_EQ(test.BeginPs(0), 0);
  EXPECT_EQ(test.BeginPs(1), kCallPs + 7 * kPsPerUs);
  EXPECT_EQ(test.BeginPs(2), test.EndPs(1));
  EXPECT_EQ(test.EndPs(2), 3 * kCallPs + 7 * kPsPerUs);
}

TEST(StreamRunnerTest, StreamsOfCommunicatorsOfTheirOwnRunSideBySide) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8, 0, 0, 0), AllReduce(8, kPsPerUs, 1, 1)}, 2), none);
  test.Run();
  EXPECT_EQ(test.BeginPs(0), 0);
  EXPECT_EQ(test.BeginPs(1), kPsPerUs);
}

TEST(StreamRunnerTest, ACallWaitsForTheOneBeforeItOfItsCommunicator) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8, 0, 0, 0), AllReduce(8, 0, 0, 1)}), none);
  test.Run();
  EXPECT_EQ(test.BeginPs(1), kCallPs);
}

TEST(StreamRunnerTest, ACallWaitsForTheOneThatItNames) {
  NoReplay none;
  TraceOperation after = AllReduce(8, 2 * kPsPerUs, 1, 1);
  after.after = 1;  // the first
  SmallReplay test(1, Two({AllReduce(8, 0, 0, 0), after}, 2), none);
  test.Run();
  EXPECT_EQ(test.BeginPs(1), kCallPs + 2 * kPsPerUs);
}

TEST(StreamRunnerTest, SkewsAreDrawnOncePerRankWithinTheirLimit) {
  NoReplay none;
  Job job = Two({AllReduce(8), AllReduce(8)});
  job.parts[0].rank_skew_max_ps = kPsPerUs;
  SmallReplay test(1, job, none);
  std::vector<int64_t> at_ps;
  test.host.on_launch = [&](const Call&) {
    at_ps.push_back(FabricSimulatorImpl::Get().NowPs() - FakeHost::kLaunchPs);
  };
  test.Run();
  ASSERT_THAT(at_ps, SizeIs(4));
  for (size_t i = 0; i < 2; ++i) {
    const int64_t skew_ps = at_ps[i];
    EXPECT_GE(skew_ps, 0);
    EXPECT_LE(skew_ps, kPsPerUs);
    EXPECT_EQ(at_ps[2 + i], 2 * skew_ps + kCallPs) << "each operation begins so much later";
  }
  EXPECT_NE(at_ps[0], at_ps[1]);
}

// --- GPUs that are slow --------------------------------------------------------------------------

TEST(StreamRunnerTest, WhatASlowGpuComputesTakesLonger) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8), AllReduce(8, 10 * kPsPerUs)}), none);
  test.clock.SetSpeed(GpuIndex{0}, 0.5);
  test.Run();
  EXPECT_EQ(test.BeginPs(1), kCallPs + 10 * kPsPerUs);
  EXPECT_EQ(test.ledger.times()[1].last_start_ps, kCallPs + 20 * kPsPerUs);
}

// It stands still after 4 us of 10, for 100 us.
TEST(StreamRunnerTest, ComputationOfAGpuThatStoppedGoesOnWhereItWas) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8, 10 * kPsPerUs)}), none);
  const auto change = [&](double before, double after) {
    test.clock.SetSpeed(GpuIndex{0}, after);
    test.streams.ChangeSpeed(GpuIndex{0}, before, after);
    EXPECT_EQ(test.streams.has_stopped_computation(), after == 0);
  };
  ns3::Simulator::Schedule(ns3::MicroSeconds(4), [&] { change(1, 0); });
  ns3::Simulator::Schedule(ns3::MicroSeconds(104), [&] { change(0, 1); });
  test.Run();
  EXPECT_EQ(test.BeginPs(0), 10 * kPsPerUs);
  EXPECT_EQ(test.ledger.times()[0].last_start_ps, 110 * kPsPerUs);
}

// --- Parts of the job ----------------------------------------------------------------------------

TEST(StreamRunnerTest, APartThatIsHaltedBeginsAgainAtTheRequestedCall) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8), AllReduce(8)}), none);
  const int64_t halt_ps = kCallPs + kPsPerUs;  // in the second call
  const int64_t restart_ps = 5 * kPsPerMs;
  ns3::Simulator::Schedule(ns3::PicoSeconds(halt_ps), [&] {
    EXPECT_THAT(test.streams.RanksInCollectives(PartIndex{0}), ElementsAre(0, 1));
    EXPECT_EQ(test.streams.LastBeginPs(PartIndex{0}), kCallPs);
    test.ledger.Halt(PartIndex{0}, test.streams.Halt(PartIndex{0}));
    EXPECT_THAT(test.streams.RanksInCollectives(PartIndex{0}), IsEmpty());
    EXPECT_FALSE(test.streams.IsHeldUp(PartIndex{0}));
  });
  ns3::Simulator::Schedule(ns3::PicoSeconds(restart_ps), [&] {
    test.ledger.Restart(PartIndex{0}, {1, 1});
    test.streams.RestartAt(PartIndex{0}, {1, 1});
  });
  test.Run();
  EXPECT_EQ(test.EndPs(0), kCallPs);
  EXPECT_EQ(test.BeginPs(1), restart_ps);
  EXPECT_EQ(test.EndPs(1), restart_ps + kCallPs);
  EXPECT_EQ(test.ledger.calls_left(), 0u);
}

TEST(StreamRunnerTest, NothingOfAnAbortedPartBeginsOrEnds) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8), AllReduce(8)}), none);
  ns3::Simulator::Schedule(ns3::MicroSeconds(1), [&] {
    test.ledger.Abort(PartIndex{0}, "a test", 1 * kPsPerUs, test.streams.Abort(PartIndex{0}));
  });
  test.Run();
  EXPECT_EQ(test.ledger.calls_left(), 0u);
  EXPECT_EQ(test.ledger.times()[0].calls_ended, 0u);
  EXPECT_EQ(test.ledger.times()[1].calls_started, 0u);
}

// --- For replays ---------------------------------------------------------------------------------

// Says that calls of rank 0 end at a given time.
struct TellingReplay final : NoReplay {
  bool OnBegin(RunningIndex operation) override {
    if (streams->running()[operation].call.rank != 0) return false;
    streams->EndAt(operation, end_ps);
    return true;
  }
  StreamRunner* streams = nullptr;
  int64_t end_ps = 0;
};

TEST(StreamRunnerTest, ACallWithAGivenEndIsNotLaunched) {
  TellingReplay replay;
  SmallReplay test(1, Two({AllReduce(8)}), replay);
  replay.streams = &test.streams;
  replay.end_ps = 9 * kPsPerMs;
  test.Run();
  EXPECT_THAT(test.host.launched, ElementsAre(Call{GlobalRank{1}, 0}));
  EXPECT_EQ(test.EndPs(0), 9 * kPsPerMs);
}

TEST(StreamRunnerTest, ATrialIsKeptOrTakenBackAsAWhole) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8), AllReduce(8, kPsPerUs)}), none);
  test.streams.Start();
  const auto try_first = [&](bool keep) {
    test.streams.BeginTrial();
    const Call first = test.streams.BeginFirst();
    EXPECT_EQ(first, (Call{GlobalRank{0}, 0}));
    test.streams.EndInTrial(first, kPsPerMs);
    test.streams.EndTrial(keep);
  };
  const auto begins = [&] {
    std::vector<std::pair<int64_t, Call>> found;
    for (const StreamRunner::Pending& pending : test.streams.pending()) {
      found.emplace_back(pending.begin_ps, test.streams.CallOf(pending));
    }
    return found;
  };
  try_first(false);
  EXPECT_THAT(begins(), ElementsAre(std::pair(0, Call{GlobalRank{0}, 0}),
                                    std::pair(0, Call{GlobalRank{1}, 0})));
  try_first(true);
  EXPECT_THAT(begins(), ElementsAre(std::pair(0, Call{GlobalRank{1}, 0}),
                                    std::pair(kPsPerMs + kPsPerUs, Call{GlobalRank{0}, 1})));
  EXPECT_EQ(test.ledger.calls_started(), 0u);
}

// The computation that a trial stopped is not left over.
TEST(StreamRunnerTest, ATrialThatIsTakenBackLeavesNoStoppedComputation) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8), AllReduce(8, kPsPerUs)}), none);
  test.streams.Start();
  test.clock.SetSpeed(GpuIndex{0}, 0);
  test.streams.BeginTrial();
  test.streams.EndInTrial(test.streams.BeginFirst(), kPsPerMs);
  EXPECT_TRUE(test.streams.has_stopped_computation());
  test.streams.EndTrial(false);
  EXPECT_FALSE(test.streams.has_stopped_computation());
}

TEST(StreamRunnerTest, WhatRunsAheadTakesNoTimeAndIsInNoLedger) {
  NoReplay none;
  SmallReplay test(1, Two({AllReduce(8)}), none);
  test.streams.Start();
  const std::vector<StreamRunner::AheadCall> ahead = {
      {.call = {GlobalRank{0}, 0}, .begin_ps = 0},
      {.call = {GlobalRank{1}, 0}, .begin_ps = kPsPerUs}};
  std::vector<std::pair<size_t, int64_t>> ends;
  test.streams.RunAhead(ahead, [&](size_t call, const CriticalPath&) {
    EXPECT_TRUE(test.streams.is_ahead());
    ends.emplace_back(call, FabricSimulatorImpl::Get().NowPs());
  });
  EXPECT_THAT(ends, ElementsAre(std::pair(0u, kCallPs), std::pair(1u, kPsPerUs + kCallPs)));
  EXPECT_FALSE(test.streams.is_ahead());
  EXPECT_EQ(FabricSimulatorImpl::Get().NowPs(), 0);
  EXPECT_EQ(test.ledger.calls_started(), 0u);
  ns3::Simulator::Run();
  EXPECT_EQ(test.EndPs(0), kCallPs);
}

}  // namespace
}  // namespace railyard::testing
