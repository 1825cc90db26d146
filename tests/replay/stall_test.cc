// SPDX-License-Identifier: GPL-2.0-only
// Jobs that wait for themselves: STALLED, exit 4, and an explanation of who waits for whom.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

// Two ranks in one process each; both communicators are of both.
std::string Lines(uint32_t rank, const std::string& comms_in_order) {
  std::string text;
  const std::string prefix =
      fmt::format("node0:{}:{} [{}] NCCL INFO ", 100 + rank, 100 + rank, rank);
  for (const char comm : std::string("ab")) {
    text += fmt::format(
        "{}ncclCommInitRank comm 0x{}{} rank {} nranks 2 cudaDev {} nvmlDev {} busId 1b000 commId "
        "0x{}{} - Init COMPLETE\n",
        prefix, comm, rank, rank, rank, rank, comm, comm);
  }
  for (const char comm : comms_in_order) {
    text += fmt::format(
        "{}AllReduce: opCount 0 sendbuff 0x1000 recvbuff 0x2000 count 1048576 datatype 7 op 0 root "
        "0 comm 0x{}{} [nranks=2] stream 0x7\n",
        prefix, comm, rank);
  }
  return text;
}

class StallTest : public ProgramTest {
 protected:
  EndedRun RunLog(const std::string& log) {
    scratch_.Write("job.log", log);
    return RunText(RailOptimized(1) + "workload { nccl_log { files: \"job.log\" } }\n");
  }
};

TEST_F(StallTest, TwoCommunicatorsInOppositeOrderOnOneStreamStall) {
  const EndedRun run = RunLog(Lines(0, "ab") + Lines(1, "ba"));
  EXPECT_EQ(run.exit.status, 4) << run.exit.errors;
  ASSERT_TRUE(run.has_result());
  EXPECT_EQ(run.Text("status"), "STALLED");
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    EXPECT_EQ(run.collectives.Text(row, "completed"), "false");
    EXPECT_EQ(run.collectives.Text(row, "end_ps"), "");
  }
  const std::string why =
      run.Query("SELECT value FROM run WHERE key = 'status_detail'").Text(0, "value");
  EXPECT_THAT(why, HasSubstr("rank 0 in AllReduce #0"));
  EXPECT_THAT(why, HasSubstr("rank 1 in AllReduce #1"));
  EXPECT_THAT(why, HasSubstr("waits for data from rank 1"));
  EXPECT_THAT(why, HasSubstr("waits for data from rank 0"));
  EXPECT_THAT(run.exit.output, HasSubstr("STALLED"));
  EXPECT_THAT(run.exit.output, HasSubstr("rank 0 in AllReduce #0"));
}

TEST_F(StallTest, TheSameJobInEqualOrderCompletes) {
  const EndedRun run = RunLog(Lines(0, "ab") + Lines(1, "ab"));
  EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "COMPLETED");
}

// Operations of a stream follow one another; the second one's first start is the first one's end
// on that rank.
TEST_F(StallTest, OperationsOfOneStreamDoNotOverlap) {
  const EndedRun run = RunLog(Lines(0, "ab") + Lines(1, "ab"));
  ASSERT_EQ(run.collectives.size(), 2u);
  EXPECT_GE(run.collectives.Integer(1, "last_start_ps"), run.collectives.Integer(0, "start_ps"));
  EXPECT_GE(run.collectives.Integer(1, "start_ps"), run.collectives.Integer(0, "bound_ps"));
  EXPECT_LE(run.collectives.Integer(1, "start_ps"), run.collectives.Integer(0, "end_ps"));
}

}  // namespace
}  // namespace railyard::testing
