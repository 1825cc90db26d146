// SPDX-License-Identifier: GPL-2.0-only
// Dumps of PyTorch's Flight Recorder after a hang: the scenario that is made of them hangs in the
// same collectives, and its result names the ranks that others wait for.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"
#include "tests/support/regex.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct RecordedCall {
  std::string group;
  int sequence = 0;
  std::string state;  // "completed", "started" or "scheduled"
};

// The process groups of a job by name, each with its global ranks.
using Groups = std::map<std::string, std::vector<uint32_t>>;

std::string Dump(const Groups& groups, const std::vector<RecordedCall>& calls) {
  std::vector<std::string> configurations;
  for (const auto& [name, ranks] : groups) {
    configurations.push_back(
        fmt::format(R"("{}": {{"name": "{}", "desc": "group", "ranks": "[{}]"}})", name, name,
                    fmt::join(ranks, ", ")));
  }
  std::vector<std::string> entries;
  for (const RecordedCall& call : calls) {
    entries.push_back(fmt::format(
        R"({{"record_id": {}, "process_group": ["{}", "group"], "collective_seq_id": {},
            "profiling_name": "nccl:all_reduce", "input_sizes": [[1048576]],
            "input_dtypes": ["Float"], "output_sizes": [[1048576]], "output_dtypes": ["Float"],
            "state": "{}", "is_p2p": false}})",
        entries.size(), call.group, call.sequence, call.state));
  }
  return fmt::format(R"({{"version": "2.5", "pg_config": {{{}}}, "entries": [{}]}})",
                     fmt::join(configurations, ", "), fmt::join(entries, ", "));
}

// Lines of the printed result are broken at spaces.
std::string Unwrapped(const std::string& text) {
  return std::regex_replace(text, std::regex("\\s+"), " ");
}

class HangTest : public ProgramTest {
 protected:
  // By global rank, as the processes write them when the job has hung.
  void WriteDumps(const Groups& groups, const std::vector<std::vector<RecordedCall>>& calls) {
    std::filesystem::create_directory(scratch_.Path("dump"));
    for (size_t rank = 0; rank < calls.size(); ++rank) {
      scratch_.Write(fmt::format("dump/nccl_trace_rank_{}", rank), Dump(groups, calls[rank]));
    }
  }

  EndedRun ImportAndRun() {
    const ProgramExit import =
        Railyard({"import", "--format", "flight-recorder", scratch_.Path("dump"), "--scenario",
                  scratch_.Path("hang.textproto")});
    EXPECT_EQ(import.status, 0) << import.errors;
    EXPECT_TRUE(std::filesystem::exists(scratch_.Path("hang.trace")));
    return RunFile(scratch_.Path("hang.textproto"));
  }
};

TEST_F(HangTest, ARankThatNeverComesIsNamedByTheRunThatWaitsForIt) {
  Groups groups;
  for (uint32_t rank = 0; rank < 16; ++rank) groups["0"].push_back(rank);
  std::vector<std::vector<RecordedCall>> calls(
      16, {{"0", 1, "completed"}, {"0", 2, "completed"}, {"0", 3, "started"}});
  calls[5].pop_back();  // its process is elsewhere
  WriteDumps(groups, calls);

  const EndedRun run = ImportAndRun();
  EXPECT_EQ(run.exit.status, 4) << run.exit.errors;
  ASSERT_TRUE(run.has_result());
  EXPECT_EQ(run.Text("status"), "STALLED");
  // It ends where the job did: two collectives are done, the third has begun on all other ranks.
  ASSERT_EQ(run.collectives.size(), 3u);
  EXPECT_EQ(run.collectives.Text(0, "completed"), "true");
  EXPECT_EQ(run.collectives.Text(1, "completed"), "true");
  EXPECT_EQ(run.collectives.Text(2, "completed"), "false");
  EXPECT_THAT(Unwrapped(run.exit.output),
              HasSubstr("rank 5 has not begun AllReduce #2 of communicator 0"));
  EXPECT_THAT(Unwrapped(run.exit.output), HasSubstr("waits for data from rank 5"));
  for (uint32_t rank = 0; rank < 16; ++rank) {
    if (rank == 5) continue;
    EXPECT_THAT(Unwrapped(run.exit.output),
                Not(HasSubstr(fmt::format("rank {} has not begun", rank))));
  }
}

TEST_F(HangTest, RanksThatWaitForEachOtherInTwoGroupsAreBothNamed) {
  // Ranks 1 and 2 share two groups and call them in opposite order. Ranks 0 and 3 wait for them.
  const Groups groups = {{"0", {0, 1, 2, 3}}, {"first", {0, 1, 2}}, {"second", {1, 2, 3}}};
  WriteDumps(groups, {{{"0", 1, "completed"}, {"first", 1, "started"}},
                      {{"0", 1, "completed"}, {"first", 1, "started"}},
                      {{"0", 1, "completed"}, {"second", 1, "started"}},
                      {{"0", 1, "completed"}, {"second", 1, "started"}}});

  const EndedRun run = ImportAndRun();
  EXPECT_EQ(run.exit.status, 4) << run.exit.errors;
  ASSERT_TRUE(run.has_result());
  EXPECT_EQ(run.Text("status"), "STALLED");
  ASSERT_EQ(run.collectives.size(), 3u);
  EXPECT_EQ(run.collectives.Text(0, "completed"), "true");
  for (const size_t row : {size_t{1}, size_t{2}})
    EXPECT_EQ(run.collectives.Text(row, "completed"), "false");
  EXPECT_THAT(Unwrapped(run.exit.output),
              HasSubstr("rank 2 has not begun AllReduce #1 of communicator first"));
  EXPECT_THAT(Unwrapped(run.exit.output),
              HasSubstr("rank 1 has not begun AllReduce #2 of communicator second"));
  EXPECT_THAT(
      ReadText(scratch_.Path("hang.textproto")),
      HasSubstr("in group \"first\": ranks 0, 1 wait for rank 2, which has not come to it."));
}

TEST_F(HangTest, WithoutAFileForTheTraceOrAScenarioNothingIsWritten) {
  WriteDumps({{"0", {0, 1}}}, {{{"0", 1, "completed"}}, {{"0", 1, "completed"}}});
  const ProgramExit exit = Railyard({"import", scratch_.Path("dump")});
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("--output: error: is missing"));
}

}  // namespace
}  // namespace railyard::testing
