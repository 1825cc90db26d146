// SPDX-License-Identifier: GPL-2.0-only
// Counts what is lost, repaired and waited for where packets take several paths or several links
// fail at once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

constexpr int64_t kPsPerMs = 1'000'000'000;

class LossesAndRecoveryTest : public ProgramTest {
 protected:
  static std::string OverSpines(int spines) {
    return fmt::format(
               "fabric {{ leaf_spine {{ servers {{ count: 8 gpus: 1 }} nics_per_leaf: 4 spines: {} "
               "}} }}\n",
               spines) +
           "workload { program { collectives { kind: ALL_TO_ALL bytes: \"64MiB\" } } }\n";
  }
};

// Packets that overtake others by more than the receiver keeps are dropped there, and asked for
// when their turn comes: no timer of 4.3 s (4.096 us x 2^20) expires.
TEST_F(LossesAndRecoveryTest, PacketsRefusedBeyondAGapAreAskedForAgain) {
  const std::string slow_cable =
      "faults { kind: DEGRADE link: \"leaf0--spine0\" rate: \"200Gbps\" at: \"0s\" }\n";
  const EndedRun over_efa =
      RunText(OverSpines(4) + slow_cable + "nccl { NET: \"AWS Libfabric\" }\n");
  ASSERT_EQ(over_efa.exit.status, 0) << over_efa.exit.errors;
  EXPECT_GT(over_efa.Drops()["OUT_OF_SEQUENCE"], 0);
  EXPECT_EQ(over_efa.Integer("transport.timeouts"), 0);
  const std::string sprayed =
      "nccl { NCHANNELS_PER_NET_PEER: 1 }\nnetwork { load_balancing: SPRAYING }\n";
  for (const char* recovery : {"SELECTIVE_REPEAT", "GO_BACK_N"}) {
    const EndedRun run =
        RunText(OverSpines(4) + slow_cable + sprayed +
                fmt::format("nic {{ recovery: {} reorder_tolerance_packets: 63 }}\n", recovery));
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_GT(run.Drops()["OUT_OF_SEQUENCE"], 0) << recovery;
    EXPECT_EQ(run.Integer("transport.timeouts"), 0) << recovery;
  }
}

// A CNP is not sent again, so nothing is to be repaired.
TEST_F(LossesAndRecoveryTest, ALostNotificationOfCongestionHitsNoCollective) {
  const EndedRun run = RunText(
      "fabric { fat_tree { radix: 8 servers { count: 5 platform: \"single-gpu\" } } }\n"
      "workload { program { collectives { kind: GATHER bytes: \"20MiB\" root: 0 in_place: true } } "
      "}\nnic { congestion_control { dcqcn {} } }\n"
      "faults { kind: LOSS link: \"server0/nic0\" loss { packets { kind: CNP number: 1 } } at: "
      "\"0s\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("faults.0.dropped_packets"), 1);
  EXPECT_EQ(run.Integer("faults.0.collectives_hit"), 0);
  EXPECT_EQ(run.exit.output.find("never recovered"), std::string::npos) << run.exit.output;
}

// NVLink has no numbered retries: its data packets are data, too.
TEST_F(LossesAndRecoveryTest, DataPacketsOfNvlinkAreCounted) {
  const EndedRun run = RunText(RailOptimized(1) + Program("ALL_REDUCE", "1MiB", "") +
                               "faults { kind: LOSS link: \"server0/gpu0--server0/nvswitch0\" loss "
                               "{ packets { kind: DATA number: 1 } } at: "
                               "\"0s\" }\n");
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "JOB_ABORTED");
}

