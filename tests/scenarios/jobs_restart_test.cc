// SPDX-License-Identifier: GPL-2.0-only
// Jobs side by side, of which one fails and begins again.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPsPerS = 1'000'000'000'000;
constexpr int64_t kDetectionPs = kPsPerS / 10;
// Error 12 takes 8 x 67 ms from the collective's first lost packet.
constexpr int64_t kError12Ps = 8 * (int64_t{4'096'000} << 14);

class JobsRestartTest : public ProgramTest {
 protected:
  // Rounds of so many seconds and a collective.
  static std::string Job(const std::string& name, const std::string& servers, int seconds,
                         int rounds, const std::string& more = "") {
    return fmt::format(
        "jobs {{ name: \"{}\" placement {{ {} }} workload {{ algorithm: RING protocol: SIMPLE "
        "program "
        "{{ repeat: {} collectives {{ kind: ALL_REDUCE bytes: \"256KiB\" compute_before: \"{}s\" "
        "}} }} "
        "}} {} }}\n",
        name, servers, rounds, seconds, more);
  }
  static constexpr const char* kFirstTwo = "gpus: \"server0/*\" gpus: \"server1/*\"";
  static constexpr const char* kNextTwo = "gpus: \"server2/*\" gpus: \"server3/*\"";
  static constexpr const char* kRestart =
      "restart { checkpoint_every: 10 save: \"2s\" load: \"7s\" requeue: \"40s\" }";
  static std::string Of(const std::string& jobs, const std::string& faults, uint32_t servers = 4) {
    return RailOptimized(servers) + jobs + "nccl { IB_TIMEOUT: 14 }\n" + faults;
  }
  static std::string Cable() { return LinkDown("server1/nic3--leaf3", "263s", "270s"); }
};

// A job loses beside another what it loses alone, and the other loses nothing.
TEST_F(JobsRestartTest, OneBeginsAgainAndTheOtherGoesOn) {
  const std::string a = Job("a", kFirstTwo, 10, 100, kRestart);
  const EndedRun run = RunText(Of(a + Job("b", kNextTwo, 15, 60), Cable()));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("jobs.0.restarts"), 1);
  EXPECT_EQ(run.Integer("jobs.1.restarts"), 0);
  // The collective that failed is one that the fault hit, although its second try was not.
  size_t hit = 0;
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    if (run.collectives.Text(row, "hit_by_fault") == "true") ++hit;
  }
  EXPECT_EQ(hit, 1u);
  EXPECT_EQ(run.Integer("faults.0.collectives_hit"), 1);
  EXPECT_EQ(run.Integer("jobs.0.detection_ps"), kDetectionPs);
  EXPECT_EQ(run.Integer("jobs.0.requeue_ps"), 40 * kPsPerS);
  EXPECT_EQ(run.Integer("jobs.0.load_ps"), 7 * kPsPerS);
  // The 26th collective fails; the checkpoint before the 21st round was done at 204 s.
  EXPECT_NEAR(run.Real("jobs.0.rework_ps"), static_cast<double>(60 * kPsPerS + kError12Ps),
              static_cast<double>(kPsPerS) / 100);
  const auto lost_ps =
      static_cast<double>(run.Integer("jobs.0.rework_ps") + kDetectionPs + 47 * kPsPerS);
  EXPECT_NEAR(run.Real("jobs.0.lost_ps"), lost_ps, 1e9);
  const auto time_ps = static_cast<double>(run.Integer("jobs.0.end_ps"));
  EXPECT_NEAR(run.Real("jobs.0.goodput"), 1 - lost_ps / time_ps, 1e-6);
  EXPECT_NEAR(run.Real("jobs.0.effective_training_time_ratio"),
              1 - (lost_ps + 18.0 * kPsPerS) / time_ps, 1e-6);
  // From 263 s on; the collective that is lost begins at 264 s.
  EXPECT_NEAR(run.Real("faults.0.time_to_recover_ps"),
              static_cast<double>(48 * kPsPerS + kError12Ps + kDetectionPs),
              static_cast<double>(kPsPerS) / 100);
  EXPECT_THAT(run.exit.output, HasSubstr("\nRestarts\n  a restarted once; goodput "));
  EXPECT_THAT(run.exit.output, HasSubstr(", recovered 48."));
  EXPECT_EQ(run.Real("jobs.1.goodput"), 1);
  EXPECT_EQ(run.Integer("jobs.1.end_ps"), run.Integer("jobs.1.alone_time_ps"));
  EXPECT_EQ(run.Integer("jobs.1.save_ps"), 0);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_EQ(RunText(Of(a + Job("b", kNextTwo, 15, 60), Cable()), {"--no-replay-cache"})
                .Text("fingerprint"),
            run.Text("fingerprint"));
  const EndedRun alone = RunText(Of(a, Cable()));
  for (const char* figure : {"end_ps", "rework_ps", "lost_ps"}) {
    EXPECT_EQ(run.Integer(std::string("jobs.0.") + figure),
              alone.Integer(std::string("jobs.0.") + figure));
  }
}

