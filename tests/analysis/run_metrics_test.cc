// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/metrics/run_metrics.h"

#include <optional>

#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/analysis/made_up_run.h"

namespace railyard {
namespace {

using testing::MadeUpRun;
using testing::MadeUpRunWithoutFaults;

TEST(BusbwTest, IsNcclTestsFormula) {
  // 10^8 bytes in 1 ms are 100 GB/s; AllReduce over 4 ranks counts 2(n-1)/n = 1.5 of that.
  EXPECT_DOUBLE_EQ(*BusbwGBps(MadeUpRun().collectives[0]), 150);
  // 10^8 bytes in 2 ms, AllGather: (n-1)/n = 0.75.
  EXPECT_DOUBLE_EQ(*BusbwGBps(MadeUpRun().collectives[2]), 37.5);
}

TEST(BusbwTest, DoesNotExistWithoutAnEndOrWithoutTime) {
  CollectiveResult collective = MadeUpRun().collectives[0];
  collective.last_end_ps = collective.first_start_ps;
  EXPECT_FALSE(BusbwGBps(collective));
  collective.completed = false;
  collective.last_end_ps = kNeverPs;
  EXPECT_FALSE(BusbwGBps(collective));
}

TEST(SlowdownTest, IsDurationOverBound) {
  EXPECT_EQ(*Slowdown(MadeUpRun().collectives[1]), 20);
  CollectiveResult unbound = MadeUpRun().collectives[1];
  unbound.bound_ps = 0;
  EXPECT_FALSE(Slowdown(unbound));
}

TEST(StretchTest, IsDurationOverThatOfThePairedRun) {
  const RunResult run = MadeUpRun();
  EXPECT_EQ(*Stretch(run, run.collectives[0]), 1);
  EXPECT_EQ(*Stretch(run, run.collectives[1]), 4);
}

TEST(StretchTest, MayBeBelowOne) {
  RunResult run = MadeUpRun();
  run.collectives[0].baseline_duration_ps = 2 * kPsPerMs;
  EXPECT_EQ(*Stretch(run, run.collectives[0]), 0.5);
}

TEST(StretchTest, IsOneForARunWithoutFaults) {
  const RunResult run = MadeUpRunWithoutFaults();
  EXPECT_EQ(*Stretch(run, run.collectives[1]), 1);
}

TEST(StretchTest, IsOneWhereBothDurationsAreZero) {
  RunResult run = MadeUpRun();
  run.collectives[0].last_end_ps = run.collectives[0].first_start_ps;
  run.collectives[0].baseline_duration_ps = 0;
  EXPECT_EQ(*Stretch(run, run.collectives[0]), 1);
}

TEST(StretchTest, IsUnknownForARunWithFaultsThatHasNoPairedRun) {
  RunResult run = MadeUpRun();
  run.has_baseline = false;
  EXPECT_FALSE(Stretch(run, run.collectives[0]));
  EXPECT_FALSE(TotalOfCollectives(run).stretches);
}

TEST(StretchTest, IsUnknownForWhatDidNotCompleteInBothRuns) {
  RunResult run = MadeUpRun();
  run.collectives[0].baseline_duration_ps = 0;
  EXPECT_FALSE(Stretch(run, run.collectives[0]));
  run.collectives[1].completed = false;
  EXPECT_FALSE(Stretch(run, run.collectives[1]));
}

TEST(MeasuredTest, CountsFromTheLastRanksStart) {
  RunResult run = MadeUpRun();
  CollectiveResult& collective = run.collectives[0];
  EXPECT_FALSE(MeasuredRatio(collective));
  EXPECT_TRUE(TotalsOfMeasured(run).empty());
  EXPECT_FALSE(MeasuredRatios(run));
  collective.first_start_ps = 0;
  collective.last_start_ps = 4 * kPsPerMs;
  collective.last_end_ps = 7 * kPsPerMs;
  collective.measured_ps = 2 * kPsPerMs;
  EXPECT_EQ(MeasuredRatio(collective), 1.5);
  collective.completed = false;
  EXPECT_FALSE(MeasuredRatio(collective));
}

TEST(MeasuredTest, SizesAndNumbersOfRanksAreSeparate) {
  RunResult run;
  const auto add = [&](uint64_t bytes, uint32_t ranks, int64_t simulated_ps, int64_t measured_ps) {
    CollectiveResult& collective = run.collectives.emplace_back();
    collective.kind = "AllReduce";
    collective.rank_count = ranks;
    collective.bytes = bytes;
    collective.last_end_ps = simulated_ps;
    collective.completed = true;
    collective.measured_ps = measured_ps;
  };
  add(8, 2, 30, 10);
  add(8, 2, 10, 20);
  add(8, 2, 20, 20);
  add(8, 4, 7, 7);
  add(9, 2, 5, 0);
  const std::vector<MeasuredTotals> totals = TotalsOfMeasured(run);
  ASSERT_EQ(totals.size(), 2u);
  EXPECT_EQ(totals[0].rank_count, 2u);
  EXPECT_EQ(totals[0].count, 3u);
  EXPECT_EQ(totals[0].measured_p50_ps, 20);
  EXPECT_EQ(totals[0].simulated_p50_ps, 20);
  EXPECT_EQ(totals[0].ratios.min, 0.5);
  EXPECT_EQ(totals[0].ratios.p50, 1);
  EXPECT_EQ(totals[0].ratios.max, 3);
  EXPECT_EQ(totals[1].rank_count, 4u);
  EXPECT_EQ(MeasuredRatios(run)->p50, 1);
}

TEST(CollectiveTotalsTest, CoverEveryKindTogetherAndEachAlone) {
  const RunResult run = MadeUpRun();
  const CollectiveTotals all = TotalOfCollectives(run);
  EXPECT_EQ(all.count, 3u);
  EXPECT_EQ(all.durations->p50_ps, 2 * kPsPerMs);
  EXPECT_EQ(all.stretches->mean, 2);  // (1 + 4 + 1) / 3
  const auto kinds = TotalsByKind(run);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].kind, "AllReduce");
  EXPECT_EQ(kinds[0].count, 2u);
  EXPECT_EQ(kinds[0].bytes, 200'000'000u);
  EXPECT_DOUBLE_EQ(kinds[0].busbw_GBps->min, 15);  // 150 GB/s, ten times slower
  EXPECT_EQ(kinds[1].kind, "AllGather");
  EXPECT_EQ(kinds[1].stretches->max, 1);
}

