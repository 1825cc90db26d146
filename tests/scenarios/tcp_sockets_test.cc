// SPDX-License-Identifier: GPL-2.0-only
// Whole runs over NCCL's TCP sockets: what limits them, and what faults do to them.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kSendRecv =
    "fabric { rail_optimized { servers: 2 gpus_per_server: 1 nic_rate: \"100Gbps\" } }\n"
    "workload { program { collectives { kind: SEND_RECV bytes: \"256MiB\" } } }\n";
const std::string kAllReduce =
    "fabric { rail_optimized { servers: 2 nic_rate: \"100Gbps\" } }\n"
    "workload { program { collectives { kind: ALL_REDUCE bytes: \"16MiB\" repeat: 2 } } algorithm: "
    "RING protocol: SIMPLE }\n"
    "nccl { NET: \"Socket\" }\n";

class TcpSocketsTest : public ProgramTest {
 protected:
  // Bits per second of a rank's message.
  static double Rate(const EndedRun& run) {
    return 256.0 * (1 << 20) * 8 / static_cast<double>(run.Integer("simulated_time_ps")) * 1e12;
  }
};

// Each rank sends and receives: without helper threads its proxy's one thread copies both, at 89
// and 42 Gb/s, and takes 1 us to post a chunk of 128 KiB and 1 us to see one. With threads of their
// own connections are limited by the wire, which carries an ACK of 90 B for every two segments
// besides.
TEST_F(TcpSocketsTest, ThreadsAndThenTheWireLimitWhatASendCarries) {
  const auto rate = [&](const std::string& nccl) {
    const EndedRun run = RunText(kSendRecv + "nccl { NET: \"Socket\" " + nccl + " }");
    EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
    return Rate(run);
  };
  const double chunk_bits = 8 * 128 * 1'024;
  const double one_thread = chunk_bits / (chunk_bits / 89e9 + chunk_bits / 42e9 + 2e-6);
  EXPECT_NEAR(rate(""), one_thread, 0.03 * one_thread);
  const double wire = 100e9 * 1'448 / (1'538 + 90.0 / 2);
  EXPECT_NEAR(rate("SOCKET_NTHREADS: 4"), wire, 0.04 * wire);
}