// Without a restart of its own the other is aborted, and nothing of the first.
TEST_F(JobsRestartTest, AJobWithoutRestartIsAborted) {
  const EndedRun run =
      RunText(Of(Job("a", kFirstTwo, 10, 40, kRestart) + Job("b", kNextTwo, 15, 40),
                 LinkDown("server3/nic3--leaf3", "205s", "215s")));
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_EQ(run.Text("jobs.0.status"), "COMPLETED");
  EXPECT_EQ(run.Real("jobs.0.goodput"), 1);
  EXPECT_EQ(run.Text("jobs.1.status"), "JOB_ABORTED");
  EXPECT_EQ(run.Real("jobs.1.goodput"), 0);
}

// With one block for all, each job has its own checkpoints and restarts.
TEST_F(JobsRestartTest, BothMayBeginAgain) {
  const EndedRun run =
      RunText(Of(Job("a", kFirstTwo, 10, 100) + Job("b", kNextTwo, 15, 60) + kRestart + "\n",
                 Cable() + LinkDown("server3/nic3--leaf3", "264s", "275s")));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  for (const char* job : {"jobs.0", "jobs.1"}) {
    EXPECT_EQ(run.Integer(std::string(job) + ".restarts"), 1);
    EXPECT_NEAR(run.Real(std::string(job) + ".lost_ps"),
                static_cast<double>(run.Integer(std::string(job) + ".rework_ps") + kDetectionPs +
                                    47 * kPsPerS),
                1e9);
  }
  // Five checkpoints in 60 rounds, nine in 100.
  EXPECT_EQ(run.Integer("jobs.0.save_ps"), 18 * kPsPerS);
  EXPECT_EQ(run.Integer("jobs.1.save_ps"), 10 * kPsPerS);
}

// Two jobs share a spare: the first to need it has it, the other waits for its own server.
TEST_F(JobsRestartTest, TheFirstTakesTheSpare) {
  const EndedRun run = RunText(
      Of(Job("a", kFirstTwo, 10, 60) + Job("b", kNextTwo, 10, 60) +
             "restart { checkpoint_every: 10 requeue: \"40s\" spare_servers: \"server4\" }\n",
         LinkDown("server1/nic3--leaf3", "263s") + LinkDown("server3/nic2--leaf2", "305s", "340s"),
         5));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("jobs.0.servers_replaced"), 1);
  EXPECT_EQ(run.Integer("jobs.1.restarts"), 1);
  EXPECT_EQ(run.Integer("jobs.1.servers_replaced"), 0);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
}

// Jobs that share servers, NVLinks and NICs' switches.
TEST_F(JobsRestartTest, JobsThatShareServersBeginAgainByThemselves) {
  const std::string even = "gpus: \"*/gpu0\" gpus: \"*/gpu2\" gpus: \"*/gpu4\" gpus: \"*/gpu6\"";
  const std::string odd = "gpus: \"*/gpu1\" gpus: \"*/gpu3\" gpus: \"*/gpu5\" gpus: \"*/gpu7\"";
  const EndedRun run = RunText(Of(Job("a", even, 10, 40, kRestart) + Job("b", odd, 7, 40),
                                  LinkDown("server1/nic2--leaf2", "121s", "128s"), 2));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("jobs.0.restarts"), 1);
  EXPECT_EQ(run.Real("jobs.1.goodput"), 1);
}

}  // namespace
}  // namespace railyard::testing
