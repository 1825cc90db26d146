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
  EXPECT_EQ(Of(run, "save_ps"), 9 * 2 * kPsPerS);
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
  EXPECT_EQ(run.Integer("transport.qp_errors"), 1);
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
              static_cast<double>(60 * kPsPerS + 2 * 10 * kPsPerS + 3 * kError12Ps),
              20'000.0 * kPsPerUs);
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
  // When the second collective of all 16 ranks begins; each computes 1 ms before it.
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
