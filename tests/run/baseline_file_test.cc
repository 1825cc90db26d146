// SPDX-License-Identifier: GPL-2.0-only
// Fault-free runs that are kept in a file: what is taken from there, and what is not believed.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BaselineFileTest : public ProgramTest {
 protected:
  // A cable is down while the first of three AllReduces runs.
  static std::string Scenario() {
    return RailOptimized(2) + Program("ALL_REDUCE", "16MiB", "repeat: 3") +
           "nccl { IB_TIMEOUT: 8 }\n" + LinkDown("server0/nic1--leaf1", "100us", "300us");
  }
  EndedRun Run(const std::vector<std::string>& sets, bool has_file = true) {
    std::vector<std::string> arguments;
    if (has_file) arguments = {"--baseline-file", file_};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    EndedRun run = RunText(Scenario(), arguments);
    EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
    return run;
  }
  static bool TookItFromTheFile(const EndedRun& run) {
    const Table notes =
        run.Query("SELECT note FROM notes WHERE note LIKE 'the fault-free run was not simulated%'");
    EXPECT_EQ(run.Real("baseline_cpu_seconds") == 0, notes.size() == 1);
    return notes.size() == 1;
  }

  const std::string file_ = scratch_.Path("fault_free");
};

// Faults of other kinds, places and times have the same fault-free run.
TEST_F(BaselineFileTest, TimesAreThoseOfARunOfItsOwn) {
  EXPECT_FALSE(TookItFromTheFile(Run({})));
  const std::vector<std::vector<std::string>> others = {
      {"faults[0].at=700us", "faults[0].until=900us"},
      {"faults[0].link=server1/nic2--leaf2"},
      {R"(faults=[{name: "slow" kind: STRAGGLER device: "server0/gpu3" at: "0s" speed: 0.5}])"},
      {R"(faults=[{name: "f" kind: LOSS link: "server*/nic*--leaf*" at: "50us" loss {probability: 0.01}}])"}};
  for (const auto& sets : others) {
    const EndedRun kept = Run(sets);
    const EndedRun alone = Run(sets, false);
    EXPECT_TRUE(TookItFromTheFile(kept)) << sets[0];
    EXPECT_FALSE(TookItFromTheFile(alone)) << sets[0];
    EXPECT_EQ(kept.collectives.rows, alone.collectives.rows) << sets[0];
    EXPECT_EQ(kept.Text("fingerprint"), alone.Text("fingerprint")) << sets[0];
    EXPECT_EQ(kept.Real("jobs.0.lost_ps"), alone.Real("jobs.0.lost_ps")) << sets[0];
  }
}

TEST_F(BaselineFileTest, WhatDiffersInMoreThanFaultsIsSimulated) {
  Run({});
  const std::vector<std::string> other = {"nic.window=128KiB"};
  const EndedRun run = Run(other);
  EXPECT_FALSE(TookItFromTheFile(run));
  EXPECT_EQ(run.collectives.rows, Run(other, false).collectives.rows);
  EXPECT_TRUE(TookItFromTheFile(Run(other))) << "it takes the place of the earlier one";
  EXPECT_FALSE(TookItFromTheFile(Run({"seed=7"})));
}

// At each length, and with each of some bytes changed.
TEST_F(BaselineFileTest, ADamagedFileIsMadeAgain) {
  const EndedRun first = Run({});
  const std::string whole = ReadText(file_);
  ASSERT_GT(whole.size(), 100u);
  std::vector<std::string> damaged = {"", whole.substr(0, 5), whole.substr(0, whole.size() / 2),
                                      whole.substr(0, whole.size() - 1), whole + "x"};
  for (const size_t at : {size_t{9}, size_t{30}, size_t{40}, whole.size() - 3}) {
    damaged.push_back(whole);
    damaged.back()[at] = static_cast<char>(whole[at] ^ 0x10);
  }
  for (const std::string& text : damaged) {
    scratch_.Write("fault_free", text);
    const EndedRun run = Run({});
    EXPECT_FALSE(TookItFromTheFile(run));
    EXPECT_EQ(run.collectives.rows, first.collectives.rows);
    EXPECT_EQ(ReadText(file_), whole);
  }
}

TEST_F(BaselineFileTest, AFileOfSomethingElseIsLeftAlone) {
  scratch_.Write("fault_free", "dear");
  const EndedRun run = RunText(Scenario(), {"--baseline-file", file_});
  EXPECT_EQ(run.exit.status, 2);
  EXPECT_THAT(run.exit.errors, HasSubstr("fault_free\" is no file of fault-free runs"));
  EXPECT_EQ(ReadText(file_), "dear");
  const EndedRun folder = RunText(Scenario(), {"--baseline-file", scratch_.Path("")});
  EXPECT_EQ(folder.exit.status, 2);
  EXPECT_THAT(folder.exit.errors, HasSubstr("is no file of fault-free runs"));
  const EndedRun nowhere = RunText(Scenario(), {"--baseline-file", scratch_.Path("none/file")});
  EXPECT_EQ(nowhere.exit.status, 1);
  EXPECT_THAT(nowhere.exit.errors, HasSubstr("none/file"));
  EXPECT_FALSE(nowhere.has_result());
  const EndedRun both = RunText(Scenario(), {"--baseline-file", file_, "--no-baseline"});
  EXPECT_EQ(both.exit.status, 2);
}

// Both write the same; whichever is last leaves it whole.
TEST_F(BaselineFileTest, TwoRunsAtOnceShareAFile) {
  const std::string scenario = scratch_.Write("s.textproto", Scenario());
  for (int round = 0; round < 3; ++round) {
    std::filesystem::remove(file_);
    std::vector<std::string> words = {"run", scenario, "--quiet", "--baseline-file",
                                      file_, "--out"};
    words.push_back(scratch_.Path("a" + std::to_string(round)));
    RunningProgram one(scratch_, words);
    words.back() = scratch_.Path("b" + std::to_string(round));
    RunningProgram two(scratch_, words);
    EXPECT_EQ(one.Wait().status, 0);
    EXPECT_EQ(two.Wait().status, 0);
    EXPECT_TRUE(TookItFromTheFile(Run({})));
  }
  EXPECT_THAT(scratch_.Entries(), Not(::testing::Contains(HasSubstr(".railyard-"))));
}

}  // namespace
}  // namespace railyard::testing
