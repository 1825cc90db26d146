// SPDX-License-Identifier: GPL-2.0-only
// Tests of what a run saves of its results while it goes on.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/metrics/run_metrics.h"
#include "analysis/writers/result_files.h"
#include "simulator/run/run_scenario.h"
#include "tests/run/program.h"
#include "tests/scenario/loaded_scenario.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

RunOptions WithoutCache(SavingOptions saving = {}) {
  return {.baseline = false,
          .replay_cache = ReplayCacheMode::kOff,
          .series = true,
          .saving = std::move(saving)};
}

class SavingTest : public ::testing::Test {
 protected:
  SavingTest()
      : loaded_(
            "fabric { rail_optimized { servers: 2 gpus_per_server: 2 } }\n"
            "workload { program { repeat: 12 collectives { kind: ALL_REDUCE bytes: \"16MiB\" } } "
            "}\n") {}

  LoadedScenario loaded_;
};

// A collective that has ended by then has the same end in the last result, and saving changes
// nothing.
TEST_F(SavingTest, IsTheBeginningOfTheResult) {
  ASSERT_NE(loaded_.scenario, nullptr) << loaded_.findings;
  std::vector<RunResult> saved;
  const RunResult end =
      RunScenario(*loaded_.scenario,
                  WithoutCache({.save = [&](const RunResult& so_far) { saved.push_back(so_far); },
                                .interval = std::chrono::milliseconds{1}}));
  EXPECT_EQ(end.status, RunStatus::kCompleted);
  ASSERT_GT(saved.size(), 1u);
  uint64_t completed_before = 0;
  for (const RunResult& so_far : saved) {
    EXPECT_EQ(RunStatusName(so_far.status), "RUNNING");
    EXPECT_EQ(so_far.status_detail, "these are its results so far");
    EXPECT_LE(so_far.simulated_time_ps, end.simulated_time_ps);
    ASSERT_EQ(so_far.collectives.size(), 12u);
    uint64_t completed = 0;
    for (size_t i = 0; i < so_far.collectives.size(); ++i) {
      const CollectiveResult& collective = so_far.collectives[i];
      if (!collective.completed) continue;
      ++completed;
      EXPECT_EQ(collective.first_start_ps, end.collectives[i].first_start_ps);
      EXPECT_EQ(collective.last_end_ps, end.collectives[i].last_end_ps);
    }
    EXPECT_GE(completed, completed_before);
    completed_before = completed;
    EXPECT_TRUE(so_far.conservation.Holds());
    EXPECT_LE(so_far.series.end_ps(), end.series.end_ps());
    EXPECT_LE(so_far.transfers_seen, end.transfers_seen);
  }
  EXPECT_LT(saved.front().conservation.injected_bytes, end.conservation.injected_bytes);
}

TEST_F(SavingTest, ChangesNothing) {
  ASSERT_NE(loaded_.scenario, nullptr) << loaded_.findings;
  const RunResult without = RunScenario(*loaded_.scenario, WithoutCache());
  int saves = 0;
  const RunResult with =
      RunScenario(*loaded_.scenario, WithoutCache({.save = [&](const RunResult&) { ++saves; },
                                                   .interval = std::chrono::milliseconds{1}}));
  EXPECT_GT(saves, 0);
  EXPECT_EQ(with.fingerprint, without.fingerprint);
  EXPECT_EQ(with.transfers_seen, without.transfers_seen);
  EXPECT_EQ(with.transfers.size(), without.transfers.size());
}

// A saved result is read as any other, and gives way to the one of the run that has ended.
TEST_F(SavingTest, IsAResultThatSaysItIsNotTheLast) {
  ASSERT_NE(loaded_.scenario, nullptr) << loaded_.findings;
  const ScratchDirectory scratch;
  const std::string partial = scratch.Path("out.partial");
  RunScenario(*loaded_.scenario,
              WithoutCache({.save = [&](const RunResult& so_far) { WriteResults(partial, so_far); },
                            .interval = std::chrono::milliseconds{1}}));
  EXPECT_THAT(ReadText(partial + "/summary.json"), HasSubstr("\"status\": \"RUNNING\""));
  RemoveResults(partial);
  EXPECT_THAT(scratch.Entries(), ::testing::IsEmpty());
}

TEST_F(SavingTest, OfAnotherDirectoryNothingIsRemoved) {
  const ScratchDirectory scratch;
  scratch.Write("mine.txt", "mine");
  RemoveResults(scratch.Path("."));
  RemoveResults(scratch.Path("absent"));
  EXPECT_THAT(scratch.Entries(), ::testing::ElementsAre("mine.txt"));
}

class SavingProgramTest : public ProgramTest {};

TEST_F(SavingProgramTest, APlaceForItThatIsTakenIsRefused) {
  const std::string scenario =
      scratch_.Write("short.textproto", RailOptimized(1) + Program("ALL_REDUCE", "1MiB"));
  const std::string taken = scratch_.Write("out.partial", "mine");
  const ProgramExit exit =
      RunningProgram(scratch_, {"run", scenario, "--out", scratch_.Path("out")}).Wait();
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("out.partial: it is not a directory"));
  EXPECT_EQ(ReadText(taken), "mine");
}

}  // namespace
}  // namespace railyard::testing
