// SPDX-License-Identifier: GPL-2.0-only
// Jobs beyond what a run can be: simulated time ends after 9,072,000 s (105 days, ADR 0004), and
// what is large is checked without looking at all pairs of GPUs.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Repeated(const std::string& compute, uint64_t repeat, const std::string& more = "") {
  return RailOptimized(2) +
         fmt::format(
             "workload {{ algorithm: RING program {{ repeat: {} collectives {{ kind: ALL_REDUCE "
             "bytes: \"64KiB\" compute_before: \"{}\" }} }} }}\n",
             repeat, compute) +
         more;
}

struct TooLong {
  const char* name;
  std::string scenario;
  const char* finding;
};

void PrintTo(const TooLong& entry, std::ostream* stream) { *stream << entry.name; }

class TooLongTest : public ProgramTest, public ::testing::WithParamInterface<TooLong> {};

// validate says what run says, and neither writes anything.
TEST_P(TooLongTest, IsRefusedWhereItIsStated) {
  const EndedRun run = RunText(GetParam().scenario);
  EXPECT_EQ(run.exit.status, 2);
  EXPECT_FALSE(std::filesystem::exists(run.directory));
  EXPECT_THAT(run.exit.errors, StartsWith(scratch_.Path("scenario.textproto:")));
  EXPECT_THAT(run.exit.errors, HasSubstr(GetParam().finding));
  EXPECT_EQ(std::count(run.exit.errors.begin(), run.exit.errors.end(), '\n'), 1) << run.exit.errors;
  const ProgramExit checked = Railyard({"validate", scratch_.Path("scenario.textproto")});
  EXPECT_EQ(checked.status, 2);
  EXPECT_EQ(checked.errors, run.exit.errors);
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, TooLongTest,
    ::testing::Values(
        // 199 checkpoints lie between 200 iterations: 199 days.
        TooLong{"Checkpoints",
                Repeated("0s", 200, "restart { checkpoint_every: 1 save: \"24h\" }\n"),
                "restart.save: 199 checkpoints of 86400 s take longer than simulated time lasts"},
        // 3,000 hours are 125 days, 1,000,000 x 10 s are 115.
        TooLong{"Hours", Repeated("1h", 3000), "workload.program: a rank computes for longer"},
        TooLong{"MoreHoursThanFit", Repeated("1h", 5200), "workload.program: a rank computes for"},
        TooLong{"AMillionIterations", Repeated("10s", 1'000'000),
                "workload.program: a rank computes for longer than simulated time lasts"},
        TooLong{"AWatchdogThatNothingSatisfies",
                Repeated("0s", 1, "watchdog { no_progress: \"1us\" }\n"),
                "watchdog.no_progress: \"1us\" is out of range (expected 1 ms to 90 days)"},
        TooLong{"SlowerThanAnyStraggler",
                Repeated("0s", 1,
                         "faults { name: \"slow\" kind: STRAGGLER device: \"server1/gpu1\" "
                         "at: \"1us\" speed: 1e-300 }\n"),
                "faults[0].speed: 1e-300 is out of range"}),
    [](const auto& entry) { return entry.param.name; });

class LimitsTest : public ProgramTest {};

// Every time that the job begins again it is aborted: 105 days in the queue, then time ends.
TEST_F(LimitsTest, ARunThatRestartsEndsWhereTimeDoes) {
  const EndedRun run =
      RunText(Repeated("0s", 2,
                       "nccl { IB_TIMEOUT: 5 IB_RETRY_CNT: 1 }\n"
                       "restart { checkpoint_every: 1 requeue: \"24h\" restarts_max: 200 }\n" +
                           LinkDown("server*/nic*--leaf*", "1us")));
  EXPECT_EQ(run.exit.status, 4) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "TIME_ENDED");
  EXPECT_EQ(run.Integer("simulated_time_ps"), 9'072'000'000'000'000'000);
  EXPECT_EQ(run.Integer("jobs.0.restarts"), 105);
  EXPECT_THAT(run.exit.output,
              HasSubstr("simulated time ends after 9072000 s, before the job does"));
}

// A minute at a hundred-thousandth of the speed is 69 days: the watchdog ends what nobody awaits.
TEST_F(LimitsTest, AGpuThatHardlyMovesStallsTheJob) {
  const EndedRun run = RunText(Repeated("60s", 1,
                                        "faults { name: \"slow\" kind: STRAGGLER device: "
                                        "\"server1/gpu1\" at: \"1us\" speed: 0.00001 }\n"));
  EXPECT_EQ(run.exit.status, 4) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "STALLED");
  EXPECT_THAT(run.exit.output, HasSubstr("rank 9 has not begun AllReduce #0"));
}