TEST(CollectiveTotalsTest, CountWhatDidNotCompleteButGiveItNoDuration) {
  RunResult run = MadeUpRun();
  run.collectives[1].completed = false;
  run.collectives[1].last_end_ps = kNeverPs;
  const CollectiveTotals all = TotalOfCollectives(run);
  EXPECT_EQ(all.count, 3u);
  EXPECT_EQ(all.durations->max_ps, 2 * kPsPerMs);
  EXPECT_EQ(all.stretches->max, 1);
}

TEST(TierTotalsTest, AreTheSumsOverTheTiersLinks) {
  const auto tiers = TotalsByTier(MadeUpRun());
  ASSERT_EQ(tiers.size(), 3u);
  EXPECT_EQ(tiers[0].tier, "NVLINK");
  EXPECT_EQ(tiers[0].links, 2u);
  EXPECT_EQ(tiers[0].payload_bytes, 6000u);
  EXPECT_EQ(tiers[0].header_bytes, 60u);
  EXPECT_EQ(tiers[0].payload_share, 0.75);
  EXPECT_EQ(tiers[1].tier, "NIC_LEAF");
  EXPECT_EQ(tiers[1].payload_bytes, 2000u);
  EXPECT_EQ(tiers[1].retransmitted_bytes, 300u);
  EXPECT_EQ(tiers[1].payload_share, 0.25);
  EXPECT_EQ(tiers[2].tier, "LEAF_SPINE");
  EXPECT_EQ(tiers[2].payload_share, 0);
}

TEST(PairCountsTest, CountOrderedPairsThatExchangedPayload) {
  const PairCounts pairs = CountPairs(MadeUpRun());
  EXPECT_EQ(pairs.active, 2u);  // the third has no payload
  EXPECT_EQ(pairs.possible, 12u);
  EXPECT_EQ(CountPairs(RunResult()).possible, 0u);
}

TEST(ShortFormShareTest, IsOfAllHops) { EXPECT_EQ(ShortFormShare(MadeUpRun()), 0.25); }

TEST(ShareTest, OfNothingIsZero) { EXPECT_EQ(Share(0, 0), 0); }

TEST(RunStatusNameTest, IsWhatTheSummarySays) {
  EXPECT_EQ(RunStatusName(RunStatus::kCompleted), "COMPLETED");
  EXPECT_EQ(RunStatusName(RunStatus::kJobAborted), "JOB_ABORTED");
  EXPECT_EQ(RunStatusName(RunStatus::kStalled), "STALLED");
  EXPECT_EQ(RunStatusName(RunStatus::kInterrupted), "INTERRUPTED");
  EXPECT_EQ(RunStatusName(RunStatus::kTimeEnded), "TIME_ENDED");
}

TEST(AddedByFaultsTest, SumsTheCollectivesThatEndedAfterItBegan) {
  RunResult run = MadeUpRun();
  run.collectives[0].added.timeout_ps = 7;  // over before it
  run.collectives[2].added.timeout_ps = 1;
  const std::vector<AddedTime> added = AddedByFaults(run);
  ASSERT_EQ(added.size(), 1u);
  EXPECT_EQ(added[0].timeout_ps, 5 * kPsPerMs + 1);
  EXPECT_EQ(added[0].queueing_ps, -kPsPerMs / 2);
  run.has_baseline = false;
  EXPECT_TRUE(AddedByFaults(run).empty());
}

