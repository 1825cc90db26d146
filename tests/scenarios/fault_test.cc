// SPDX-License-Identifier: GPL-2.0-only
// Links that fail under a job: what is lost, when it is sent again, when the job is given up. The
// instants follow from the local ACK timer alone, T = 4.096 us x 2^IB_TIMEOUT, tried again
// IB_RETRY_CNT times (InfiniBand Architecture Specification 1.7, 9.7.5.1.3).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int64_t kPsPerUs = 1'000'000;

constexpr int64_t TimeoutPs(uint32_t ib_timeout) { return int64_t{4'096'000} << ib_timeout; }

// The timer that runs out was started at the earliest by the last ACK before the loss, at the
// latest by the first packet sent into the dead link. Both lie within this of the fault while two
// queue pairs with windows of 512 KiB share the NIC: 2 x 10.5 us on the wire, and a round trip.
constexpr int64_t kTimerStartWithinPs = 25 * kPsPerUs;

// The polling interval of PyTorch's ProcessGroupNCCL.
constexpr int64_t kErrorPollPs = 100'000 * kPsPerUs;
constexpr int64_t kCollectiveTimeoutPs = 600'000'000 * kPsPerUs;

constexpr int64_t kFaultPs = 300 * kPsPerUs;
constexpr const char* kFaultAt = "300us";

class FaultTest : public ProgramTest {
 protected:
  // Three AllReduces, each of some 400 us; NIC 3 of server 1 is busy at kFaultPs.
  static std::string Job(uint32_t ib_timeout, uint32_t ib_retry_cnt = 7) {
    return RailOptimized(2) + Program("ALL_REDUCE", "64MiB", "repeat: 3") +
           fmt::format("nccl {{ IB_TIMEOUT: {} IB_RETRY_CNT: {} }}\n", ib_timeout, ib_retry_cnt);
  }
  static constexpr const char* kLink = "server1/nic3--leaf3";

  static void ExpectOnlyReasons(const EndedRun& run) {
    for (const auto& [reason, packets] : run.Drops()) {
      EXPECT_THAT(reason, AnyOf("LINK_DOWN", "NO_ROUTE", "DUPLICATE", "OUT_OF_SEQUENCE"));
      EXPECT_GT(packets, 0);
    }
  }
  static int64_t FirstRetransmissionPs(const EndedRun& run) {
    return run.Query("SELECT first_retransmission_ps FROM faults")
        .Integer(0, "first_retransmission_ps");
  }
};

