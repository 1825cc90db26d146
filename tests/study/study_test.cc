// SPDX-License-Identifier: GPL-2.0-only
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

class StudyTest : public ProgramTest {
 protected:
  ProgramExit Study(const std::string& lines) {
    scratch_.Write("base.textproto",
                   RailOptimized(2) + Program("ALL_REDUCE", "1MiB") +
                       "faults { name: \"f\" kind: LOSS link: \"server*/nic*--leaf*\" at: \"0s\" "
                       "loss { probability: 0.01 } }\n");
    return Railyard({"study", scratch_.Write("s.textproto", lines), "--out", scratch_.Path("study"),
                     "--jobs", "2"});
  }
};

TEST_F(StudyTest, EveryPointAndSeedIsARowAndEveryPointHasItsStatistics) {
  const ProgramExit exit = Study(
      "scenario: \"base.textproto\"\n"
      "sets: \"nccl.IB_TIMEOUT=8\"\n"
      "axes { name: \"loss\" fields: \"faults[0].loss.probability\" values: [\"0\", \"0.02\"] }\n"
      "axes { name: \"window\" fields: \"nic.window\" values: [\"128KiB\", \"512KiB\"] }\n"
      "seeds: 3\n"
      "figures: [\"collectives.stretch.max\", \"transport.retransmitted_packets\"]\n");
  ASSERT_EQ(exit.status, 0) << exit.errors;
  const Table points = ReadCsv(scratch_.Path("study") + "/points.csv");
  ASSERT_EQ(points.size(), 12u);
  for (size_t row = 0; row < points.size(); ++row) {
    EXPECT_EQ(points.Integer(row, "seed"), static_cast<int64_t>(row % 3) + 1);
    EXPECT_EQ(points.Integer(row, "point"), static_cast<int64_t>(row / 3));
    EXPECT_EQ(points.Text(row, "loss"), row < 6 ? "0" : "0.02");
    EXPECT_EQ(points.Text(row, "window"), row / 3 % 2 == 0 ? "128KiB" : "512KiB");
    EXPECT_EQ(points.Text(row, "status"), "COMPLETED");
    EXPECT_EQ(points.Real(row, "transport.retransmitted_packets") > 0, row >= 6);
    EXPECT_EQ(points.Text(row, "collectives.stretch.max") == "1", row < 6);
  }
  const Table statistics = ReadCsv(scratch_.Path("study") + "/statistics.csv");
  ASSERT_EQ(statistics.size(), 8u);
  EXPECT_EQ(statistics.Integer(0, "runs"), 3);
  EXPECT_EQ(statistics.Real(0, "mean"), 1);
  const double sum = points.Real(6, "collectives.stretch.max") +
                     points.Real(7, "collectives.stretch.max") +
                     points.Real(8, "collectives.stretch.max");
  EXPECT_NEAR(statistics.Real(4, "mean"), sum / 3, 1e-9);
  // A run by hand is the same.
  const EndedRun run = RunFile(scratch_.Path("base.textproto"),
                               {"--seed", "2", "--set", "nccl.IB_TIMEOUT=8", "--set",
                                "faults[0].loss.probability=0.02", "--set", "nic.window=128KiB"});
  EXPECT_DOUBLE_EQ(run.Real("collectives.stretch.max"), points.Real(7, "collectives.stretch.max"));
}

TEST_F(StudyTest, WhatIsWrongIsFoundAllAtOnce) {
  const ProgramExit exit = Study("scenario: \"none\"\naxes { }\n");
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("s.textproto:1:1: error: scenario: "));
  EXPECT_THAT(exit.errors, HasSubstr("s.textproto:2:1: error: axes[0].fields: missing"));
  EXPECT_THAT(exit.errors, HasSubstr("error: figures: missing"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.Path("study")));
}

TEST_F(StudyTest, AMistypedFigureIsRefused) {
  const ProgramExit exit = Study(
      "scenario: \"base.textproto\"\n"
      "figures: [\"collectives.stretch.maxx\", \"faults.0.ranks_hit\"]\n");
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("s.textproto:2:"));
  EXPECT_THAT(exit.errors, HasSubstr("\"collectives.stretch.maxx\" is no number of a summary.json "
                                     "(did you mean \"collectives.stretch.max\"?"));
  EXPECT_THAT(exit.errors, ::testing::Not(HasSubstr("ranks_hit")));
  EXPECT_FALSE(std::filesystem::exists(scratch_.Path("study")));
}

