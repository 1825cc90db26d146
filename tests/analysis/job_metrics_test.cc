// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/metrics/job_metrics.h"

#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/analysis/made_up_run.h"

namespace railyard::testing {
namespace {

JobOutcome OutcomeOfFirst(const RunResult& run) { return OutcomeOfJob(run, run.jobs[0]); }

TEST(JobOutcomeTest, ComparesWithTheFaultFreeRun) {
  const JobOutcome outcome = OutcomeOfFirst(MadeUpRun());
  EXPECT_EQ(*outcome.goodput, 0.75);  // 15 ms of 20
  EXPECT_EQ(*outcome.lost_ps, 5 * kPsPerMs);
}

TEST(JobOutcomeTest, WithoutFaultsLosesNothing) {
  const JobOutcome outcome = OutcomeOfFirst(MadeUpRunWithoutFaults());
  EXPECT_EQ(*outcome.goodput, 1);
  EXPECT_EQ(*outcome.lost_ps, 0);
}

TEST(JobOutcomeTest, IsUnknownForFaultsWithoutAPairedRun) {
  RunResult run = MadeUpRun();
  run.has_baseline = false;
  EXPECT_FALSE(OutcomeOfFirst(run).goodput);
  EXPECT_FALSE(OutcomeOfFirst(run).lost_ps);
}

TEST(JobOutcomeTest, AnAbortedJobLostAllItsTime) {
  RunResult run = MadeUpRun();
  run.jobs[0].status = RunStatus::kJobAborted;
  EXPECT_EQ(*OutcomeOfFirst(run).goodput, 0);
  EXPECT_EQ(*OutcomeOfFirst(run).lost_ps, 20 * kPsPerMs);
}

TEST(JobOutcomeTest, AJobThatDoesNotEndInTheFaultFreeRunIsNotComparedWithIt) {
  RunResult run = MadeUpRun();
  run.jobs[0].baseline_end_ps = 0;
  EXPECT_FALSE(OutcomeOfFirst(run).goodput);
  EXPECT_FALSE(OutcomeOfFirst(run).lost_ps);
  EXPECT_FALSE(OutcomeOfFirst(run).effective_training_time_ratio);
}

// Its last operation ended at 20 ms; nothing is known to have stopped it, so it waits to the end.
TEST(JobOutcomeTest, AStalledJobLosesTheRestOfTheRun) {
  RunResult run = MadeUpRun();
  run.jobs[0].status = RunStatus::kStalled;
  run.simulated_time_ps = 100 * kPsPerMs;
  EXPECT_EQ(*OutcomeOfFirst(run).lost_ps, 100 * kPsPerMs);
}

// Another job of the run goes on for 80 ms; one that would have begun then lost nothing.
TEST(JobOutcomeTest, AnAbortedJobLosesNothingAfterItsEnd) {
  RunResult run = MadeUpRun();
  run.jobs[0].status = RunStatus::kJobAborted;
  run.simulated_time_ps = 100 * kPsPerMs;
  EXPECT_EQ(*OutcomeOfFirst(run).lost_ps, 20 * kPsPerMs);
  run.jobs[0].start_ps = 200 * kPsPerMs;
  run.jobs[0].end_ps = 0;
  EXPECT_EQ(*OutcomeOfFirst(run).lost_ps, 0);
}

// Two jobs; the second begins at 2 ms and has the last collective.
RunResult TwoJobs(RunResult run) {
  run.jobs[0].alone_end_ps = 10 * kPsPerMs;
  run.jobs.push_back({.name = "second",
                      .gpu_count = 2,
                      .start_ps = 2 * kPsPerMs,
                      .end_ps = 14 * kPsPerMs,
                      .baseline_end_ps = 11 * kPsPerMs,
                      .alone_end_ps = 8 * kPsPerMs});
  run.collectives[2].job = 1;
  run.collectives[0].alone_duration_ps = kPsPerMs;
  run.collectives[1].alone_duration_ps = 2 * kPsPerMs;
  run.collectives[2].alone_duration_ps = kPsPerMs;
  return run;
}

TEST(InterferenceTest, IsTimeBesideOthersOverTimeAlone) {
  const RunResult run = TwoJobs(MadeUpRunWithoutFaults());
  EXPECT_EQ(*Interference(run, run.jobs[0]), 2);  // 20 ms, 10 alone
  EXPECT_EQ(*Interference(run, run.jobs[1]), 2);  // 2 to 14 ms, 2 to 8 alone
  EXPECT_EQ(*AloneTimePs(run.jobs[1]), 6 * kPsPerMs);
  EXPECT_EQ(*Interference(run, run.collectives[0]), 1);
  EXPECT_EQ(*Interference(run, run.collectives[1]), 5);  // 10 ms, 2 alone
  EXPECT_EQ(InterferenceOfCollectives(run, 0)->mean, 3);
  EXPECT_EQ(InterferenceOfCollectives(run, 1)->max, 2);
}

TEST(InterferenceTest, LeavesFaultsOut) {
  const RunResult run = TwoJobs(MadeUpRun());
  EXPECT_EQ(*Interference(run, run.jobs[0]), 1.5);  // 15 ms without faults
  EXPECT_EQ(*Interference(run, run.jobs[1]), 1.5);  // 2 to 11 ms
  EXPECT_EQ(*Interference(run, run.collectives[1]), 1.25);
}

TEST(InterferenceTest, IsUnknownWithoutAPair) {
  RunResult run = TwoJobs(MadeUpRun());
  run.has_baseline = false;
  EXPECT_FALSE(Interference(run, run.jobs[0]));
  EXPECT_FALSE(InterferenceOfCollectives(run, 0));
  run = MadeUpRunWithoutFaults();
  EXPECT_FALSE(Interference(run, run.jobs[0]));
  EXPECT_FALSE(AloneTimePs(run.jobs[0]));
}

}  // namespace
}  // namespace railyard::testing
