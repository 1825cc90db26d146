// SPDX-License-Identifier: GPL-2.0-only
// Captured logs, from the file to the result.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"
#include "tests/support/reference_dir.h"
#include "tests/support/regex.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

// Calls as `grep -oE` would count them, several to a line where lines ran together.
int64_t CountCalls(const std::string& path) {
  static const std::regex kCall(
      "(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|Send|Recv|AllToAll|AlltoAll|Gather|"
      "Scatter): opCount [0-9a-fA-Fx]+");
  const std::string text = ReadText(path);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), kCall),
                       std::sregex_iterator());
}

class ImportTest : public ProgramTest {};

TEST_F(ImportTest, EveryReferenceLogIsReadToItsEndAndReported) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  int logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(reference_dir + "/nccl-logs")) {
    if (entry.path().extension() != ".log") continue;
    ++logs;
    SCOPED_TRACE(entry.path().filename().string());
    const std::string trace = scratch_.Path(fmt::format("{}.trace", logs));
    const std::string report = scratch_.Path(fmt::format("{}.report", logs));
    const ProgramExit exit = Railyard(
        {"import", "--format", "nccl-log", entry.path().string(), "-o", trace, "--report", report});
    EXPECT_THAT(exit.status, ::testing::AnyOf(0, 2)) << exit.errors;
    EXPECT_EQ(exit.status == 0, std::filesystem::exists(trace));
    EXPECT_THAT(ReadText(report), HasSubstr("calls seen"));
    std::ifstream file(entry.path());
    const auto lines = std::count(std::istreambuf_iterator<char>(file), {}, '\n');
    EXPECT_THAT(exit.output, HasSubstr(fmt::format("{} calls seen in {} lines",
                                                   CountCalls(entry.path().string()), lines)));
  }
  EXPECT_GT(logs, 0);
}

TEST_F(ImportTest, AnOptionWithoutEffectIsRefused) {
  const std::string schedule = scratch_.Path("two.goal");
  std::ofstream(schedule) << "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\n"
                             "rank 1 {\nl1: recv 8b from 0 tag 0\n}\n";
  const ProgramExit exit = Railyard({"import", schedule, "-o", scratch_.Path("t"), "--ranks", "4"});
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("--ranks: error: has no effect on goal"));
  EXPECT_FALSE(std::filesystem::exists(scratch_.Path("t")));
}

TEST_F(ImportTest, TheLogOf16RanksIsReplayedAsRingWhereTheScenarioSaysSo) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  // The scenario names its log relative to itself, in the default place.
  const std::string text = ReadText(ShippedScenario("nccl_log_16ranks"));
  const std::string scenario =
      std::regex_replace(text, std::regex("\"[^\"]*reference/"), "\"" + reference_dir + "/");
  const EndedRun run = RunText(scenario);
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_THAT(run.exit.output, HasSubstr("log: TREE/LL, replayed: RING/SIMPLE"));
  ASSERT_EQ(run.collectives.size(), 1u);
  EXPECT_EQ(run.collectives.Text(0, "logged"), "TREE/LL");
  EXPECT_EQ(run.collectives.Text(0, "replayed"), "RING/SIMPLE");
  EXPECT_EQ(run.collectives.Integer(0, "ranks"), 16);
  EXPECT_TRUE(std::filesystem::exists(run.directory + "/import_report.txt"));

  const EndedRun as_logged =
      RunText(std::regex_replace(scenario, std::regex("(algorithm: RING|protocol: SIMPLE)"), ""));
  ASSERT_EQ(as_logged.exit.status, 0) << as_logged.exit.errors;
  EXPECT_EQ(as_logged.collectives.Text(0, "replayed"), "TREE/LL");
}

// The sample the project ships: what is imported once and then replayed is what is read on the way.
TEST_F(ImportTest, AnImportedTraceReplaysLikeItsLog) {
  // Each rank's first calls are enough.
  const std::string log = RAILYARD_SOURCE_DIR "/traces/samples/h100_4x8_sample.log";
  std::ifstream file(log);
  std::string kept;
  std::map<std::string, int> calls;
  for (std::string line; std::getline(file, line);) {
    const bool is_call = line.find(": opCount ") != std::string::npos;
    if (is_call && ++calls[line.substr(0, line.find(' '))] > 8) continue;
    kept += line + "\n";
  }
  const std::string cut = scratch_.Write("cut.log", kept);
  const std::string fabric = "fabric { preset: \"h100-4x8-rail-optimized\" }\n";

  const ProgramExit import =
      Railyard({"import", "--format", "nccl-log", cut, "-o", scratch_.Path("cut.trace")});
  ASSERT_EQ(import.status, 0) << import.errors;
  const EndedRun from_log = RunText(fabric + "workload { nccl_log { files: \"cut.log\" } }\n");
  const EndedRun from_trace = RunText(fabric + "workload { trace: \"cut.trace\" }\n");
  ASSERT_EQ(from_log.exit.status, 0) << from_log.exit.errors;
  ASSERT_EQ(from_trace.exit.status, 0) << from_trace.exit.errors;
  EXPECT_EQ(from_log.Text("fingerprint"), from_trace.Text("fingerprint"));
  EXPECT_EQ(ReadText(from_log.directory + "/collectives.csv"),
            ReadText(from_trace.directory + "/collectives.csv"));
}

}  // namespace
}  // namespace railyard::testing