// Nothing has run and nothing is in the way of the next try.
TEST_F(StudyTest, AValueThatTheScenarioDoesNotTakeIsFoundFirst) {
  const ProgramExit exit = Study(
      "scenario: \"base.textproto\"\n"
      "axes { fields: \"nic.window\" values: [\"128KiB\", \"wide\"] }\n"
      "figures: \"collectives.stretch.max\"\n");
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("s.textproto:2:"));
  EXPECT_THAT(exit.errors, HasSubstr(": error: axes[0].values[1]: nic.window: "));
  EXPECT_FALSE(std::filesystem::exists(scratch_.Path("study")));
}

// An empty value removes the field, of which the scenario then says that it is missing.
TEST_F(StudyTest, AnEmptyValueThatRemovesWhatTheScenarioNeedsIsFoundAtTheValue) {
  const ProgramExit exit = Study(
      "scenario: \"base.textproto\"\n"
      "axes {\n"
      "  fields: \"fabric\"\n"
      "  values: [\n"
      "    \"{ preset: \\\"dgx-h100\\\" }\",\n"
      "    \"\"\n"
      "  ]\n"
      "}\n"
      "figures: \"collectives.stretch.max\"\n");
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("s.textproto:6:5: error: axes[0].values[1]: fabric: missing"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.Path("study")));
}

TEST_F(StudyTest, WhatAllRunsSetIsFoundWhereTheStudySetsIt) {
  const ProgramExit exit = Study(
      "scenario: \"base.textproto\"\n"
      "sets: \"nic.window=wide\"\n"
      "sets: [\"faults[0].kindd=LOSS\",\n"
      "       \"garbage\"]\n"
      "sets: \"fabric=\"\n"
      "figures: \"collectives.stretch.max\"\n");
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("s.textproto:2:1: error: sets[0]: nic.window: "));
  EXPECT_THAT(exit.errors, HasSubstr("s.textproto:3:8: error: sets[1]: faults[0].kindd: unknown "
                                     "field \"kindd\" (did you mean \"kind\"?)"));
  EXPECT_THAT(exit.errors, HasSubstr("s.textproto:4:8: error: sets[2]: expected FIELD=VALUE"));
  EXPECT_THAT(exit.errors, HasSubstr("s.textproto:5:1: error: sets[3]: fabric: missing"));
  EXPECT_THAT(exit.errors, ::testing::Not(HasSubstr("--set")));
  EXPECT_FALSE(std::filesystem::exists(scratch_.Path("study")));
}

// Runs get their values on a command line, which has no room for it.
TEST_F(StudyTest, AValueThatIsTooLongIsRefused) {
  const ProgramExit exit = Study(
      "scenario: \"base.textproto\"\n"
      "axes { fields: \"nic.window\" values: [\"128KiB\", \"" +
      std::string(1'000'000, '1') +
      "\"] }\n"
      "figures: \"collectives.stretch.max\"\n");
  EXPECT_EQ(exit.status, 2);
  EXPECT_EQ(exit.errors,
            scratch_.Path("s.textproto") +
                ":2:1: error: axes[0]: a run sets fields to 1000011 B of text (expected "
                "at most 65536 B)\n");
  EXPECT_FALSE(std::filesystem::exists(scratch_.Path("study")));
}

TEST_F(StudyTest, WhatItFoundIsPrinted) {
  const ProgramExit exit = Study(
      "scenario: \"base.textproto\"\n"
      "axes { name: \"window\" fields: \"nic.window\" values: [\"128KiB\", \"512KiB\"] }\n"
      "figures: \"collectives.count\"\n");
  EXPECT_EQ(exit.status, 0) << exit.errors;
  EXPECT_THAT(exit.output, HasSubstr("window  status     figure             value\n"));
  EXPECT_THAT(exit.output, HasSubstr("128KiB  COMPLETED  collectives.count  "));
  EXPECT_THAT(exit.output, HasSubstr("512KiB  COMPLETED  collectives.count  "));
}

