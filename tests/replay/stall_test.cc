// SPDX-License-Identifier: GPL-2.0-only
// Jobs that wait for themselves: STALLED, exit 4, and an explanation of who waits for whom.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"
#include "tests/support/regex.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

// From a rank over its transfer and queue pair to the link that is down.
class WaitChainTest : public ProgramTest {
 protected:
  static constexpr const char* kBlocks =
      "nccl { IB_TIMEOUT: 24 }\nwatchdog { no_progress: \"10s\" }\n"
      "workload { algorithm: RING protocol: SIMPLE\n"
      "program { collectives { kind: ALL_REDUCE bytes: \"16MiB\" repeat: 2 } } }\n";
  static std::string WhyOf(const EndedRun& run) {
    return run.Query("SELECT value FROM run WHERE key = 'status_detail'").Text(0, "value");
  }
};

TEST_F(WaitChainTest, EndsAtTheLinkThatIsDown) {
  const EndedRun run =
      RunText(RailOptimized(2) + kBlocks + LinkDown("server1/nic3--leaf3", "100us"));
  ASSERT_EQ(run.exit.status, 4) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "STALLED");
  EXPECT_THAT(WhyOf(run), HasSubstr("nothing went on for 10 s of simulated time"));
  // A rank's own NIC is the end of every chain, and its cable what is named; others do not occur.
  EXPECT_TRUE(std::regex_search(
      WhyOf(run), std::regex("in AllReduce #\\d+ of communicator world: rank \\d+ waits for .* -> "
                             "queue pair server[01]/nic3 -> server[01]/nic3 \\(.*\\) -> "
                             "there is no route: .*leaf3>server1/nic3 is down")))
      << WhyOf(run);
  EXPECT_THAT(WhyOf(run), Not(HasSubstr("leaf2>server1/nic2 is down")));
  // Partial results: what was delivered until then, all of it accounted for.
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_GT(run.Integer("conservation.delivered_bytes"), 0);
}

// Nobody routes around what nobody notices: the link itself is on the queue pair's path.
TEST_F(WaitChainTest, NamesALinkThatNobodyKnowsToBeDown) {
  const EndedRun run = RunText(RailOptimized(2) + kBlocks +
                               "faults { kind: LINK_DOWN link: \"server1/nic3--leaf3\" "
                               "direction: BACKWARD unnoticed: true at: \"100us\" }\n");
  ASSERT_EQ(run.exit.status, 4) << run.exit.errors;
  EXPECT_THAT(WhyOf(run), HasSubstr(" -> leaf3>server1/nic3 is down"));
  EXPECT_THAT(WhyOf(run), Not(HasSubstr("server1/nic3>leaf3 is down")));
}

TEST_F(WaitChainTest, NamesALinkThatIsPaused) {
  const EndedRun run = RunText(RailOptimized(2) + kBlocks +
                               "faults { kind: PAUSE_STORM device: \"server1/nic3\" "
                               "at: \"100us\" }\n");
  ASSERT_EQ(run.exit.status, 4) << run.exit.errors;
  EXPECT_THAT(WhyOf(run), HasSubstr(" -> leaf3>server1/nic3 is paused"));
}

TEST_F(WaitChainTest, EndsAtTheGpuThatStandsStill) {
  const EndedRun run = RunText(RailOptimized(2) + kBlocks +
                               "faults { kind: STRAGGLER device: \"server1/gpu3\" speed: 0 "
                               "at: \"100us\" }\n");
  ASSERT_EQ(run.exit.status, 4) << run.exit.errors;
  EXPECT_THAT(WhyOf(run), HasSubstr(" -> server1/gpu3, rank 11, stands still"));
}

// Two ranks that wait for one another.
TEST_F(StallTest, AChainThatClosesSaysSo) {
  const EndedRun run = RunLog(Lines(0, "ab") + Lines(1, "ba"));
  EXPECT_THAT(run.Query("SELECT value FROM run WHERE key = 'status_detail'").Text(0, "value"),
              HasSubstr("again: they wait for one another"));
}

// A link elsewhere that flaps every nanosecond keeps the simulation busy while the job waits for a
// timer of 69 s: hours of real time without progress.
TEST_F(WaitChainTest, RealTimeWithoutProgressEndsTheRunToo) {
  const EndedRun run = RunText(
      RailOptimized(2) + "nccl { IB_TIMEOUT: 24 }\nwatchdog { no_progress_real: \"400ms\" }\n" +
          Program("ALL_REDUCE", "16MiB") + LinkDown("server1/nic0--leaf0", "100us") +
          "faults { name: \"busy\" kind: LINK_DOWN link: \"leaf7--spine0\" "
          "unnoticed: true at: \"1ms\" until: \"1000001ns\" "
          "repeat { period: \"2ns\" } }\n",
      {"--no-baseline"});
  ASSERT_EQ(run.exit.status, 4) << run.exit.errors;
  EXPECT_THAT(WhyOf(run), HasSubstr("nothing went on for 400 ms of real time"));
  EXPECT_THAT(WhyOf(run), HasSubstr("leaf0>server1/nic0 is down"));
  // Well before the timer, and before the simulated time that is the default.
  EXPECT_LT(run.Integer("simulated_time_ps"), 68'000'000'000'000);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_GT(run.Integer("conservation.delivered_bytes"), 0);
}

}  // namespace
}  // namespace railyard::testing
