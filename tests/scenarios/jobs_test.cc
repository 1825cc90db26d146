// SPDX-License-Identifier: GPL-2.0-only
// Several jobs on one fabric: what they cost one another, and what placement puts where, against
// what links they share.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

std::string Job(const std::string& name, const std::string& collectives,
                const std::string& more = "", const std::string& ranks = "") {
  return fmt::format(
      "jobs {{ name: \"{}\" {} workload {{ algorithm: RING protocol: SIMPLE program {{ {} {} }} }} "
      "}}\n",
      name, more, ranks, collectives);
}
constexpr const char* kAllReduce = "collectives { kind: ALL_REDUCE bytes: \"4MiB\" repeat: 3 }";
constexpr const char* kSendRecv = "collectives { kind: SEND_RECV bytes: \"8MiB\" }";

class JobsTest : public ProgramTest {};

TEST_F(JobsTest, JobsThatShareNoLinkDoNotFeelOneAnother) {
  const std::string jobs =
      Job("a", kAllReduce, "placement { gpus: \"server0/*\" gpus: \"server1/*\" }") +
      Job("b", kAllReduce, "placement { gpus: \"server2/*\" gpus: \"server3/*\" } start: \"40us\"");
  const EndedRun run = RunText(RailOptimized(4) + jobs);
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  for (const char* job : {"jobs.0", "jobs.1"}) {
    EXPECT_EQ(run.Real(std::string(job) + ".interference"), 1);
    EXPECT_EQ(run.Real(std::string(job) + ".collective_interference.max"), 1);
  }
  for (size_t row = 0; row < 6; ++row) {
    EXPECT_EQ(run.collectives.Integer(row, "duration_ps"),
              run.collectives.Integer(row, "alone_duration_ps"));
  }
  // Both jobs do equal work on equal GPUs. They differ in their start, and in the order of events
  // of one instant, which is by GPU.
  EXPECT_EQ(run.Integer("jobs.1.start_ps"), 40'000'000);
  const double alone_ps = run.Real("jobs.0.alone_time_ps");
  EXPECT_NEAR(run.Real("jobs.1.end_ps"), run.Real("jobs.0.end_ps") + 40e6, 1e-3 * alone_ps);
  EXPECT_NEAR(run.Real("jobs.1.alone_time_ps"), alone_ps, 1e-3 * alone_ps);
  EXPECT_EQ(run.collectives.Text(5, "job"), "b");
  EXPECT_EQ(run.collectives.Text(5, "communicator"), "b/world");
  EXPECT_THAT(run.exit.output, HasSubstr("Interference: time beside the other jobs"));
  const Table jobs_table = run.Query("SELECT * FROM jobs");
  EXPECT_EQ(jobs_table.Text(1, "job"), "b");
  EXPECT_EQ(jobs_table.Integer(1, "gpus"), 16);
  // Without paired runs nothing is known.
  const EndedRun unpaired = RunText(RailOptimized(4) + jobs, {"--no-baseline"});
  EXPECT_TRUE(unpaired.At("jobs.0.interference").IsNull());
  EXPECT_EQ(unpaired.Text("fingerprint"), run.Text("fingerprint"));
  EXPECT_EQ(RunText(RailOptimized(4) + jobs, {"--no-replay-cache"}).Text("fingerprint"),
            run.Text("fingerprint"));
}