TEST_F(LimitsTest, PerfSaysWhichSizesThereAre) {
  const ProgramExit exit = Railyard(
      {"perf", "--collective", "all_reduce", "--fabric", "dgx-h100", "-e", "18446744073709551615"});
  EXPECT_EQ(exit.status, 2);
  EXPECT_EQ(exit.errors,
            "railyard: error: -e: \"18446744073709551615\" is out of range (expected at most 1 "
            "PiB)\n");
}

class LargeTest : public ProgramTest {
 protected:
  // Ends the test where a quadratic check would not end.
  ProgramExit Quickly(const std::vector<std::string>& arguments) {
    RunningProgram program(scratch_, arguments);
    return program.Wait(kSecondsMax);
  }
  static constexpr int kSecondsMax = 100;  // under sanitizers, on a busy machine
};

// 2^28 pairs of GPUs exchange.
TEST_F(LargeTest, AnAllToAllOf16384GpusIsChecked) {
  const std::string path =
      scratch_.Write("large.textproto", RailOptimized(2048) + Program("ALL_TO_ALL", "64MiB"));
  const ProgramExit exit = Quickly({"validate", path});
  EXPECT_EQ(exit.status, 0);
  EXPECT_THAT(exit.output, HasSubstr("16384 ranks on 16384 GPUs"));
  // 16,384 x 16,383, less those within servers.
  EXPECT_THAT(exit.errors, HasSubstr("workload: run will refuse it: "));
}

TEST_F(LargeTest, AStarOf16384GpusIsDescribed) {
  std::string text = "devices { name: \"sw\" kind: SWITCH }\n";
  for (int i = 0; i < 16'384; ++i) {
    text += fmt::format(
        "devices {{ name: \"s{0}/gpu0\" kind: GPU server: {0} local_index: 0 }}\n"
        "devices {{ name: \"s{0}/nic0\" kind: NIC server: {0} local_index: 0 }}\n"
        "links {{ from: \"s{0}/gpu0\" to: \"s{0}/nic0\" tier: HOST rate: \"400Gbps\" }}\n"
        "links {{ from: \"s{0}/nic0\" to: \"sw\" tier: NIC_LEAF rate: \"400Gbps\" }}\n",
        i);
  }
  const ProgramExit exit = Quickly({"topo", "show", scratch_.Write("star.textproto", text)});
  EXPECT_EQ(exit.status, 0) << exit.errors;
  EXPECT_THAT(exit.output, HasSubstr("16384 GPUs in 16384 servers, 0 NVSwitches, 16384 NICs, 1 "
                                     "switch\n"));
}

TEST_F(LargeTest, ALogOfAMillionRanksInTwoLinesIsRead) {
  const std::string path = scratch_.Write(
      "rank0.log",
      "n:1:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 1000000 cudaDev 0 nvmlDev 0 "
      "busId 1000 commId 0x5 - Init COMPLETE\n"
      "n:1:1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7 recvbuff 0x7 count 1024 datatype 7 op "
      "0 root 0 comm 0x1 [nranks=1000000] stream 0x5\n");
  const ProgramExit exit =
      Quickly({"import", "--format", "nccl-log", path, "-o", scratch_.Path("job.trace")});
  EXPECT_EQ(exit.status, 0) << exit.errors;
  EXPECT_THAT(exit.output, HasSubstr("1 calls seen in 2 lines of 1 file: 1 imported"));
}

// All ranks are in one communicator, which is listed once and not once for each of them.
TEST_F(LargeTest, APlanOf65536ReplicasBecomesATrace) {
  const std::string path = scratch_.Write(
      "plan.textproto",
      "model { preset: \"gpt-2\" }\nparallelism { data: 65536 }\n"
      "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
      "training { sequence: 128 micro_batch: 1 micro_batches: 1 }\n");
  const ProgramExit exit = Quickly({"synth", path, "-o", scratch_.Path("job.trace")});
  EXPECT_EQ(exit.status, 0) << exit.errors;
  EXPECT_THAT(exit.output, HasSubstr("65536 ranks, 1 communicator, "));
}

}  // namespace
}  // namespace railyard::testing