TEST(AddedByFaultsTest, FaultsThatEndedTogetherShareWhatCameAfter) {
  RunResult run = MadeUpRun();
  run.faults = {run.faults[0], run.faults[0]};
  for (FaultResult& fault : run.faults) fault.collectives = {};
  for (CollectiveResult& collective : run.collectives) collective.added = {};
  run.collectives[2].added.queueing_ps = 10;  // it begins after their end
  const std::vector<AddedTime> added = AddedByFaults(run);
  ASSERT_EQ(added.size(), 2u);
  EXPECT_EQ(added[0].queueing_ps, 5);
  EXPECT_EQ(added[1].queueing_ps, 5);
}

// Concurrent faults each get the added time of their kind or their own losses, and an equal share
// of the rest; together they get all of it.
TEST(AddedByFaultsTest, FaultsAtTheSameTimeShareIt) {
  RunResult run = MadeUpRun();
  const FaultResult flap =
      run.faults[0];  // from 3 to 4 ms; the second collective lost packets to it
  FaultResult straggler = flap;
  straggler.kind = "STRAGGLER";
  straggler.until_ps = kNeverPs;
  straggler.collectives = {};
  FaultResult later = straggler;
  later.kind = "DELAY";
  later.from_ps = 1'000 * kPsPerMs;
  run.faults = {flap, straggler, later};
  run.collectives[1].added = {.queueing_ps = 5,
                              .retransmission_ps = 11,
                              .timeout_ps = 100,
                              .rerouting_ps = -3,
                              .slow_peer_ps = 40,
                              .other_ps = 0};
  run.collectives[2].added = {.queueing_ps = 9};
  const std::vector<AddedTime> added = AddedByFaults(run);
  ASSERT_EQ(added.size(), 3u);
  EXPECT_EQ(added[0].timeout_ps, 100);
  EXPECT_EQ(added[0].retransmission_ps, 11);
  EXPECT_EQ(added[0].slow_peer_ps, 0);
  EXPECT_EQ(added[1].slow_peer_ps, 40);
  EXPECT_EQ(added[1].timeout_ps, 0);
  EXPECT_EQ(added[0].queueing_ps, 2);
  EXPECT_EQ(added[1].queueing_ps, 3 + 9);  // the flap is over when the third collective begins
  EXPECT_EQ(added[0].rerouting_ps + added[1].rerouting_ps, -3);
  EXPECT_EQ(added[2].queueing_ps, 0);
  // With the straggler gone, the flap was the last.
  run.faults = {flap, later};
  EXPECT_EQ(AddedByFaults(run)[0].queueing_ps, 5 + 9);
}

TEST(TimeToFullBusbwTest, IsTheEndOfTheLastSlowCollective) {
  RunResult run = MadeUpRun();
  // The second collective, from 2 ms to 12 ms, is four times as long; the third is as ever.
  EXPECT_EQ(TimeToFullBusbwPs(run, run.faults[0]), 9 * kPsPerMs);
  // Nothing tells that the last one was the last slow one.
  run.collectives[2].baseline_duration_ps = kPsPerMs;
  EXPECT_EQ(TimeToFullBusbwPs(run, run.faults[0]), std::nullopt);
  // One that only waited for its last rank, as nobody did in the fault-free run, is as fast.
  run.collectives[2].last_start_ps = run.collectives[2].first_start_ps + kPsPerMs;
  EXPECT_EQ(TimeToFullBusbwPs(run, run.faults[0]), 9 * kPsPerMs);
  run.collectives[1].baseline_duration_ps = 10 * kPsPerMs;
  EXPECT_EQ(TimeToFullBusbwPs(run, run.faults[0]), 0);
  // The second collective does not end.
  run.collectives[1].completed = false;
  EXPECT_EQ(TimeToFullBusbwPs(run, run.faults[0]), std::nullopt);
  run.faults[0].until_ps = run.collectives[1].first_start_ps;  // the fault was over before
  EXPECT_EQ(TimeToFullBusbwPs(run, run.faults[0]), 0);
  run.faults[0].begins = 0;
  EXPECT_EQ(TimeToFullBusbwPs(run, run.faults[0]), std::nullopt);
}

TEST(StretchesAroundTest, AFaultThatNeverBeganHasNone) {
  RunResult run = MadeUpRun();
  EXPECT_TRUE(StretchesAround(run, run.faults[0]).before);
  run.faults[0].begins = 0;
  const StretchesAroundFault around = StretchesAround(run, run.faults[0]);
  EXPECT_FALSE(around.before || around.during || around.after);
}

}  // namespace
}  // namespace railyard
