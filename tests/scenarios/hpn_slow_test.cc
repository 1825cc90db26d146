// SPDX-License-Identifier: GPL-2.0-only
// The fault that HPN's authors injected (Qian et al., SIGCOMM 2024, figure 18): with one ToR
// training survives a repair within a minute and not one beyond two, and a flap costs more than 9
// s; with two it never halts. Of the IB time-outs that are possible, 22 has all of this.
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

constexpr double kTimeoutSeconds = 4.096e-6 * (1 << 22);

class HpnTest : public ProgramTest {
 protected:
  EndedRun DownFor(const std::string& time) {
    return RunFile(ShippedScenario("hpn_single_tor"),
                   {"--no-baseline", "--set", "faults[0].until=" + time});
  }
  static double RecoveredAfterSeconds(const EndedRun& run) {
    return static_cast<double>(run.Integer("faults.0.time_to_recover_ps")) * 1e-12;
  }
};

TEST_F(HpnTest, WithOneTorARepairWithinAMinuteIsSurvived) {
  // The first try after the cable and the routes are back: the first, and the fourth.
  for (const auto& [time, tries] : {std::pair("1s", 1), std::pair("59s", 4)}) {
    const EndedRun run = DownFor(time);
    ASSERT_EQ(run.exit.status, 0) << time << run.exit.errors;
    EXPECT_NEAR(RecoveredAfterSeconds(run), tries * kTimeoutSeconds, 0.01);
    EXPECT_GT(RecoveredAfterSeconds(run), 9);
  }
}

TEST_F(HpnTest, WithOneTorARepairBeyondTwoMinutesIsTooLate) {
  const EndedRun run = DownFor("121s");
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  const auto error_s = static_cast<double>(run.Integer("jobs.0.first_error_ps")) * 1e-12;
  const auto fault_s = static_cast<double>(run.Integer("faults.0.from_ps")) * 1e-12;
  EXPECT_NEAR(error_s - fault_s, 8 * kTimeoutSeconds, 0.01);
}

TEST_F(HpnTest, WithTwoTorsNothingHalts) {
  const EndedRun run = RunFile(ShippedScenario("hpn_dual_tor"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("transport.timeouts"), 0);
  EXPECT_EQ(run.Integer("transport.qp_errors"), 0);
  EXPECT_TRUE(run.Drops().empty());
  // Of the gradients none takes longer by the sixteenth that port-level striping would lose.
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    if (!run.collectives.Text(row, "communicator").starts_with("stride8/")) continue;
    EXPECT_LT(run.collectives.Real(row, "stretch"), 1 + 1.0 / 16);
  }
}

}  // namespace
}  // namespace railyard::testing
