// SPDX-License-Identifier: GPL-2.0-only
// Runs that must not happen, or leave nothing behind: mistakes in the scenario, places that cannot
// be written, a kill at any instant.
#include <chrono>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

const char* const kSmall =
    "fabric { rail_optimized { servers: 1 } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"64KiB\" } } algorithm: RING "
    "protocol: SIMPLE }\n";

class RunErrorsTest : public ProgramTest {};

struct Mistake {
  const char* name;
  const char* text;
  const char* where;  // line and column of the finding
  const char* what;
};

class MistakeTest : public ProgramTest, public ::testing::WithParamInterface<Mistake> {};

TEST_P(MistakeTest, IsOneLocatedLineAndNothingIsWritten) {
  const EndedRun run = RunText(GetParam().text);
  EXPECT_EQ(run.exit.status, 2);
  EXPECT_EQ(run.exit.output, "");
  EXPECT_THAT(run.exit.errors, StartsWith(scratch_.Path("scenario.textproto") + ":" +
                                          GetParam().where + ": error: "));
  EXPECT_THAT(run.exit.errors, HasSubstr(GetParam().what));
  EXPECT_EQ(std::count(run.exit.errors.begin(), run.exit.errors.end(), '\n'), 1) << run.exit.errors;
  EXPECT_FALSE(std::filesystem::exists(run.directory));
  EXPECT_THAT(scratch_.Entries(),
              ElementsAre("scenario.textproto", StartsWith("stderr."), StartsWith("stdout.")));
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, MistakeTest,
    ::testing::Values(
        Mistake{
            "WrongUnit",
            "fabric { rail_optimized { servers: 1 } }\n"
            "workload { program { collectives { kind: ALL_REDUCE bytes: \"64 potatoes\" } } }\n",
            "2:53", "64 potatoes"},
        Mistake{"UnknownField",
                "fabric { rail_optimized { servers: 1 } }\n"
                "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } "
                "algorithm: RING protocol: SIMPLE }\n"
                "sede: 1\n",
                "3:1", "did you mean \"seed\"?"},
        Mistake{"UnknownPreset",
                "fabric { preset: \"h100-4x8-rail-optimised\" }\n"
                "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } "
                "algorithm: RING protocol: SIMPLE }\n",
                "1:10", "did you mean \"h100-4x8-rail-optimized\"?"},
        Mistake{"MissingTrace",
                "fabric { rail_optimized { servers: 1 } }\n"
                "workload { trace: \"no/such.trace\" }\n",
                "2:12", "no/such.trace"},
        Mistake{"FaultOnALinkThatIsNotThere",
                "fabric { rail_optimized { servers: 1 } }\n"
                "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } "
                "algorithm: RING protocol: SIMPLE }\n"
                "faults { kind: LINK_DOWN link: \"server0/nic3--leaf4\" at: \"1ms\" }\n",
                "3:26", "server0/nic3--leaf4"},
        Mistake{
            "FaultThatEndsBeforeItBegins",
            "fabric { rail_optimized { servers: 1 } }\n"
            "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } algorithm: "
            "RING protocol: SIMPLE }\n"
            "faults { kind: LINK_DOWN link: \"server0/nic3--leaf3\" at: \"2ms\" until: \"1ms\" }\n",
            "3:64", "ends at \"1ms\""}),
    [](const auto& mistake) { return mistake.param.name; });

TEST_F(RunErrorsTest, AllMistakesAreReportedAtOnce) {
  const EndedRun run = RunText(
      "fabric { preset: \"h100\" }\n"
      "workload { trace: \"no/such.trace\" }\n"
      "nccl { IB_TIMEOUT: 99 }\n"
      "faults { kind: LINK_DOWN link: \"x\" at: \"2ms\" until: \"1ms\" }\n");
  EXPECT_EQ(run.exit.status, 2);
  EXPECT_GE(std::count(run.exit.errors.begin(), run.exit.errors.end(), '\n'), 3) << run.exit.errors;
  EXPECT_FALSE(std::filesystem::exists(run.directory));
}

TEST_F(RunErrorsTest, APlaceThatCannotBeWrittenFailsTheEnvironment) {
  const std::string scenario = scratch_.Write("small.textproto", kSmall);
  const ProgramExit exit = Railyard({"run", scenario, "--out", "/proc/no/such/place"});
  EXPECT_EQ(exit.status, 1);
  EXPECT_THAT(exit.errors, HasSubstr("/proc/no"));
  EXPECT_EQ(std::count(exit.errors.begin(), exit.errors.end(), '\n'), 1) << exit.errors;
}