// The ends of one cable detect after 10 ms, those of the other after 200 ms, and both are down for
// 100 ms: only the first one's routes change, whether the two are one fault or two.
TEST_F(LossesAndRecoveryTest, EachLinkOfAFaultIsDetectedByItsOwnEnds) {
  const std::string job =
      RailOptimized(2) + Program("ALL_REDUCE", "8MiB", "compute_before: \"50ms\" repeat: 3") +
      "nccl { IB_TIMEOUT: 16 }\n"
      "routing { detection_delay: \"10ms\" convergence_delay: \"5ms\" hop_share: 0 devices { "
      "device: "
      "\"leaf5\" detection_delay: \"200ms\" } devices { device: \"server1/nic5\" detection_delay: "
      "\"200ms\" } }\n";
  const EndedRun one =
      RunText(job +
              "fault_domains { name: \"d\" links: \"server1/nic3--leaf3\" links: "
              "\"server1/nic5--leaf5\" }\n"
              "faults { kind: LINK_DOWN domain: \"d\" at: \"20ms\" until: \"120ms\" }\n");
  const EndedRun two = RunText(
      job +
      "faults { name: \"x\" kind: LINK_DOWN link: \"server1/nic3--leaf3\" at: \"20ms\" until: "
      "\"120ms\" }\nfaults { name: \"y\" kind: LINK_DOWN link: \"server1/nic5--leaf5\" at: "
      "\"20ms\" until: \"120ms\" }\n");
  ASSERT_EQ(one.exit.status, 0) << one.exit.errors;
  ASSERT_EQ(two.exit.status, 0) << two.exit.errors;
  EXPECT_EQ(one.Integer("simulated_time_ps"), two.Integer("simulated_time_ps"));
  EXPECT_EQ(one.Integer("transport.timeouts"), two.Integer("transport.timeouts"));
}

// IB_TIMEOUT 10 without a retry: the connection is moved after one timer, 4.19 ms.
TEST_F(LossesAndRecoveryTest, AConnectionThatIsMovedHasWaitedForItsTimer) {
  const EndedRun run =
      RunText("fabric { rail_optimized { servers: 2 gpus_per_server: 2 } }\n" +
              Program("BROADCAST", "32MiB", "repeat: 3") +
              "nccl { IB_TIMEOUT: 10 IB_RETRY_CNT: 0 }\nnic_failover { policy: PXN }\n"
              "faults { kind: LINK_DOWN device: \"server1/nic1\" at: \"500us\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  int64_t timeout_ps = 0;
  int64_t queueing_ps = 0;
  for (size_t row = 0; row < 3; ++row) {
    timeout_ps += run.collectives.Integer(row, "added_timeout_ps");
    queueing_ps += run.collectives.Integer(row, "added_queueing_ps");
  }
  EXPECT_GT(timeout_ps, 3 * kPsPerMs);
  EXPECT_LT(queueing_ps, kPsPerMs);
}

// Both ports of a NIC are down for longer than the budget of its queue pairs.
TEST_F(LossesAndRecoveryTest, AConnectionThatHasFailedDoesNotRecover) {
  const EndedRun run = RunText(
      "fabric { dual_tor { servers { count: 2 platform: \"single-gpu\" nic_rate: \"100Gbps\" } "
      "aggs_per_plane: 2 } }\n" +
      Program("ALL_REDUCE", "16MiB", "compute_before: \"1s\" repeat: 2") +
      "nic { link_aggregation: false }\n"
      "nccl { version: \"2.30.7\" IB_TIMEOUT: 14 IB_RESILIENCY_PORT_FAILOVER: true }\n"
      "routing { detection_delay: \"1ms\" convergence_delay: \"10ms\" }\n"
      "faults { name: \"a\" kind: LINK_DOWN link: \"server1/nic0--segment0/rail0/tor0\" at: "
      "\"1000500us\" until: \"1601ms\" }\n"
      "faults { name: \"b\" kind: LINK_DOWN link: \"server1/nic0--segment0/rail0/tor1\" at: "
      "\"1000500us\" until: \"1601ms\" }\n");
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  for (const char* fault : {"0", "1"}) {
    EXPECT_TRUE(run.At(fmt::format("faults.{}.time_to_recover_ps", fault)).IsNull());
    EXPECT_TRUE(run.At(fmt::format("faults.{}.time_to_full_busbw_ps", fault)).IsNull());
  }
}

}  // namespace
}  // namespace railyard::testing
