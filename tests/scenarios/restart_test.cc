// SPDX-License-Identifier: GPL-2.0-only
// Jobs that fail begin again at their last checkpoint: times against what each part takes.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPsPerS = 1'000'000'000'000;
constexpr int64_t kPsPerUs = 1'000'000;

class RestartTest : public ProgramTest {
 protected:
  // 100 rounds of 10 s and a collective, a checkpoint of 2 s before every tenth.
  static std::string Job(const std::string& more = "") {
    return RailOptimized(2) + "workload { algorithm: RING protocol: SIMPLE program { repeat: 100 " +
           "collectives { kind: ALL_REDUCE bytes: \"256KiB\" compute_before: \"10s\" } } }\n" +
           "nccl { IB_TIMEOUT: 14 }\n" +
           "restart { checkpoint_every: 10 save: \"2s\" load: \"7s\" requeue: \"40s\" " + more +
           " }\n";
  }
  static int64_t Of(const EndedRun& run, const std::string& part) {
    return run.Integer("jobs.0." + part);
  }
};

// Error 12 takes 8 x 67 ms from the collective's first lost packet.
constexpr int64_t kError12Ps = 8 * (int64_t{4'096'000} << 14);

TEST_F(RestartTest, AFailureCostsWorkSinceTheCheckpointDetectionQueueAndLoading) {
  // The 26th collective begins at 26 x 10 s + 2 x 2 s and is cut off then.
  const EndedRun run = RunText(Job() + LinkDown("server1/nic3--leaf3", "263s", "270s"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(Of(run, "restarts"), 1);
  // Since the checkpoint before the 21st round, which is done at 20 x 10 s + 2 x 2 s and what 20
  // collectives take.
  const int64_t collective_ps = run.collectives.Integer(0, "duration_ps");
  const int64_t failed_ps = 264 * kPsPerS + 25 * collective_ps + kError12Ps;
  const int64_t saved_ps = 204 * kPsPerS + 20 * collective_ps;
  EXPECT_NEAR(static_cast<double>(Of(run, "rework_ps")), static_cast<double>(failed_ps - saved_ps),
              300.0 * kPsPerUs);
  EXPECT_EQ(Of(run, "detection_ps"), kPsPerS / 10);
  EXPECT_EQ(Of(run, "requeue_ps"), 40 * kPsPerS);
  EXPECT_EQ(Of(run, "load_ps"), 7 * kPsPerS);
  EXPECT_EQ(Of(run, "save_ps"), 9 * (2 * kPsPerS));
  // Nothing else is lost, but for what collectives differ by.
  EXPECT_NEAR(static_cast<double>(Of(run, "lost_ps")),
              static_cast<double>(Of(run, "rework_ps") + Of(run, "detection_ps") +
                                  Of(run, "requeue_ps") + Of(run, "load_ps")),
              200.0 * kPsPerUs);
  const auto time_ps = static_cast<double>(run.Integer("simulated_time_ps"));
  const auto lost_ps = static_cast<double>(Of(run, "lost_ps"));
  EXPECT_NEAR(run.Real("jobs.0.goodput"), 1 - lost_ps / time_ps, 1e-9);
  EXPECT_NEAR(run.Real("jobs.0.effective_training_time_ratio"),
              1 - (lost_ps + 18.0 * kPsPerS) / time_ps, 1e-9);
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    EXPECT_EQ(run.collectives.Text(row, "completed"), "true");
  }
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  // On either side of the cable, both before the launcher has ended the ranks.
  EXPECT_EQ(run.Integer("transport.qp_errors"), 2);
}

TEST_F(RestartTest, BeforeTheFirstCheckpointAllWorkIsLost) {
  const EndedRun run = RunText(Job() + LinkDown("server1/nic3--leaf3", "55s", "62s"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(Of(run, "restarts"), 1);
  EXPECT_NEAR(static_cast<double>(Of(run, "rework_ps")),
              static_cast<double>(60 * kPsPerS + kError12Ps), 2000.0 * kPsPerUs);
}

// Ranks without an error of their own wait until their collective times out.
TEST_F(RestartTest, WithoutALauncherAllRanksWaitForTheWatchdog) {
  const EndedRun run =
      RunText(Job("detection: WATCHDOG") + LinkDown("server1/nic3--leaf3", "263s", "270s"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_NEAR(static_cast<double>(Of(run, "detection_ps")),
              static_cast<double>(600 * kPsPerS - kError12Ps), 300.0 * kPsPerUs);
}

// A fault that lasts lets the job fail again, and again; where it may not, it is aborted.
TEST_F(RestartTest, AFaultThatLastsUsesUpTheRestarts) {
  const EndedRun run = RunText(Job("restarts_max: 3") + LinkDown("server1/nic3--leaf3", "263s"));
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "JOB_ABORTED");
  EXPECT_EQ(Of(run, "restarts"), 3);
  // Each time from the same checkpoint, up to the collective after 10 s of computation.
  EXPECT_NEAR(static_cast<double>(Of(run, "rework_ps")),
              static_cast<double>(60 * kPsPerS + 2 * (10 * kPsPerS) + 3 * kError12Ps),
              20'000.0 * kPsPerUs);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
}

// Packets of the old processes are held permanently, and those of the new ones behind them. Waiting
// takes what is stated, and no time of the machine's.
TEST_F(RestartTest, AStormThatLastsUsesUpTheRestarts) {
  const std::string storm =
      "faults { name: \"storm\" kind: PAUSE_STORM device: \"server1/nic3\" at: \"263s\" }\n";
  const EndedRun run = RunText(Job("restarts_max: 3 detection: WATCHDOG") + storm);
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "JOB_ABORTED");
  EXPECT_EQ(Of(run, "restarts"), 3);
  EXPECT_EQ(Of(run, "requeue_ps"), 3 * (40 * kPsPerS));
  EXPECT_EQ(Of(run, "load_ps"), 3 * (7 * kPsPerS));
  // Three restarts and what follows the fourth error: ten minutes each, for the collective's
  // time-out.
  EXPECT_GT(run.Integer("simulated_time_ps"), 4 * (600 * kPsPerS));
  const EndedRun quick = RunText(Job("restarts_max: 3") + storm);
  EXPECT_LT(run.Integer("events"), quick.Integer("events") + 10'000);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
}

// No queue pair fails where a GPU hangs: the framework's time-out ends the job.
TEST_F(RestartTest, AHangIsARestartToo) {
  const EndedRun run = RunText(Job() +
                               "watchdog { no_progress: \"40s\" }\n"
                               "faults { name: \"hang\" kind: STRAGGLER device: \"server1/gpu3\" "
                               "speed: 0 at: \"125s\" until: \"200s\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(Of(run, "restarts"), 1);
  // The others begin the 13th collective at 132 s; somebody looks every eighth of 40 s. The
  // checkpoint was saved at 102 s.
  EXPECT_GE(Of(run, "rework_ps"), (132 - 102 + 35) * kPsPerS);
  EXPECT_LE(Of(run, "rework_ps"), (132 - 102 + 50) * kPsPerS);
}

TEST_F(RestartTest, HasTheSameResultsWithoutTheCache) {
  const std::string text = Job() + LinkDown("server1/nic3--leaf3", "263s", "270s") +
                           "faults { name: \"again\" kind: LINK_DOWN link: \"server0/nic1--leaf1\" "
                           "at: \"700s\" until: \"730s\" }\n";
  const EndedRun with = RunText(text);
  const EndedRun without = RunText(text, {"--no-replay-cache"});
  ASSERT_EQ(with.exit.status, 0) << with.exit.errors;
  EXPECT_EQ(Of(with, "restarts"), 2);
  EXPECT_GT(with.Integer("collectives.replayed"), 0);
  EXPECT_EQ(with.Text("fingerprint"), without.Text("fingerprint"));
  EXPECT_EQ(with.Integer("payload.total_bytes"), without.Integer("payload.total_bytes"));
  EXPECT_EQ(with.pairs.rows, without.pairs.rows);
}

// Two pipeline stages of four replicas of two ranks. A checkpoint waits for all streams and comes
// before the fault, which begins with the fifth iteration's first call.
TEST_F(RestartTest, APlanGoesOnWithTheIterationThatFailed) {
  const std::string text =
      RailOptimized(2) +
      "workload { inline_plan { model { layers: 2 hidden: 256 heads: 4 vocabulary: 512 "
      "feed_forward: "
      "1024 } parallelism { tensor: 2 pipeline: 2 data: 4 } compute { given { attention: \"1ms\" "
      "feed_forward: \"1ms\" embedding: \"1ms\" output_layer: \"1ms\" backward_ratio: 2 optimizer: "
      "\"1s\" } } training { sequence: 128 micro_batch: 1 micro_batches: 2 iterations: 6 } } }\n"
      "nccl { IB_TIMEOUT: 14 }\n"
      "restart { checkpoint_every: 2 save: \"2s\" load: \"7s\" requeue: \"40s\" }\n"
      "faults { name: \"cables\" kind: LINK_DOWN link: \"server1/nic*--leaf*\" when { iteration: 5 "
      "} "
      "until: \"1s\" }\n";
  const EndedRun run = RunText(text);
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(Of(run, "restarts"), 1);
  EXPECT_EQ(Of(run, "save_ps"), 2 * (2 * kPsPerS));
  // Four iterations of a second and more, and two checkpoints.
  EXPECT_GT(run.Integer("faults.0.from_ps"), 8 * kPsPerS);
  EXPECT_LT(run.Integer("faults.0.from_ps"), 8 * kPsPerS + kPsPerS / 2);
  // Computation of milliseconds, then the retries.
  EXPECT_GE(Of(run, "rework_ps"), kError12Ps);
  EXPECT_LE(Of(run, "rework_ps"), kError12Ps + kPsPerS / 10);
  EXPECT_NEAR(static_cast<double>(Of(run, "lost_ps")),
              static_cast<double>(Of(run, "rework_ps") + Of(run, "detection_ps") +
                                  Of(run, "requeue_ps") + Of(run, "load_ps")),
              1000.0 * kPsPerUs);
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    EXPECT_EQ(run.collectives.Text(row, "completed"), "true");
  }
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_EQ(RunText(text, {"--no-replay-cache"}).Text("fingerprint"), run.Text("fingerprint"));
}

// The sample log is one iteration: all of it is done again.
TEST_F(RestartTest, AJobFromALogBeginsAgainFromItsStart) {
  const EndedRun run = RunFile(ShippedScenario("h100_4x8_cut"),
                               {"--set", "nccl.IB_TIMEOUT=14", "--set", "faults[0].until=2s",
                                "--set", "restart.requeue=10s"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(Of(run, "restarts"), 1);
  EXPECT_NEAR(static_cast<double>(Of(run, "rework_ps")),
              static_cast<double>(run.Integer("faults.0.from_ps") + kError12Ps), 100.0 * kPsPerUs);
  EXPECT_NEAR(static_cast<double>(Of(run, "lost_ps")),
              static_cast<double>(Of(run, "rework_ps") + Of(run, "detection_ps") + 10 * kPsPerS),
              1000.0 * kPsPerUs);
}

// 10 Mb/s but for the time in which the job is down, when nobody could tell.
TEST_F(RestartTest, BackgroundLoadGoesOnWithTheJob) {
  const std::string failing = Job() + LinkDown("server1/nic3--leaf3", "263s", "270s");
  const EndedRun alone = RunText(failing);
  const EndedRun run = RunText(
      failing +
      "faults { name: \"load\" kind: BACKGROUND_LOAD at: \"0s\" load { from: \"server0/gpu5\" "
      "to: \"server1/gpu5\" rate: \"10Mbps\" message: \"64KiB\" } }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(Of(run, "restarts"), 1);
  const auto more =
      static_cast<double>(run.links.Sum("payload_bytes", "link", "leaf5>server1/nic5") -
                          alone.links.Sum("payload_bytes", "link", "leaf5>server1/nic5"));
  const double up_s =
      static_cast<double>(run.Integer("simulated_time_ps") - Of(run, "detection_ps") -
                          Of(run, "requeue_ps") - Of(run, "load_ps")) *
      1e-12;
  EXPECT_NEAR(more, up_s * 10e6 / 8, 0.01 * up_s * 10e6 / 8);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
}

// The collective of the anchor comes twice, its fault once.
TEST_F(RestartTest, AFaultThatACollectiveBeginsComesOnce) {
  const EndedRun run =
      RunText(Job() +
              "faults { kind: LINK_DOWN link: \"server1/nic3--leaf3\" when { number: "
              "26 progress: 0.5 } until: \"5s\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(Of(run, "restarts"), 1);
  EXPECT_EQ(run.Integer("faults.0.begins"), 1);
  EXPECT_GT(run.Integer("faults.0.from_ps"), 264 * kPsPerS);
  EXPECT_LT(run.Integer("faults.0.from_ps"), 265 * kPsPerS);
}

// A cable that stays down costs one restart where there is a server to go to, and the job without.
TEST_F(RestartTest, ASpareServerTakesTheRanksOfABrokenOne) {
  const auto job = [](const std::string& spare) {
    return RailOptimized(3) +
           "workload { algorithm: RING protocol: SIMPLE program { ranks: 16 repeat: 100 "
           "collectives { kind: ALL_REDUCE bytes: \"256KiB\" compute_before: \"10s\" } } }\n"
           "nccl { IB_TIMEOUT: 14 }\n"
           "restart { checkpoint_every: 10 requeue: \"40s\" restarts_max: 2 " +
           spare + " }\n" + LinkDown("server1/nic3--leaf3", "263s", "700s");
  };
  EXPECT_EQ(RunText(job("")).exit.status, 3);
  const EndedRun run = RunText(job("spare_servers: \"server2\""));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(Of(run, "restarts"), 1);
  EXPECT_EQ(Of(run, "servers_replaced"), 1);
  // The payload is that of 27 collectives, the failed one included, and of 80 from the checkpoint
  // on.
  const auto payload = [&](const std::string& link) {
    return static_cast<double>(run.links.Sum("payload_bytes", "link", link));
  };
  EXPECT_NEAR(payload("server2/nic5>leaf5") / payload("server1/nic5>leaf5"), 80.0 / 27, 1e-3);
  EXPECT_NEAR(payload("server0/nic5>leaf5"),
              payload("server1/nic5>leaf5") + payload("server2/nic5>leaf5"), 1);
  // As fast as before, but that connections opened anew start at other planes.
  EXPECT_NEAR(
      run.collectives.Real(99, "duration_ps") / run.collectives.Real(99, "baseline_duration_ps"), 1,
      0.03);
  // The broken server is the spare when it is whole again.
  const EndedRun back = RunText(job("spare_servers: \"server2\"") +
                                "faults { name: \"second\" kind: LINK_DOWN link: "
                                "\"server2/nic1--leaf1\" at: \"800s\" }\n");
  ASSERT_EQ(back.exit.status, 0) << back.exit.errors;
  EXPECT_EQ(Of(back, "servers_replaced"), 2);
  EXPECT_NE(back.Text("fingerprint"), run.Text("fingerprint"));
  EXPECT_EQ(RunText(job("spare_servers: \"server2\""), {"--no-replay-cache"}).Text("fingerprint"),
            run.Text("fingerprint"));
}

// Each field changes what comes of it.
TEST_F(RestartTest, EveryFieldChangesTheFingerprint) {
  const std::string fault = LinkDown("server1/nic3--leaf3", "263s", "270s");
  const std::string base = RunText(Job() + fault).Text("fingerprint");
  for (const char* set : {"restart.checkpoint_every=7", "restart.save=3s", "restart.load=8s",
                          "restart.requeue=41s", "restart.detection=WATCHDOG"}) {
    EXPECT_NE(RunText(Job() + fault, {"--set", set}).Text("fingerprint"), base) << set;
  }
}

// --- GPUs that change their speed while they compute ---------------------------------------------

class SlowComputationTest : public ProgramTest {
 protected:
  // Returns when the second collective of all 16 ranks begins; each computes 1 ms before it.
  int64_t SecondBeginPs(const std::string& fault) {
    const EndedRun run =
        RunText(RailOptimized(2) +
                "workload { algorithm: RING protocol: SIMPLE "
                "program { collectives { kind: ALL_REDUCE "
                "bytes: \"64KiB\" repeat: 2 compute_before: "
                "\"1ms\" } } }\n" +
                "faults { name: \"f\" kind: STRAGGLER device: \"server1/gpu3\" " + fault + " }\n");
    EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
    return run.collectives.Integer(1, "last_start_ps") - run.collectives.Integer(0, "end_ps");
  }
};

// The second computation is from about 1.1 ms to 2.1 ms.
TEST_F(SlowComputationTest, WhatIsLeftOfItTakesAsLongAsTheGpuIsFast) {
  const double usual_ps =
      static_cast<double>(SecondBeginPs("speed: 0.5 at: \"100s\" until: \"101s\""));
  // 300 us at half speed do the work of 150. The GPU is not the last to end the first collective.
  EXPECT_NEAR(static_cast<double>(SecondBeginPs("speed: 0.5 at: \"1500us\" until: \"1800us\"")),
              usual_ps + 150.0 * kPsPerUs, 5.0 * kPsPerUs);
  // At a quarter, 400 us do the work of 100.
  EXPECT_NEAR(static_cast<double>(SecondBeginPs("speed: 0.25 at: \"1400us\" until: \"1800us\"")),
              usual_ps + 300.0 * kPsPerUs, 5.0 * kPsPerUs);
  // It stands still for 2 ms.
  EXPECT_NEAR(static_cast<double>(SecondBeginPs("speed: 0 at: \"1400us\" until: \"3400us\"")),
              usual_ps + 2000.0 * kPsPerUs, 5.0 * kPsPerUs);
}

}  // namespace
}  // namespace railyard::testing
