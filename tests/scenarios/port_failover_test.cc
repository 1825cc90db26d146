// SPDX-License-Identifier: GPL-2.0-only
// NCCL's port failover and recovery under a job: NICs of two ports that are devices of their own.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPsPerMs = 1'000'000'000;
constexpr int64_t kTimeoutPs = int64_t{4'096'000} << 8;  // 1.05 ms
constexpr int64_t kBudgetPs = 8 * kTimeoutPs;
constexpr int64_t kProbeDelayPs = 10 * kPsPerMs;

class PortFailoverTest : public ProgramTest {
 protected:
  // An AllReduce of 64 MiB every 50 ms, 16 of them, over NICs of two ports of 100 Gb/s.
  static std::string Job(const std::string& nccl, const std::string& more) {
    return std::string(
               "fabric { dual_tor { servers { count: 2 platform: \"single-gpu\" nic_rate: "
               "\"100Gbps\" } aggs_per_plane: 2 } }\n") +
           Program("ALL_REDUCE", "64MiB", "compute_before: \"50ms\" repeat: 16") + kFreeGpu +
           "nic { link_aggregation: false }\n"
           "routing { detection_delay: \"100us\" convergence_delay: \"900us\" }\n" +
           fmt::format("nccl {{ version: \"2.30.7\" IB_TIMEOUT: 8 {} }}\n", nccl) + more;
  }
  static constexpr const char* kPort = "server1/nic0--segment0/rail0/tor0";
  static constexpr const char* kFailover = "IB_RESILIENCY_PORT_FAILOVER: true ";
  static double Busbw(const EndedRun& run, size_t collective) {
    return run.collectives.Real(collective, "busbw_GBps");
  }
};

TEST_F(PortFailoverTest, WithoutItAPortThatFailsIsTheEndOfTheJob) {
  const EndedRun run = RunText(Job("", LinkDown(kPort, "52ms")));
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_THAT(run.exit.output, HasSubstr("IBV_WC_RETRY_EXC_ERR(12)"));
  EXPECT_EQ(run.Integer("transport.port_failovers"), 0);
  EXPECT_NEAR(static_cast<double>(run.Integer("jobs.0.first_error_ps")),
              static_cast<double>(52 * kPsPerMs + kBudgetPs), static_cast<double>(kPsPerMs));
}

TEST_F(PortFailoverTest, OnePortOfTwoLeavesHalfTheBandwidth) {
  const EndedRun run = RunText(Job(kFailover, LinkDown(kPort, "52ms")));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "COMPLETED");
  // Four channels each way; both ends of each take the port out of use.
  EXPECT_EQ(run.Integer("transport.port_failovers"), 16);
  EXPECT_EQ(run.Integer("transport.port_recoveries"), 0);
  // The collective waits for one budget, or for a second where a receiver had nothing in flight on
  // that port and found out with its next clear-to-send.
  const int64_t added_ps = run.collectives.Integer(0, "duration_ps") -
                           run.collectives.Integer(0, "baseline_duration_ps");
  EXPECT_GT(added_ps, kBudgetPs + kProbeDelayPs);
  EXPECT_LT(added_ps, 2 * kBudgetPs + kProbeDelayPs + 10 * kPsPerMs);
  EXPECT_GE(run.collectives.Integer(0, "added_retransmission_ps"), kProbeDelayPs);
  EXPECT_GE(run.collectives.Integer(0, "added_timeout_ps"), kBudgetPs - kPsPerMs);
  // So may the next; from then on all is over the other port.
  EXPECT_LT(run.collectives.Integer(1, "duration_ps"),
            2 * run.collectives.Integer(1, "baseline_duration_ps") + kBudgetPs + 10 * kPsPerMs);
  for (size_t i = 2; i < 16; ++i) {
    EXPECT_NEAR(run.collectives.Real(i, "stretch"), 2, 0.02) << i;
  }
  EXPECT_FALSE(run.At("faults.0.time_to_recover_ps").IsNull());
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_GT(run.links.Sum("payload_bytes", "link", "server1/nic0>segment0/rail0/tor1"),
            3 * run.links.Sum("payload_bytes", "link", "server1/nic0>segment0/rail0/tor0"));
}

TEST_F(PortFailoverTest, APortThatComesBackRestoresAllOfIt) {
  // Up again, and routed over, before the first alive messages. Ends that fail one budget later
  // than their peers take a batch more.
  const EndedRun run =
      RunText(Job(std::string(kFailover) +
                      "IB_RESILIENCY_PORT_RECOVERY: true IB_RESILIENCY_PORT_RECOVERY_START_DELAY: "
                      "100 IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT: 100",
                  LinkDown(kPort, "52ms", "100ms")));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("transport.port_failovers"), 16);
  EXPECT_EQ(run.Integer("transport.port_recoveries"), 16);
  EXPECT_NEAR(run.collectives.Real(2, "stretch"), 2, 0.02);
  EXPECT_NEAR(run.collectives.Real(15, "stretch"), 1, 0.01);
  EXPECT_NEAR(Busbw(run, 15) / Busbw(run, 2), 2, 0.02);
}

// A bonded device has both ports, and its queue pairs move with their routes.
TEST_F(PortFailoverTest, ABondedPortNeedsNone) {
  const EndedRun run =
      RunText(Job("", LinkDown(kPort, "52ms")), {"--set", "nic.link_aggregation=true"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("transport.qp_errors"), 0);
}

}  // namespace
}  // namespace railyard::testing
