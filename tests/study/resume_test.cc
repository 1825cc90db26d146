// SPDX-License-Identifier: GPL-2.0-only
// Studies that are ended in the middle, by whatever, and gone on with.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ResumeTest : public ProgramTest {
 protected:
  std::string WriteStudy(const std::string& sizes, int repeat = 20) {
    scratch_.Write(
        "base.textproto",
        RailOptimized(2) + Program("ALL_REDUCE", "1MiB", "repeat: " + std::to_string(repeat)));
    return scratch_.Write("s.textproto",
                          "scenario: \"base.textproto\"\n"
                          "axes { name: \"size\" fields: "
                          "\"workload.program.collectives[0].bytes\" values: [" +
                              sizes + "] }\nfigures: [\"simulated_time_ps\"]\nseeds: 2\n");
  }
  std::vector<std::string> Command(const std::string& study, const std::string& out,
                                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {"study", study, "--out", scratch_.Path(out), "--jobs", "2"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  std::string Points(const std::string& out) const {
    return ReadText(scratch_.Path(out) + "/points.csv");
  }
  // Returns when each run's result was written.
  std::vector<fs::file_time_type> Times(const std::string& out) const {
    std::vector<fs::file_time_type> times;
    for (int run = 0;; ++run) {
      const std::string name = std::to_string(run);
      const std::string path = scratch_.Path(out) + "/runs/" + std::string(6 - name.size(), '0') +
                               name + "/summary.json";
      if (!fs::exists(path)) return times;
      times.push_back(fs::last_write_time(path));
    }
  }
};

// At instants spread over the study: what was finished is not run again, and all rows are those of
// a study that nobody ended.
TEST_F(ResumeTest, WhatAKilledStudyFinishedIsKept) {
  const std::string study = WriteStudy("\"1MiB\", \"2MiB\", \"3MiB\", \"4MiB\"");
  ASSERT_EQ(Railyard(Command(study, "whole")).status, 0);
  for (const int milliseconds : {20, 150, 400, 800}) {
    const std::string out = "cut" + std::to_string(milliseconds);
    {
      const RunningProgram running(scratch_, Command(study, out));
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      running.Kill();
    }
    const ProgramExit exit = Railyard(Command(study, out, {"--resume"}));
    ASSERT_EQ(exit.status, 0) << exit.errors;
    EXPECT_EQ(Points(out), Points("whole")) << "killed after " << milliseconds << " ms";
    const auto times = Times(out);
    EXPECT_EQ(times.size(), 8u);
    ASSERT_EQ(Railyard(Command(study, out, {"--resume"})).status, 0);
    EXPECT_EQ(Times(out), times) << "what is done was run again";
  }
}

TEST_F(ResumeTest, ALargerStudyKeepsWhatItSharesWithTheSmaller) {
  ASSERT_EQ(Railyard(Command(WriteStudy("\"2MiB\", \"4MiB\""), "grown")).status, 0);
  const auto before = Times("grown");
  const std::string larger = WriteStudy("\"1MiB\", \"2MiB\", \"3MiB\", \"4MiB\"");
  ASSERT_EQ(Railyard(Command(larger, "grown", {"--resume"})).status, 0);
  ASSERT_EQ(Railyard(Command(larger, "whole")).status, 0);
  EXPECT_EQ(Points("grown"), Points("whole"));
  const auto after = Times("grown");
  ASSERT_EQ(after.size(), 8u);
  EXPECT_EQ(after[2], before[0]);
  EXPECT_EQ(after[3], before[1]);
  EXPECT_EQ(after[6], before[2]);
  EXPECT_EQ(after[7], before[3]);
}

// The study names the file in a message that it sets, not the scenario.
TEST_F(ResumeTest, ARunWhoseFileHasChangedIsRunAgain) {
  const std::string header = "source_gpu,destination_gpu,payload_bytes\n";
  const std::string pairs = scratch_.Write("pairs.csv", header + "0,8,1000000\n");
  scratch_.Write("base.textproto", RailOptimized(2) + Program("ALL_REDUCE", "1MiB"));
  const std::string study = scratch_.Write(
      "s.textproto",
      "scenario: \"base.textproto\"\nfigures: [\"simulated_time_ps\"]\n"
      "axes { name: \"job\" fields: \"workload.program\" values: \"{ collectives { kind: "
      "ALL_TO_ALL_V pair_bytes: '" +
          pairs + "' } }\" }\n");
  const ProgramExit first = Railyard(Command(study, "s"));
  ASSERT_EQ(first.status, 0) << first.errors;
  const std::string before = Points("s");
  scratch_.Write("pairs.csv", header + "0,8,50000000\n");
  ASSERT_EQ(Railyard(Command(study, "s", {"--resume"})).status, 0);
  EXPECT_NE(Points("s"), before);
}

// Names with a character of patterns, in two literals, with escapes, and in a scenario of any size.
TEST_F(ResumeTest, FilesAreNoticedHoweverTheyAreNamed) {
  const std::string header = "source_gpu,destination_gpu,payload_bytes\n";
  const std::string comments = "# " + std::string(5 << 20, 'x') + "\n";
  struct Naming {
    const char* file;
    const char* literal;
    std::string before;
  };
  const Naming namings[] = {{"pairs[1].csv", "\"pairs[1].csv\"", ""},
                            {"p q.csv", "\"p \" 'q.csv'", ""},
                            {"caf\303\251.csv", R"("caf\303\251.csv")", ""},
                            {"plain.csv", "\"plain.csv\"", comments}};
  int number = 0;
  for (const auto& [file, literal, before] : namings) {
    const std::string out = "s" + std::to_string(number++);
    scratch_.Write(file, header + "0,8,1000000\n");
    scratch_.Write("base.textproto",
                   before + RailOptimized(2) +
                       "workload { program { collectives { kind: ALL_TO_ALL_V pair_bytes: " +
                       literal + " } } }\n");
    const std::string study =
        scratch_.Write("s.textproto",
                       "scenario: \"base.textproto\"\nfigures: [\"payload.total_bytes\"]\n"
                       "axes { name: \"timer\" fields: \"nccl.IB_TIMEOUT\" values: [\"14\"] }\n");
    ASSERT_EQ(Railyard(Command(study, out)).status, 0) << file;
    const std::string first = Points(out);
    scratch_.Write(file, header + "0,8,4000000\n");
    ASSERT_EQ(Railyard(Command(study, out, {"--resume"})).status, 0);
    EXPECT_NE(Points(out), first) << file;
  }
}

TEST_F(ResumeTest, AnotherScenarioIsRunAgain) {
  ASSERT_EQ(Railyard(Command(WriteStudy("\"1MiB\""), "s")).status, 0);
  const std::string before = Points("s");
  ASSERT_EQ(Railyard(Command(WriteStudy("\"1MiB\"", 30), "s", {"--resume"})).status, 0);
  EXPECT_NE(Points("s"), before);
}

TEST_F(ResumeTest, ASecondStudyInADirectoryIsRefused) {
  const std::string study = WriteStudy("\"1MiB\", \"2MiB\"", 400);
  RunningProgram first(scratch_, Command(study, "s"));
  while (!fs::exists(scratch_.Path("s") + "/keys")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const ProgramExit second = Railyard(Command(study, "s", {"--resume"}));
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(second.errors, HasSubstr("another study runs there"));
  EXPECT_EQ(first.Wait().status, 0);
}

TEST_F(ResumeTest, ADirectoryOfSomethingElseIsRefused) {
  const std::string study = WriteStudy("\"1MiB\"");
  fs::create_directory(scratch_.Path("mine"));
  scratch_.Write("mine/letter.txt", "dear");
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--resume"}}) {
    const ProgramExit exit = Railyard(Command(study, "mine", more));
    EXPECT_EQ(exit.status, 2);
    EXPECT_THAT(exit.errors, HasSubstr("mine: error: "));
  }
  EXPECT_EQ(ReadText(scratch_.Path("mine/letter.txt")), "dear");
  ASSERT_EQ(Railyard(Command(study, "s")).status, 0);
  EXPECT_THAT(Railyard(Command(study, "s")).errors, HasSubstr("--resume to go on with it"));
}

// Other programs have folders named runs, too, and files named keys.
TEST_F(ResumeTest, NothingButAStudyIsResumed) {
  const std::string study = WriteStudy("\"1MiB\"");
  const auto refused = [&](const std::string& out) {
    const ProgramExit exit = Railyard(Command(study, out, {"--resume"}));
    EXPECT_EQ(exit.status, 2) << exit.errors;
    return exit.errors;
  };
  fs::create_directories(scratch_.Path("board/runs/tb"));
  scratch_.Write("board/runs/tb/events", "mine");
  EXPECT_THAT(refused("board"), HasSubstr("holds no study, but runs/tb (expected"));
  EXPECT_EQ(ReadText(scratch_.Path("board/runs/tb/events")), "mine");
  fs::create_directory(scratch_.Path("keyed"));
  scratch_.Write("keyed/keys", "ssh-rsa AAAA\n");
  EXPECT_THAT(refused("keyed"), HasSubstr("keyed/keys has lines that are no keys (expected"));
  fs::create_directory(scratch_.Path("piped"));
  ASSERT_EQ(mkfifo(scratch_.Path("piped/keys").c_str(), 0600), 0);
  EXPECT_THAT(refused("piped"), HasSubstr("piped/keys is no regular file (expected"));
  fs::create_directory(scratch_.Path("linked"));
  fs::create_directory_symlink(scratch_.Path("board"), scratch_.Path("linked/runs"));
  EXPECT_THAT(refused("linked"), HasSubstr("linked/runs is no directory (expected"));
  EXPECT_TRUE(fs::exists(scratch_.Path("board/runs/tb/events")));
}

TEST_F(ResumeTest, FilesAmongTheRunsThatAreNotTheStudysAreLeft) {
  ASSERT_EQ(Railyard(Command(WriteStudy("\"1MiB\""), "s")).status, 0);
  scratch_.Write("s/runs/NOTES.txt", "mine");
  fs::create_directory(scratch_.Path("s/runs/.git"));
  ASSERT_EQ(Railyard(Command(WriteStudy("\"2MiB\""), "s", {"--resume"})).status, 0);
  EXPECT_EQ(ReadText(scratch_.Path("s/runs/NOTES.txt")), "mine");
  EXPECT_TRUE(fs::exists(scratch_.Path("s/runs/.git")));
}

TEST_F(ResumeTest, ASummaryThatIsNoneIsRunAgain) {
  const std::string study = WriteStudy("\"1MiB\"");
  ASSERT_EQ(Railyard(Command(study, "s")).status, 0);
  const std::string before = Points("s");
  for (const std::string& text :
       {std::string(300'000, '['), std::string("{\"status\":7}"), std::string()}) {
    scratch_.Write("s/runs/000000/summary.json", text);
    const ProgramExit exit = Railyard(Command(study, "s", {"--resume"}));
    EXPECT_EQ(exit.status, 0) << exit.errors;
    EXPECT_EQ(Points("s"), before);
  }
}

// Jobs of a study that was killed would otherwise write where its results are renumbered. The
// scancel found here keeps what it sees, and fails, which is no error because no job is left.
TEST_F(ResumeTest, SlurmJobsAreCancelledBeforeResultsAreLookedAt) {
  ASSERT_EQ(Railyard(Command(WriteStudy("\"1MiB\""), "s")).status, 0);
  fs::create_directory(scratch_.Path("s/runs/.ended-000009"));
  fs::create_directory(scratch_.Path("s/slurm"));
  scratch_.Write("s/slurm/name", "railyard-1-2\n");
  fs::create_directory(scratch_.Path("bin"));
  scratch_.Write("bin/squeue", "#!/bin/sh\n");
  scratch_.Write("bin/scancel", "#!/bin/sh\necho $* >" + scratch_.Path("asked") + "; ls -A " +
                                    scratch_.Path("s/runs") + " >" + scratch_.Path("seen") +
                                    "; exit 1\n");
  for (const char* program : {"bin/squeue", "bin/scancel"}) {
    fs::permissions(scratch_.Path(program), fs::perms::owner_all);
  }
  const std::string path = getenv("PATH");
  setenv("PATH", (scratch_.Path("bin") + ":" + path).c_str(), 1);
  const ProgramExit exit = Railyard(Command(WriteStudy("\"2MiB\""), "s", {"--resume"}));
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(exit.status, 0) << exit.errors;
  EXPECT_EQ(ReadText(scratch_.Path("asked")), "--name=railyard-1-2\n");
  EXPECT_EQ(ReadText(scratch_.Path("seen")),
            ".ended-000009\n000000\n000000.log\n000001\n000001.log\n");
  EXPECT_FALSE(fs::exists(scratch_.Path("s/slurm/name")));
}

TEST_F(ResumeTest, ADryRunSaysWhatThereIsAndWritesNothing) {
  const std::string study = WriteStudy("\"1MiB\", \"2MiB\"");
  const ProgramExit exit = Railyard(Command(study, "s", {"--dry-run", "--measure", "60"}));
  ASSERT_EQ(exit.status, 0) << exit.errors;
  EXPECT_THAT(exit.output, HasSubstr("point 0: size=1MiB\npoint 1: size=2MiB\n4 runs of "));
  EXPECT_THAT(exit.output, HasSubstr("by 3 of them about "));
  EXPECT_FALSE(fs::exists(scratch_.Path("s")));
}

}  // namespace
}  // namespace railyard::testing