// One cable from leaf to leaf, of the NICs' rate: two that fill it get half of it each.
TEST_F(JobsTest, JobsThatShareABottleneckTakeTwiceAsLong) {
  const std::string fabric =
      "fabric { leaf_spine { servers { count: 2 gpus: 2 nics: 2 } nics_per_leaf: 2 spines: 1 "
      "leaf_spine { rate: \"400Gbps\" } } }\n";
  const auto jobs = [](const std::string& start) {
    return Job("a", "collectives { kind: SEND_RECV bytes: \"64MiB\" }",
               "placement { gpus: \"*/gpu0\" }") +
           Job("b", "collectives { kind: SEND_RECV bytes: \"64MiB\" }",
               "placement { gpus: \"*/gpu1\" } start: \"" + start + "\"");
  };
  const EndedRun run = RunText(fabric + kFreeGpu + jobs("0s"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_NEAR(run.Real("jobs.0.interference"), 2, 0.05);
  EXPECT_NEAR(run.Real("jobs.1.interference"), 2, 0.05);
  // One that begins when the other is done has the cable for itself; one that begins when it is
  // half done shares the half that is left: 0.5 + 2 x 0.5 of its time.
  const int64_t alone_ps = run.Integer("jobs.0.alone_time_ps");
  const EndedRun apart = RunText(fabric + kFreeGpu + jobs(fmt::format("{}ps", alone_ps)));
  EXPECT_EQ(apart.Real("jobs.0.interference"), 1);
  EXPECT_NEAR(apart.Real("jobs.1.interference"), 1, 0.001);
  const EndedRun half = RunText(fabric + kFreeGpu + jobs(fmt::format("{}ps", alone_ps / 2)));
  EXPECT_NEAR(half.Real("jobs.0.interference"), 1.5, 0.05);
  EXPECT_NEAR(half.Real("jobs.1.interference"), 1.5, 0.05);
}

// Rank r sends to r + 1: packed on two servers of 8, two of 16 ranks send to the other server;
// striped all do. By rail they are packed again, 4 of 16 where a job has 4 GPUs of 4 servers.
TEST_F(JobsTest, PlacementDecidesWhatLeavesServers) {
  const auto left = [this](const std::string& placement) {
    const EndedRun run = RunText(
        RailOptimized(4) + Job("a", kSendRecv, "placement { " + placement + " }", "ranks: 16"));
    EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_EQ(run.Integer("payload.total_bytes"), 16L * 8 * kMiB);
    // From NIC to leaf and from leaf to NIC.
    const double share = run.Real("payload.left_server_share");
    EXPECT_EQ(static_cast<double>(run.OfTier("NIC_LEAF", "payload_bytes")),
              2 * share * 16 * 8 * kMiB);
    return share;
  };
  EXPECT_EQ(left("policy: PACKED"), 2.0 / 16);
  EXPECT_EQ(left("policy: STRIPED"), 1.0);
  EXPECT_EQ(left("policy: BY_RAIL"), 4.0 / 16);
  EXPECT_EQ(left("gpus: \"server0/*\" gpus: \"server3/*\""), 2.0 / 16);
}

// Three ranks on servers of two GPUs: one of them has nobody beside it, and no NVLink to use.
// Each job also runs alone, without the calls of the others.
TEST_F(JobsTest, AJobOfExpertsMayRunBesideAnother) {
  const EndedRun run = RunText(
      RailOptimized(2) +
      "jobs { workload { inline_plan { model { layers: 1 hidden: 1024 heads: 8 vocabulary: 1024 "
      "experts { count: 8 per_token: 2 feed_forward: 256 kernel: DEEPEP } } "
      "parallelism { data: 8 expert: 8 } "
      "compute { given { attention: \"1us\" feed_forward: \"1us\" embedding: \"1us\" "
      "output_layer: \"1us\" backward_ratio: 2 optimizer: \"1us\" } } "
      "training { sequence: 8 micro_batch: 1 micro_batches: 1 } } } }\n"
      "jobs { workload { program { ranks: 8 collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } } "
      "}\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Real("jobs.1.interference"), 1);
}

TEST_F(JobsTest, ARankMayBeAloneInItsServer) {
  const std::string fabric =
      "fabric { leaf_spine { servers { count: 2 gpus: 2 } nics_per_leaf: 4 spines: 1 } }\n";
  const EndedRun run =
      RunText(fabric + Job("a", "collectives { kind: ALL_GATHER bytes: \"72KiB\" repeat: 2 }", "",
                           "ranks: 3"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("payload.total_bytes"), 2 * 3 * 2 * 24 * 1024);
}

// NVLink has no retries; the other job's servers go on.
TEST_F(JobsTest, AnNvlinkErrorEndsOneJobAlone) {
  const EndedRun run =
      RunText(RailOptimized(2) +
              Job("a", "collectives { kind: ALL_REDUCE bytes: \"16MiB\" }",
                  "placement { gpus: \"server0/*\" }") +
              Job("b", "collectives { kind: ALL_REDUCE bytes: \"16MiB\" repeat: 5 }",
                  "placement { gpus: \"server1/*\" }") +
              LinkDown("server0/gpu0--server0/nvswitch0", "50us"));
  ASSERT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_EQ(run.Text("jobs.0.status"), "JOB_ABORTED");
  EXPECT_EQ(run.Text("jobs.1.status"), "COMPLETED");
  EXPECT_EQ(run.Integer("jobs.1.end_ps"), run.Integer("jobs.1.alone_time_ps"));
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
}

// A cable that is cut permanently ends the job whose packets it loses; the other goes on to its
// end.
TEST_F(JobsTest, AJobThatIsAbortedTakesNoOtherAlong) {
  const std::string text =
      RailOptimized(4) + "nccl { IB_TIMEOUT: 4 IB_RETRY_CNT: 1 }\n" +
      Job("a", kAllReduce, "placement { gpus: \"server0/*\" gpus: \"server1/*\" }") +
      Job("b", "collectives { kind: ALL_REDUCE bytes: \"64MiB\" repeat: 5 }",
          "placement { gpus: \"server2/*\" gpus: \"server3/*\" }") +
      LinkDown("server1/nic3--leaf3", "20us");
  const EndedRun run = RunText(text);
  ASSERT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "JOB_ABORTED");
  EXPECT_EQ(run.Text("jobs.0.status"), "JOB_ABORTED");
  EXPECT_EQ(run.Real("jobs.0.goodput"), 0);
  EXPECT_EQ(run.Text("jobs.1.status"), "COMPLETED");
  EXPECT_EQ(run.Real("jobs.1.goodput"), 1);
  // The launcher ends the ranks that hang 100 ms after the first error.
  EXPECT_EQ(run.Integer("jobs.0.end_ps"), run.Integer("jobs.0.first_error_ps") + 100'000'000'000);
  EXPECT_EQ(run.Integer("simulated_time_ps"), run.Integer("jobs.0.end_ps"));
  EXPECT_TRUE(run.At("jobs.1.first_error_ps").IsNull());
  EXPECT_EQ(run.Integer("jobs.1.end_ps"), run.Integer("jobs.1.alone_time_ps"));
  EXPECT_THAT(run.exit.output, HasSubstr("job a: rank"));
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  // Interference compares fault-free runs.
  EXPECT_EQ(run.Real("jobs.0.interference"), 1);
  EXPECT_EQ(run.Real("jobs.1.interference"), 1);
}

}  // namespace
}  // namespace railyard::testing