// The first byte of a process's memory cannot be read: the disk seems to fail.
TEST_F(RunErrorsTest, AFileThatCannotBeReadFailsTheEnvironment) {
  const std::string unreadable = "/proc/self/mem";
  const std::string log =
      scratch_.Write("log.textproto", std::string(kSmall) + "faults { kind: LINK_DOWN log: \"" +
                                          unreadable + "\" }\n");
  const std::vector<std::vector<std::string>> commands = {{"fidelity", unreadable},
                                                          {"topo", "show", unreadable},
                                                          {"trace", "show", unreadable},
                                                          {"import", unreadable, "-o", "-"},
                                                          {"validate", log},
                                                          {"validate", unreadable}};
  for (const std::vector<std::string>& command : commands) {
    const ProgramExit exit = Railyard(command);
    EXPECT_EQ(exit.status, 1) << command[0] << ": " << exit.errors;
    EXPECT_THAT(exit.errors, HasSubstr(unreadable + ": Input/output error"));
    EXPECT_EQ(std::count(exit.errors.begin(), exit.errors.end(), '\n'), 1) << exit.errors;
  }
}

TEST_F(RunErrorsTest, AMistypedOptionIsNamedAlsoWithAValue) {
  EXPECT_THAT(Railyard({"trace", "show", "j.trace", "--ranks-show", "5"}).errors,
              HasSubstr("unknown option \"--ranks-show\" (did you mean \"--ranks-shown\"?)"));
  EXPECT_THAT(Railyard({"perf", "all_reduce_perf", "--nodes", "abc"}).errors,
              HasSubstr("--nodes: \"abc\" is no number"));
}

TEST_F(RunErrorsTest, AForeignDirectoryIsRefusedBeforeAnythingIsSimulated) {
  const std::string scenario = scratch_.Write("small.textproto", kSmall);
  std::filesystem::create_directory(scratch_.Path("mine"));
  scratch_.Write("mine/thesis.tex", "years of work");
  const ProgramExit exit = Railyard({"run", scenario, "--out", scratch_.Path("mine")});
  EXPECT_EQ(exit.status, 2);
  EXPECT_EQ(exit.output, "");
  EXPECT_THAT(exit.errors, HasSubstr("thesis.tex"));
  EXPECT_EQ(ReadText(scratch_.Path("mine/thesis.tex")), "years of work");
}

TEST_F(RunErrorsTest, AnEarlierResultIsReplacedWhole) {
  const std::string scenario = scratch_.Write("small.textproto", kSmall);
  const std::vector<std::string> first = {"run", scenario, "--out", scratch_.Path("result")};
  ASSERT_EQ(Railyard(first).status, 0);
  std::vector<std::string> second = first;
  second.insert(second.end(), {"--set", "workload.program.collectives[0].repeat=3"});
  ASSERT_EQ(Railyard(second).status, 0);
  EXPECT_EQ(ReadCsv(scratch_.Path("result/collectives.csv")).size(), 3u);
  EXPECT_THAT(scratch_.Entries(), Not(Contains(StartsWith("."))));
}

// 8,200 x 8,199 pairs: no machine has room for the connections, and they have numbers below 2^26.
TEST_F(RunErrorsTest, ARunThatCannotFitIsRefusedBeforeItBegins) {
  const EndedRun run = RunText(RailOptimized(1025) + Program("ALL_TO_ALL", "65600000"));
  EXPECT_EQ(run.exit.status, 1);
  EXPECT_THAT(run.exit.errors,
              HasSubstr("open 67231800 connections between GPUs or more (a run has "
                        "at most 67108864)"));
  EXPECT_FALSE(run.has_result());
}

// Whenever it comes, a kill leaves no result or a complete one; and no fault-free run goes on.
TEST_F(RunErrorsTest, AKillLeavesNoPartialResult) {
  const std::string scenario = scratch_.Write(
      "long.textproto", RailOptimized(2) + Program("ALL_REDUCE", "16MiB", "repeat: 200") +
                            LinkDown("leaf0--spine0", "1us", "2us"));
  for (const int milliseconds : {1, 10, 50, 200}) {
    SCOPED_TRACE(milliseconds);
    RunningProgram program(scratch_, {"run", scenario, "--out", scratch_.Path("killed")});
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    program.Kill();
    EXPECT_EQ(program.Wait().status, 128 + 9);
    EXPECT_FALSE(std::filesystem::exists(scratch_.Path("killed")));
  }
}

TEST_F(RunErrorsTest, AKillLeavesTheEarlierResultAsItWas) {
  const std::string small = scratch_.Write("small.textproto", kSmall);
  const std::string result = scratch_.Path("result");
  ASSERT_EQ(Railyard({"run", small, "--out", result}).status, 0);
  const std::string before = ReadText(result + "/summary.json");
  const std::string scenario = scratch_.Write(
      "long.textproto", RailOptimized(2) + Program("ALL_REDUCE", "16MiB", "repeat: 200"));
  RunningProgram program(scratch_, {"run", scenario, "--out", result});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  program.Kill();
  EXPECT_EQ(program.Wait().status, 128 + 9);
  EXPECT_EQ(ReadText(result + "/summary.json"), before);
}

}  // namespace
}  // namespace railyard::testing
