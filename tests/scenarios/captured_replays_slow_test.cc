// SPDX-License-Identifier: GPL-2.0-only
// Captures of real jobs on the machines they were made on: what the run says of measured durations
// is what the files hold, and bandwidth-bound collectives take as long (docs/validation.md).
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"
#include "tests/support/reference_dir.h"

namespace railyard::testing {
namespace {

// An entry of measured.by_size. `measured_ns` is the median over the collectives of the shortest
// duration that a rank measured, counted as the comments say.
struct Expected {
  std::string kind;
  int64_t bytes = 0;
  int64_t ranks = 0;
  int64_t count = 0;
  int64_t measured_ns = 0;
  double ratio_min = 0;  // bounds of the median ratio
  double ratio_max = 0;
};

class CapturedReplayTest : public ProgramTest {
 protected:
  void ImportFiles(const std::vector<std::string>& files) {
    std::vector<std::string> arguments = {"import"};
    for (const std::string& file : files) arguments.push_back(file);
    arguments.insert(arguments.end(), {"-o", scratch_.Path("job.trace")});
    const ProgramExit exit = Railyard(arguments);
    ASSERT_EQ(exit.status, 0) << exit.errors;
  }

  void ExpectMeasured(const EndedRun& run, const std::vector<Expected>& expected) {
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    for (const Expected& size : expected) {
      SCOPED_TRACE(fmt::format("{} of {}", size.kind, size.bytes));
      bool is_found = false;
      for (const auto& entry : run.At("measured.by_size").GetArray()) {
        if (entry["kind"].GetString() != size.kind || entry["bytes"].GetInt64() != size.bytes ||
            entry["ranks"].GetInt64() != size.ranks) {
          continue;
        }
        is_found = true;
        EXPECT_EQ(entry["count"].GetInt64(), size.count);
        EXPECT_EQ((entry["measured_p50_ps"].GetInt64() + 500) / 1000, size.measured_ns);
        EXPECT_GE(entry["ratio"]["p50"].GetDouble(), size.ratio_min);
        EXPECT_LE(entry["ratio"]["p50"].GetDouble(), size.ratio_max);
      }
      EXPECT_TRUE(is_found);
    }
  }
};

// For each of the eight files of kineto-dlrm-8ranks.tar.gz, in Python:
//   sorted((e["ts"], e["dur"]) for e in trace["traceEvents"]
//          if e.get("cat") == "kernel" and "nccl" in e["name"])
// and for the k-th kernel the least of the eight durations.
TEST_F(CapturedReplayTest, DlrmOnEightV100) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportFiles({reference_dir + "/traces/kineto-dlrm-8ranks.tar.gz",
               reference_dir + "/traces/pytorch-et-dlrm-8ranks.tar.gz"});
  const EndedRun run = RunText(
      "fabric { rail_optimized { mixed_servers { count: 1 platform: \"dgx-1-v100\" } } }\n"
      "workload { trace: \"job.trace\" }\n",
      {"--no-baseline"});
  ExpectMeasured(run, {{"AllReduce", 448, 8, 1, 20'000, 1, 2},
                       {"AllReduce", 907'840, 8, 1, 69'000, 0.8, 1.25},
                       {"AllReduce", 1'576'964, 8, 1, 86'000, 0.8, 1.25}});
  EXPECT_EQ(run.Integer("measured.count"), 8);
}

// One of two ranks; its kernels wait for the other one where an iteration begins. The large ones
// move 11 GB/s, as between servers with 100 Gb/s.
//   sorted(e["dur"] for e in trace["traceEvents"] if e.get("cat") == "kernel"
//          and e["args"].get("In msg nelems") == 6637568)[1]
TEST_F(CapturedReplayTest, DataParallelOverTwoServers) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportFiles({reference_dir + "/traces/kineto-ddp-2ranks-rank0-ncclargs.json.gz"});
  const EndedRun run = RunText(
      "fabric { rail_optimized { servers: 2 gpus_per_server: 1 nic_rate: \"100Gbps\" } }\n"
      "workload { trace: \"job.trace\" }\n",
      {"--no-baseline"});
  ExpectMeasured(run, {{"AllReduce", 26'550'272, 2, 3, 2'417'184, 0.85, 1.2},
                       {"AllReduce", 31'502'336, 2, 3, 2'673'916, 0.85, 1.2}});
  EXPECT_EQ(run.Integer("measured.count"), 21);
}

// The third iteration of A100_example_measured.csv.gz, which the second of its lines epoch_end
// begins:
//   it = [r.split(",") for r in text.split("epoch_end")[2].splitlines()]
//   statistics.median(float(r[8]) for r in it if r[3] == "134217728" and "gather" in r[0])
// prints eleven of each; the values are the fifth and sixth of each, and their ranks measure the
// same.
TEST_F(CapturedReplayTest, TrainingOnEightA100) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportFiles({reference_dir + "/traces/aicb-workload/A100_example_measured.csv.gz"});
  const ProgramExit cut = Railyard({"trace", "cut", scratch_.Path("job.trace"), "--iterations", "2",
                                    "-o", scratch_.Path("third.trace")});
  ASSERT_EQ(cut.status, 0) << cut.errors;
  const EndedRun run = RunText(
      "fabric { rail_optimized { mixed_servers { count: 1 platform: \"dgx-a100\" } } }\n"
      "workload { trace: \"third.trace\" }\n",
      {"--no-baseline"});
  ExpectMeasured(run, {{"ReduceScatter", 35'634'282'496, 4, 2, 128'396'286, 0.9, 1.15},
                       {"AllGather", 17'817'141'248, 4, 2, 63'158'272, 0.9, 1.15},
                       {"ReduceScatter", 134'217'728, 2, 256, 512'000, 0.9, 1.15},
                       {"AllGather", 134'217'728, 2, 256, 507'904, 0.9, 1.15}});
}

}  // namespace
}  // namespace railyard::testing
