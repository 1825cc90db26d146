// SPDX-License-Identifier: GPL-2.0-only
// Tests that a signal leaves the results so far of a long command, and no process, directory or
// file besides.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

class InterruptionTest : public ProgramTest {
 protected:
  InterruptionTest() {
    std::filesystem::create_directory(temporary_);
    setenv("TMPDIR", temporary_.c_str(), 1);
  }
  ~InterruptionTest() override { unsetenv("TMPDIR"); }

  // Minutes of simulation.
  std::string Long(const std::string& more = "") const {
    return scratch_.Write("long.textproto",
                          RailOptimized(4) + Program("ALL_REDUCE", "8GiB", "repeat: 2") + more);
  }

  // Until then the signal would end the program.
  static void WaitUntilItMayBeAsked(const RunningProgram& program) {
    for (int i = 0; i < 2'000; ++i) {
      uint64_t heeded = 0;
      std::istringstream status(ReadText(fmt::format("/proc/{}/status", program.id())));
      for (std::string line; std::getline(status, line);) {
        if (!line.starts_with("SigIgn:") && !line.starts_with("SigCgt:")) continue;
        heeded |= std::stoull(line.substr(line.find(':') + 1), nullptr, 16);
      }
      if ((heeded >> (SIGUSR1 - 1) & 1) != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "it does not heed SIGUSR1";
  }

  // Asks how far it is until it says so.
  static std::string AskUntil(const RunningProgram& program, const std::string& said) {
    WaitUntilItMayBeAsked(program);
    for (int i = 0; i < 2'000; ++i) {
      program.Send(SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      std::string errors = program.Errors();
      if (errors.find(said) != std::string::npos) return errors;
    }
    ADD_FAILURE() << "it never said \"" << said << "\": " << program.Errors();
    return {};
  }

  static void WaitForChild(const RunningProgram& program) {
    for (int i = 0; i < 2'000 && ChildrenOf(program.id()).empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }

  static std::string ChildrenOf(pid_t id) {
    return ReadText(fmt::format("/proc/{0}/task/{0}/children", id));
  }

  static void ExpectGone(const std::string& children) {
    ASSERT_THAT(children, Not(IsEmpty()));
    EXPECT_FALSE(std::filesystem::exists("/proc/" + children.substr(0, children.find(' '))));
  }

  const std::string temporary_ = scratch_.Path("temporary");
};

TEST_F(InterruptionTest, ARunLeavesWhatItHas) {
  const std::string out = scratch_.Path("out");
  RunningProgram program(scratch_, {"run", Long(), "--out", out});
  const std::string progress = AskUntil(program, "simulated");
  EXPECT_THAT(progress.substr(0, progress.find('\n')),
              MatchesRegex("railyard: simulated .* in .*, .* % done.*; .*hops/s, .*collectives/s, "
                           ".*MiB"));
  // Its first report may be from before its first packet.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  program.Send(SIGTERM);
  const ProgramExit exit = program.Wait();
  EXPECT_EQ(exit.status, 4);
  EXPECT_THAT(exit.errors, HasSubstr("railyard: interrupted by SIGTERM after "));
  EXPECT_THAT(exit.errors, HasSubstr("what there was by then is in " + out));
  EXPECT_THAT(exit.output, HasSubstr("long: INTERRUPTED\n"));
  rapidjson::Document summary;
  summary.Parse(ReadText(out + "/summary.json").c_str());
  ASSERT_TRUE(summary.IsObject());
  EXPECT_STREQ(summary["status"].GetString(), "INTERRUPTED");
  EXPECT_STREQ(summary["jobs"][0]["status"].GetString(), "INTERRUPTED");
  EXPECT_THAT(exit.output, HasSubstr("\n  interrupted by SIGTERM after "));
  EXPECT_GT(summary["simulated_time_ps"].GetInt64(), 0);
  EXPECT_GT(summary["packet_hops"].GetInt64(), 0);
  EXPECT_TRUE(summary["conservation"]["ok"].GetBool());
  EXPECT_GT(summary["conservation"]["in_flight_bytes"].GetInt64(), 0);
  EXPECT_EQ(ReadCsv(out + "/collectives.csv").size(), 2u);
}

// The job is aborted at once, and only the fault-free run goes on.
TEST_F(InterruptionTest, ARunThatWaitsForItsPairLeavesItsOwnResult) {
  const std::string out = scratch_.Path("out");
  const std::string path = Long("nccl { IB_TIMEOUT: 1 IB_RETRY_CNT: 1 MAX_NCHANNELS: 1 }\n" +
                                LinkDown("server1/nic0--leaf0", "10us"));
  RunningProgram program(scratch_, {"run", path, "--out", out, "--quiet"});
  AskUntil(program, "100.0 % done");
  EXPECT_THAT(program.Errors(), HasSubstr("; the fault-free run: "));
  const std::string children = ChildrenOf(program.id());
  program.Send(SIGINT);
  const ProgramExit exit = program.Wait();
  EXPECT_EQ(exit.status, 4);
  ExpectGone(children);
  rapidjson::Document summary;
  summary.Parse(ReadText(out + "/summary.json").c_str());
  ASSERT_TRUE(summary.IsObject());
  EXPECT_STREQ(summary["status"].GetString(), "INTERRUPTED");
  EXPECT_THAT(exit.errors, HasSubstr("this one had ended as JOB_ABORTED"));
  EXPECT_STREQ(summary["jobs"][0]["status"].GetString(), "JOB_ABORTED");
}

TEST_F(InterruptionTest, ARunWithAPairEndsBoth) {
  const std::string path = Long(LinkDown("leaf0--spine0", "1us", "2us"));
  RunningProgram program(scratch_, {"run", path, "--out", scratch_.Path("out"), "--quiet"});
  AskUntil(program, "; the fault-free run: ");
  const std::string children = ChildrenOf(program.id());
  program.Send(SIGTERM);
  EXPECT_EQ(program.Wait().status, 4);
  ExpectGone(children);
  EXPECT_TRUE(std::filesystem::exists(scratch_.Path("out/summary.json")));
}

// A quiet run prints no progress, and a request to a command that has none does not end it.
TEST_F(InterruptionTest, QuietRunsAndOtherCommandsAreSilent) {
  RunningProgram program(scratch_, {"topo", "show", "h100-128x8-rail-optimized"});
  WaitUntilItMayBeAsked(program);
  program.Send(SIGUSR1);
  EXPECT_EQ(program.Wait().status, 0);
  RunningProgram run(scratch_, {"run", Long(), "--out", scratch_.Path("out"), "--quiet"});
  AskUntil(run, "simulated");
  run.Send(SIGTERM);
  EXPECT_THAT(run.Wait().output, IsEmpty());
}

TEST_F(InterruptionTest, AComparisonEndsItsRunAndItsDirectory) {
  RunningProgram program(scratch_, {"topo", "compare", "h100-4x8-rail-optimized",
                                    "h100-4x8-rail-only", "--workload", Long()});
  WaitForChild(program);
  const std::string children = ChildrenOf(program.id());
  program.Send(SIGTERM);
  const ProgramExit exit = program.Wait();
  EXPECT_EQ(exit.status, 4);
  EXPECT_THAT(exit.errors, HasSubstr("railyard: error: interrupted by SIGTERM\n"));
  ExpectGone(children);
  EXPECT_TRUE(std::filesystem::is_empty(temporary_));
}

// A terminal sends the signal to all processes, and a run may end before the study receives it.
TEST_F(InterruptionTest, AStudyWhoseLastRunGetsTheSignalTooIsInterrupted) {
  Long();
  const std::string out = scratch_.Path("out");
  RunningProgram program(scratch_,
                         {"study",
                          scratch_.Write("s.textproto",
                                         "scenario: \"long.textproto\"\nno_baseline: true\n"
                                         "figures: \"simulated_time_ps\"\n"),
                          "--out", out});
  for (int i = 0; i < 2'000 && !std::filesystem::exists(out + "/runs/000000.log"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  WaitForChild(program);
  const std::string children = ChildrenOf(program.id());
  ASSERT_THAT(children, Not(IsEmpty()));
  const int child = std::stoi(children);
  program.Send(SIGSTOP);
  program.Send(SIGINT);
  kill(child, SIGINT);
  const auto has_ended = [&] {
    return ReadText(fmt::format("/proc/{}/stat", child)).find(") Z ") != std::string::npos;
  };
  for (int i = 0; i < 2'000 && !has_ended(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  program.Send(SIGCONT);
  const ProgramExit exit = program.Wait();
  EXPECT_EQ(exit.status, 4);
  EXPECT_EQ(exit.errors, "railyard: interrupted by SIGINT: 1 of 1 runs are missing\n");
}

TEST_F(InterruptionTest, APerfTableEndsItsRunsAndItsDirectory) {
  RunningProgram program(scratch_, {"perf", "--collective", "all_reduce", "--fabric", "dgx-h100",
                                    "--nodes", "4", "-b", "4G", "-e", "8G", "--algo", "Ring"});
  WaitForChild(program);
  const std::string children = ChildrenOf(program.id());
  program.Send(SIGINT);
  EXPECT_EQ(program.Wait().status, 4);
  ExpectGone(children);
  EXPECT_TRUE(std::filesystem::is_empty(temporary_));
}

}  // namespace
}  // namespace railyard::testing