// Over before anyone's timer and before any switch noticed: one timer later everything is sent
// again, and that is all that happens.
TEST_F(FaultTest, AFlapCostsOneRetransmissionTimer) {
  const EndedRun run = RunText(Job(16) + LinkDown(kLink, kFaultAt, "5300us"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "COMPLETED");
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_GT(run.Drops()["LINK_DOWN"], 0);
  EXPECT_EQ(run.Drops().count("NO_ROUTE"), 0u);
  ExpectOnlyReasons(run);
  EXPECT_NEAR(static_cast<double>(FirstRetransmissionPs(run)),
              static_cast<double>(kFaultPs + TimeoutPs(16)), kTimerStartWithinPs);
  // Made good within the time that a window takes; the other queue pairs' timers started within
  // their windows as well.
  const int64_t recover_ps = run.Integer("faults.0.time_to_recover_ps");
  EXPECT_GE(recover_ps, FirstRetransmissionPs(run) - kFaultPs);
  EXPECT_LE(recover_ps, TimeoutPs(16) + 4 * kTimerStartWithinPs);
  // The collective that was hit lasts one timer longer; the last one only has its ranks start
  // further apart.
  const int64_t longer_ps = run.collectives.Integer(0, "duration_ps") -
                            run.collectives.Integer(0, "baseline_duration_ps");
  EXPECT_NEAR(static_cast<double>(longer_ps), static_cast<double>(TimeoutPs(16)),
              4 * kTimerStartWithinPs);
  EXPECT_EQ(run.collectives.Text(0, "hit_by_fault"), "true");
  EXPECT_EQ(run.collectives.Text(2, "hit_by_fault"), "false");
  EXPECT_GT(run.Real("collectives.stretch.max"), 100);
  EXPECT_NEAR(run.collectives.Real(2, "stretch"), 1, 0.2);
  EXPECT_GT(run.Integer("transport.timeouts"), 0);
  EXPECT_GT(run.Integer("transport.retransmitted_packets"), 0);
  EXPECT_EQ(run.Integer("transport.qp_errors"), 0);
}

// Down for longer than the timer: the try that succeeds is the first after the link and the routes
// over it are back.
TEST_F(FaultTest, AFlapLongerThanTheTimerIsRiddenOutByRetries) {
  const int64_t timeout_ps = TimeoutPs(8);  // 1.05 ms
  const int64_t until_ps = 4'000 * kPsPerUs;
  // Detected within 100 us and routed around within 900 us more; both again when it is back.
  const std::string routing =
      "routing { detection_delay: \"100us\" convergence_delay: \"900us\" }\n";
  const int64_t routes_back_ps = until_ps + 1'000 * kPsPerUs;
  const EndedRun run = RunText(Job(8) + routing + LinkDown(kLink, kFaultAt, "4000us"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const int64_t tries = (routes_back_ps - kFaultPs + timeout_ps - 1) / timeout_ps;
  ASSERT_LE(tries, 7);
  const int64_t recover_ps = run.Integer("faults.0.time_to_recover_ps");
  EXPECT_GE(recover_ps, routes_back_ps - kFaultPs);
  EXPECT_GE(recover_ps, tries * timeout_ps - kTimerStartWithinPs);
  EXPECT_LE(recover_ps, tries * timeout_ps + 4 * kTimerStartWithinPs);
  EXPECT_NEAR(static_cast<double>(FirstRetransmissionPs(run)),
              static_cast<double>(kFaultPs + timeout_ps), kTimerStartWithinPs);
  EXPECT_EQ(run.Integer("faults.0.time_to_detect_ps"), 100 * kPsPerUs);
  // Packets are lost to the link until the routes say so.
  EXPECT_GT(run.Drops()["LINK_DOWN"], 0);
  EXPECT_GT(run.Drops()["NO_ROUTE"], 0);
  ExpectOnlyReasons(run);
}

class CutTest : public FaultTest, public ::testing::WithParamInterface<std::pair<int, int>> {};

// Permanent failure: the first try and all retries time out, one T after the other.
TEST_P(CutTest, TheJobIsAbortedWhenTheRetriesAreUsedUp) {
  const auto [ib_timeout, ib_retry_cnt] = GetParam();
  const EndedRun run =
      RunText(Job(static_cast<uint32_t>(ib_timeout), static_cast<uint32_t>(ib_retry_cnt)) +
              LinkDown(kLink, kFaultAt));
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  ASSERT_TRUE(run.has_result());
  EXPECT_EQ(run.Text("status"), "JOB_ABORTED");
  const double expected_ps =
      static_cast<double>(kFaultPs) +
      (ib_retry_cnt + 1.0) * static_cast<double>(TimeoutPs(static_cast<uint32_t>(ib_timeout)));
  const int64_t error_ps = run.Integer("jobs.0.first_error_ps");
  EXPECT_NEAR(static_cast<double>(error_ps), expected_ps, kTimerStartWithinPs);
  // The processes are looked at every 100 ms; the ranks on either side of the link are the only
  // ones that have an error, and all others hang until the launcher ends them.
  EXPECT_EQ(run.Integer("jobs.0.detection_ps"), kErrorPollPs);
  EXPECT_EQ(run.Integer("simulated_time_ps"), error_ps + kErrorPollPs);
  const int64_t ranks_with_error = run.Integer("jobs.0.ranks_with_error");
  EXPECT_GE(ranks_with_error, 1);
  EXPECT_LE(ranks_with_error, 2);
  EXPECT_EQ(run.Integer("jobs.0.ranks_hung"), 16 - ranks_with_error);
  EXPECT_THAT(run.exit.output, HasSubstr(fmt::format("{} of 16 ranks", ranks_with_error)));
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_GT(run.Integer("conservation.dropped_bytes"), 0);
  EXPECT_GE(run.Integer("transport.qp_errors"), ranks_with_error);
  EXPECT_TRUE(run.At("faults.0.time_to_recover_ps").IsNull());
  EXPECT_TRUE(run.At("faults.0.until_ps").IsNull());
  EXPECT_EQ(run.Real("jobs.0.goodput"), 0);
  EXPECT_EQ(run.collectives.Text(0, "completed"), "false");
  EXPECT_THAT(run.exit.output, HasSubstr("IBV_WC_RETRY_EXC_ERR(12)"));
  EXPECT_THAT(run.exit.output, HasSubstr("server1/nic3"));
}

// Nobody ends the others: each rank waits until its own collective has taken ten minutes. The
// watchdog of a run without progress is not what ends it.
TEST_F(FaultTest, WithoutALauncherRanksHangUntilTheirCollectiveTimesOut) {
  const EndedRun run = RunText(Job(14) + LinkDown(kLink, kFaultAt) +
                               "watchdog { no_progress: \"1s\" detection: WATCHDOG }\n");
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  const int64_t begin_ps = run.collectives.Integer(0, "last_start_ps");
  EXPECT_EQ(run.Integer("simulated_time_ps"), begin_ps + kCollectiveTimeoutPs);
  EXPECT_EQ(run.Integer("jobs.0.detection_ps"),
            begin_ps + kCollectiveTimeoutPs - run.Integer("jobs.0.first_error_ps"));
  EXPECT_THAT(run.exit.output, HasSubstr("14 saw none and hung until"));
}

INSTANTIATE_TEST_SUITE_P(Budgets, CutTest,
                         ::testing::Values(std::pair(20, 7), std::pair(14, 7), std::pair(14, 0),
                                           std::pair(6, 3)),
                         [](const auto& budget) {
                           return fmt::format("T{}_retries{}", budget.param.first,
                                              budget.param.second);
                         });

// One direction is enough: data is lost in the one, ACKs in the other.
TEST_F(FaultTest, EitherDirectionAloneStopsTheConnection) {
  for (const char* direction : {"FORWARD", "BACKWARD"}) {
    SCOPED_TRACE(direction);
    const EndedRun run = RunText(Job(8, 7) + LinkDown(kLink, kFaultAt, "700us", direction));
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_GT(run.Integer("transport.timeouts"), 0);
    EXPECT_GT(run.Real("collectives.stretch.max"), 1.5);
    const EndedRun cut = RunText(Job(8, 1) + LinkDown(kLink, kFaultAt, "", direction));
    EXPECT_EQ(cut.exit.status, 3) << cut.exit.errors;
    // Only one direction of the cable lost anything.
    const bool is_forward = direction == std::string("FORWARD");
    EXPECT_EQ(cut.links.Sum("dropped_packets", "link",
                            is_forward ? "leaf3>server1/nic3" : "server1/nic3>leaf3"),
              0);
    EXPECT_GT(cut.links.Sum("dropped_packets", "link",
                            is_forward ? "server1/nic3>leaf3" : "leaf3>server1/nic3"),
              0);
  }
}

// A packet is lost only if it was on the wire: data that arrived while its ACKs were lost is a
// duplicate when it is sent again.
TEST_F(FaultTest, DataThatArrivedButWasNeverAcknowledgedComesTwice) {
  const EndedRun run = RunText(Job(8) + LinkDown(kLink, kFaultAt, "700us", "BACKWARD"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.Drops()["DUPLICATE"], 0);
}

// The switch to GPU links have no retransmission: the GPU reports a fatal error.
TEST_F(FaultTest, ALostNvlinkPacketAbortsTheJobAtOnce) {
  const EndedRun run = RunText(Job(20) + LinkDown("server0/gpu2--server0/nvswitch1", kFaultAt));
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  ASSERT_TRUE(run.has_result());
  EXPECT_LE(run.Integer("jobs.0.first_error_ps"), kFaultPs + kTimerStartWithinPs);
  EXPECT_EQ(run.Integer("simulated_time_ps"), run.Integer("jobs.0.first_error_ps") + kErrorPollPs);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_THAT(run.exit.output, HasSubstr("Xid 74"));
}

TEST_F(FaultTest, TwoFaultsAreDistinguished) {
  const EndedRun run =
      RunText(Job(8) +
              "faults { name: \"busy\" kind: LINK_DOWN link: \"server1/nic3--leaf3\" at: \"300us\" "
              "until: \"320us\" }\n"
              "faults { name: \"idle\" kind: LINK_DOWN link: \"leaf3--spine0\" at: \"300us\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const Table faults = run.Query("SELECT * FROM faults ORDER BY name");
  EXPECT_GT(faults.Integer(0, "dropped_packets"), 0);
  EXPECT_EQ(faults.Integer(0, "collectives_hit"), 1);
  EXPECT_EQ(faults.Integer(1, "dropped_packets"), 0);
  EXPECT_EQ(faults.Integer(1, "collectives_hit"), 0);
}

}  // namespace
}  // namespace railyard::testing