TEST_F(StudyTest, ARunThatCannotBeEndsTheStudyAndIsShown) {
  const ProgramExit exit = Study(
      "scenario: \"base.textproto\"\n"
      "axes { fields: \"nic.windo\" values: \"128KiB\" }\n"
      "figures: \"collectives.stretch.max\"\n");
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("unknown field \"windo\""));
}

TEST_F(StudyTest, TheDatabaseHasTheSameRowsWithTheirCostAndConfidence) {
  const ProgramExit exit = Study(
      "scenario: \"base.textproto\"\n"
      "axes { name: \"loss\" fields: \"faults[0].loss.probability\" values: [\"0\", \"0.02\"] }\n"
      "seeds: 8\n"
      "figures: [\"collectives.stretch.max\"]\n");
  ASSERT_EQ(exit.status, 0) << exit.errors;
  const Table points = ReadCsv(scratch_.Path("study") + "/points.csv");
  const std::string database = scratch_.Path("study") + "/study.sqlite";
  const Table rows = QueryDatabase(database, "SELECT * FROM points ORDER BY run");
  ASSERT_EQ(rows.size(), 16u);
  std::vector<double> added(8);
  for (size_t row = 0; row < 16; ++row) {
    EXPECT_EQ(rows.Integer(row, "seed"), points.Integer(row, "seed"));
    EXPECT_EQ(rows.Real(row, "loss"), points.Real(row, "loss"));
    const double stretch = rows.Real(row, "collectives.stretch.max");
    EXPECT_NEAR(stretch, points.Real(row, "collectives.stretch.max"), 1e-9 * stretch);
    added[row % 8] += row < 8 ? -stretch : stretch;
    EXPECT_GT(rows.Real(row, "seconds"), 0);
    EXPECT_GT(rows.Integer(row, "peak_memory_bytes"), 1 << 20);
  }
  const Table difference = QueryDatabase(database, "SELECT * FROM differences");
  ASSERT_EQ(difference.size(), 1u);
  EXPECT_EQ(difference.Text(0, "axis"), "loss");
  EXPECT_EQ(difference.Integer(0, "pairs"), 8);
  double mean = 0;
  for (const double value : added) mean += value / 8;
  EXPECT_NEAR(difference.Real(0, "difference"), mean, 1e-9);
  EXPECT_LE(difference.Real(0, "low"), mean);
  EXPECT_GE(difference.Real(0, "high"), mean);
  EXPECT_EQ(QueryDatabase(database, "SELECT * FROM failed").size(), 0u);
  EXPECT_EQ(QueryDatabase(database, "SELECT * FROM means").size(), 2u);
  EXPECT_EQ(QueryDatabase(database, "SELECT * FROM statistics").size(), 2u);
}

// The second scenario is a run of minutes.
TEST_F(StudyTest, ARunBeyondTheTimeLimitIsEndedAndSaysSo) {
  scratch_.Write("short.textproto", RailOptimized(2) + Program("ALL_REDUCE", "1MiB"));
  scratch_.Write("long.textproto",
                 RailOptimized(2) + Program("ALL_REDUCE", "64GiB") +
                     "faults { name: \"f\" kind: LOSS link: \"server*/nic*--leaf*\" at: \"0s\" "
                     "loss { probability: 0.0001 } }\n");
  const std::string study = scratch_.Write(
      "s.textproto",
      "scenarios: [\"long.textproto\", \"short.textproto\"]\nfigures: \"collectives.count\"\n");
  const ProgramExit exit = Railyard(
      {"study", study, "--out", scratch_.Path("study"), "--jobs", "2", "--time-limit", "5"});
  EXPECT_EQ(exit.status, 1);
  EXPECT_THAT(exit.errors, HasSubstr("left no result, exit status 124"));
  const Table points = ReadCsv(scratch_.Path("study") + "/points.csv");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points.Text(0, "scenario"), "long");
  EXPECT_EQ(points.Text(0, "status"), "TIME_LIMIT");
  EXPECT_EQ(points.Integer(0, "exit"), 124);
  EXPECT_EQ(points.Text(0, "collectives.count"), "");
  EXPECT_EQ(points.Text(1, "status"), "COMPLETED");
  const Table failed =
      QueryDatabase(scratch_.Path("study") + "/study.sqlite", "SELECT * FROM failed");
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed.Text(0, "reason"), "ended at its time limit");
  EXPECT_THAT(failed.Text(0, "command"), HasSubstr("railyard run "));
  EXPECT_THAT(failed.Text(0, "command"), HasSubstr("long.textproto"));
  // The message names the place of the result so far.
  const std::string result = scratch_.Path("study") + "/runs/000000";
  EXPECT_THAT(failed.Text(0, "log"), HasSubstr("what there was by then is in " + result));
  EXPECT_TRUE(std::filesystem::exists(result));
  EXPECT_THAT(ReadText(result + ".log"), HasSubstr("what there was by then is in " + result));
}