// The kernel takes what a sender writes whether or not its receiver's GPU has read what came
// before: here the last, smaller slices of a chunk while the slow GPU has not read the first ones.
TEST_F(TcpSocketsTest, ASenderMayRunAheadOfASlowReceiver) {
  const EndedRun run = RunText(
      "fabric { rail_optimized { servers: 3 gpus_per_server: 2 nic_rate: \"100Gbps\" } }\n"
      "workload { program { collectives { kind: ALL_REDUCE bytes: \"3000KiB\" } } }\n"
      "nccl { NET: \"Socket\" }\n"
      "faults { name: \"slow\" kind: STRAGGLER device: \"server1/gpu0\" speed: 0.02 at: \"30us\" "
      "}\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_GT(run.Real("collectives.stretch.max"), 1);
}

// A stream is no queue pair: it has no retries to use up in half a second, and rides the flap
// through. 200 ms after the loss it tries in vain, 400 ms later with success.
TEST_F(TcpSocketsTest, AFlapCostsTheKernelsTimer) {
  const EndedRun run = RunFile(ShippedScenario("fault_tcp_flap"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("transport.qp_errors"), 0);
  EXPECT_GT(run.Integer("transport.timeouts"), 0);
  EXPECT_GT(run.Integer("transport.retransmitted_packets"), 0);
  EXPECT_GT(run.Drops()["LINK_DOWN"], 0);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_NEAR(static_cast<double>(run.Integer("faults.0.time_to_recover_ps")), 600e9, 30e9);
}

TEST_F(TcpSocketsTest, AnIdleLinksFlapStretchesNothing) {
  const EndedRun run =
      RunText(kAllReduce +
              "faults { kind: LINK_DOWN link: \"leaf0--spine0\" at: \"100us\" until: \"5ms\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  ASSERT_GT(run.collectives.size(), 0u);
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    EXPECT_EQ(run.collectives.Text(row, "stretch"), "1");
  }
}

// tcp_retries2 = 15: the first timer whose tries have lasted 924.6 s, and no later than one more of
// 120 s.
TEST_F(TcpSocketsTest, ACutAbortsTheJobWhenTheKernelGivesUp) {
  const EndedRun run =
      RunText(kAllReduce +
                  "watchdog { no_progress: \"3000s\" }\n"
                  "faults { kind: LINK_DOWN link: \"server1/nic3--leaf3\" at: \"100us\" }\n",
              {"--no-baseline"});
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  ASSERT_TRUE(run.has_result());
  EXPECT_EQ(run.Text("status"), "JOB_ABORTED");
  EXPECT_THAT(run.exit.output, HasSubstr("ETIMEDOUT(110)"));
  const double seconds = static_cast<double>(run.Integer("simulated_time_ps")) * 1e-12;
  EXPECT_GT(seconds, 924.6);
  EXPECT_LT(seconds, 924.6 + 121);
}

TEST_F(TcpSocketsTest, ABufferThatOverflowsLosesSegmentsAndNothingElse) {
  const EndedRun run = RunFile(ShippedScenario("tcp_sockets_incast"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.Drops()["BUFFER_FULL"], 0);
  EXPECT_EQ(run.Integer("transport.pfc_pause_ps"), 0);
  EXPECT_EQ(run.Integer("transport.ecn_marked"), 0);
  EXPECT_GE(run.Integer("transport.retransmitted_packets"), run.Drops()["BUFFER_FULL"] / 2);
}

// A NIC of 100 Gb/s before a PCIe switch that eight GPUs share: what comes faster than it goes on
// is dropped at the NIC before the host has seen it, and sent again. No stream breaks.
TEST_F(TcpSocketsTest, WhatANicDropsOnItsWayToTheHostIsSentAgain) {
  const std::string pcie =
      "fabric { rail_optimized { mixed_servers { count: 2 platform: \"pcie-8x3090\" } } }\n";
  for (const char* const kind : {"ALL_REDUCE", "ALL_TO_ALL"}) {
    const EndedRun run = RunText(pcie + "workload { program { collectives { kind: " + kind +
                                     " bytes: \"16MiB\" } } }\n" + "nccl { NET: \"Socket\" }\n",
                                 {"--no-baseline"});
    ASSERT_EQ(run.exit.status, 0) << run.exit.output << run.exit.errors;
    // The ring's one sender keeps within what the NIC can buffer; eight at once do not.
    const bool may_drop = std::string(kind) == "ALL_TO_ALL";
    EXPECT_EQ(run.Drops()["BUFFER_FULL"] > 0, may_drop) << kind;
    EXPECT_EQ(run.Integer("transport.retransmitted_packets") > 0, may_drop) << kind;
    EXPECT_EQ(run.Integer("transport.qp_errors"), 0) << kind;
    EXPECT_TRUE(run.At("conservation.ok").GetBool()) << kind;
  }
}

TEST_F(TcpSocketsTest, SoItIsForQueuePairsOnANetworkThatDrops) {
  const EndedRun run = RunText(
      "fabric { rail_optimized { mixed_servers { count: 2 platform: \"pcie-8x3090\" } } }\n"
      "workload { program { collectives { kind: ALL_TO_ALL bytes: \"128MiB\" } } }\n"
      "network { network_flow_control: NONE }\n",
      {"--no-baseline"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.output << run.exit.errors;
  EXPECT_GT(run.Drops()["BUFFER_FULL"], 0);
  EXPECT_EQ(run.Integer("transport.qp_errors"), 0);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
}

TEST_F(TcpSocketsTest, PerfTakesThemByNcclsName) {
  const ProgramExit run = Railyard({"perf", "--collective", "all_reduce", "--fabric", "dgx-h100",
                                    "--nodes", "2", "--net", "Socket", "-b", "1M", "-e", "1M"});
  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_THAT(run.errors, IsEmpty());
  const ProgramExit unknown = Railyard({"perf", "--collective", "all_reduce", "--fabric",
                                        "dgx-h100", "--nodes", "2", "--net", "TCP"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("--net: \"TCP\" is no network of NCCL's own or "
                                        "Amazon's (expected \"IB\", \"Socket\" or \"AWS "
                                        "Libfabric\")"));
}

// The output states what --algo assumes of the fabric.
TEST_F(TcpSocketsTest, CollNetSaysThatTheSwitchesAreInfiniBands) {
  const ProgramExit run =
      Railyard({"perf", "--collective", "all_reduce", "--fabric", "dgx-h100", "--nodes", "2",
                "--algo", "CollNetChain", "-b", "1M", "-e", "1M"});
  EXPECT_EQ(run.status, 0) << run.errors;
  EXPECT_EQ(
      run.errors,
      "railyard: note: --algo CollNetChain: the switches are taken to be InfiniBand's, with "
      "credits in place of pause frames (network_flow_control: CREDITS, COLLNET_ENABLE: 1)\n");
}

}  // namespace
}  // namespace railyard::testing
