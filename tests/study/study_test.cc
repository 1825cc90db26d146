// SPDX-License-Identifier: GPL-2.0-only
#include <filesystem>

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

}  // namespace
}  // namespace railyard::testing