TEST_F(StudyTest, RunsTakeTurnsWhereMemoryIsShort) {
  scratch_.Write("base.textproto", RailOptimized(2) + Program("ALL_REDUCE", "1MiB"));
  const std::string study = scratch_.Write(
      "s.textproto", "scenario: \"base.textproto\"\nseeds: 6\nfigures: \"collectives.count\"\n");
  const ProgramExit exit = Railyard(
      {"study", study, "--out", scratch_.Path("study"), "--jobs", "4", "--memory", "1MiB"});
  EXPECT_EQ(exit.status, 0) << exit.errors;
  EXPECT_EQ(ReadCsv(scratch_.Path("study") + "/points.csv").size(), 6u);
  EXPECT_NE(Railyard({"study", study, "--memory", "much"}).status, 0);
}

// Points that differ by settings of faults alone have one fault-free run per seed; its times are
// the same as those of a run by itself.
TEST_F(StudyTest, FaultFreeRunsAreShared) {
  const ProgramExit exit = Study(
      "scenario: \"base.textproto\"\n"
      "axes { name: \"loss\" fields: \"faults[0].loss.probability\" "
      "values: [\"0.01\", \"0.02\", \"0.03\"] }\n"
      "axes { name: \"window\" fields: \"nic.window\" values: [\"128KiB\", \"512KiB\"] }\n"
      "seeds: 2\n"
      "figures: [\"collectives.stretch.max\", \"baseline_cpu_seconds\"]\n");
  ASSERT_EQ(exit.status, 0) << exit.errors;
  const auto files = std::filesystem::directory_iterator(scratch_.Path("study") + "/baselines");
  EXPECT_EQ(std::distance(begin(files), end(files)), 4) << "two windows and two seeds";
  const Table points = ReadCsv(scratch_.Path("study") + "/points.csv");
  ASSERT_EQ(points.size(), 12u);
  // Two at a time may begin before the first has ended; of the others none runs it again.
  int own = 0;
  for (size_t row = 0; row < points.size(); ++row) {
    own += points.Real(row, "baseline_cpu_seconds") > 0 ? 1 : 0;
  }
  EXPECT_GE(own, 4);
  EXPECT_LE(own, 8);
  for (const size_t row : {size_t{0}, size_t{7}, size_t{11}}) {
    const EndedRun run = RunFile(scratch_.Path("base.textproto"),
                                 {"--seed", points.Text(row, "seed"), "--set",
                                  "faults[0].loss.probability=" + points.Text(row, "loss"), "--set",
                                  "nic.window=" + points.Text(row, "window")});
    EXPECT_DOUBLE_EQ(run.Real("collectives.stretch.max"),
                     points.Real(row, "collectives.stretch.max"));
  }
}

TEST_F(StudyTest, OptionsOfTheOtherExecutorAreRefused) {
  const ProgramExit exit =
      Railyard({"study", scratch_.Write("s.textproto", ""), "--sbatch=--partition=main"});
  EXPECT_EQ(exit.status, 2);
  EXPECT_EQ(exit.errors,
            "--sbatch: error: has no effect with --executor local (expected --executor slurm)\n");
}

}  // namespace
}  // namespace railyard::testing
