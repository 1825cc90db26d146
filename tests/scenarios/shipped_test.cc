// SPDX-License-Identifier: GPL-2.0-only
// The scenarios the project ships: a training step on 4 servers x 8 H100, and one link of it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

constexpr double kPsPerSecondReal = 1e12;
constexpr double kTimeoutSeconds = 4.096e-6 * (1 << 20);
constexpr double kFaultSeconds = 4.2e-3;
// Windows on the wire and a round trip.
constexpr double kOnTheWaySeconds = 25e-6;
// Says how far from the fault a timer can have started: a CTA takes as long for the next slice, 1
// MiB at 22 GiB/s and 2.9 us, and meanwhile the link may carry nothing.
constexpr double kTimerStartWithinSeconds = (1.0 / 1024) / 22 + 2.9e-6 + kOnTheWaySeconds;

class ShippedTest : public ProgramTest {
 protected:
  static double Seconds(const EndedRun& run, const std::string& figure) {
    return static_cast<double>(run.Integer(figure)) / kPsPerSecondReal;
  }
};

TEST_F(ShippedTest, TheFlapStretchesWhatItHitsByOneRetransmissionTimer) {
  const EndedRun run = RunFile(ShippedScenario("h100_4x8_flap"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_GT(run.Real("collectives.stretch.max"), 1);
  EXPECT_GT(run.Real("baseline_cpu_seconds"), 0);
  EXPECT_GT(run.Drops()["LINK_DOWN"], 0);
  const Table faults = run.Query("SELECT first_retransmission_ps FROM faults");
  EXPECT_NEAR(faults.Real(0, "first_retransmission_ps") / kPsPerSecondReal,
              kFaultSeconds + kTimeoutSeconds, kTimerStartWithinSeconds);
  // Recovery: the lost windows again, at most.
  EXPECT_NEAR(Seconds(run, "faults.0.time_to_recover_ps"), kTimeoutSeconds, 8 * kOnTheWaySeconds);
  EXPECT_NEAR(Seconds(run, "collectives.duration_ps.max"), kTimeoutSeconds, 0.01);
  for (const char* tier : {"HOST", "NIC_LEAF", "LEAF_SPINE"}) {
    EXPECT_GT(run.OfTier("NVLINK", "payload_bytes"), run.OfTier(tier, "payload_bytes"));
  }
  EXPECT_EQ(RunFile(ShippedScenario("h100_4x8_flap")).Text("fingerprint"), run.Text("fingerprint"));
}

TEST_F(ShippedTest, TheFlapOfAnIdleLinkStretchesNothing) {
  const EndedRun run = RunFile(ShippedScenario("h100_4x8_flap_idle_link"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.Real("baseline_cpu_seconds"), 0);
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    EXPECT_EQ(run.collectives.Text(row, "stretch"), "1");
  }
}

TEST_F(ShippedTest, TheCutAbortsTheJobAfterEightTimers) {
  for (const auto& [ib_timeout, seconds] : {std::pair(20, 34.36), std::pair(14, 0.537)}) {
    const EndedRun run = RunFile(ShippedScenario("h100_4x8_cut"),
                                 {"--set", fmt::format("nccl.IB_TIMEOUT={}", ib_timeout)});
    EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
    ASSERT_TRUE(run.has_result());
    EXPECT_EQ(run.Text("status"), "JOB_ABORTED");
    const double error_s = Seconds(run, "jobs.0.first_error_ps");
    EXPECT_NEAR(error_s - kFaultSeconds, 8 * 4.096e-6 * (1 << ib_timeout),
                kTimerStartWithinSeconds);
    EXPECT_NEAR(error_s, seconds, 0.01 * seconds);
    // PyTorch looks for it every 100 ms.
    EXPECT_NEAR(Seconds(run, "simulated_time_ps"), error_s + 0.1, 1e-9);
    EXPECT_LT(run.Real("wall_seconds"), 60);
  }
}

}  // namespace
}  // namespace railyard::testing
