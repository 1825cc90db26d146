// SPDX-License-Identifier: GPL-2.0-only
// Flow mode as a user sees it: what it says, how near it is to packets, what it refuses.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FlowModeTest : public ProgramTest {
 protected:
  static std::string Ring(const std::string& more = "", const std::string& bytes = "16MiB") {
    return RailOptimized(2) +
           "workload { algorithm: RING protocol: SIMPLE program { collectives { kind: ALL_REDUCE "
           "bytes: \"" +
           bytes + "\" repeat: 2 } } }\n" + more;
  }
  static std::vector<std::string> With(const std::string& mode,
                                       const std::vector<std::string>& more = {}) {
    std::vector<std::string> options = {"--mode", mode};
    options.insert(options.end(), more.begin(), more.end());
    return options;
  }
  // Runs the scenario in both modes, and returns the time in flow mode over that of packets.
  double RatioOf(const std::string& scenario) {
    const EndedRun packets = RunText(scenario, With("packet", {"--no-baseline"}));
    const EndedRun flows = RunText(scenario, With("flow", {"--no-baseline"}));
    EXPECT_EQ(packets.exit.status, 0) << packets.exit.errors;
    EXPECT_EQ(flows.exit.status, 0) << flows.exit.errors;
    EXPECT_EQ(flows.Integer("payload.total_bytes"), packets.Integer("payload.total_bytes"));
    return static_cast<double>(flows.Integer("simulated_time_ps")) /
           static_cast<double>(packets.Integer("simulated_time_ps"));
  }
  void ExpectRefused(const std::string& scenario, const std::string& finding) {
    const EndedRun run = RunText(scenario, With("flow"));
    EXPECT_EQ(run.exit.status, 2);
    EXPECT_THAT(run.exit.errors, HasSubstr(finding));
    EXPECT_FALSE(run.has_result());
  }
};

TEST_F(FlowModeTest, EachResultSaysItsMode) {
  const EndedRun flows = RunText(Ring("mode: FLOW\n"), {"--no-baseline"});
  ASSERT_EQ(flows.exit.status, 0) << flows.exit.errors;
  EXPECT_EQ(flows.Text("mode"), "flow");
  EXPECT_THAT(flows.exit.output, HasSubstr("(flow mode: max-min fair flows, no packets)"));
  EXPECT_THAT(flows.exit.output, HasSubstr("Flow mode: messages are max-min fair flows."));
  EXPECT_EQ(flows.Query("SELECT value FROM run WHERE key = 'mode'").Text(0, "value"), "flow");
  EXPECT_THAT(ReadText(flows.directory + "/report.html"), HasSubstr("in flow mode"));
  EXPECT_EQ(flows.Integer("packet_hops"), 0);

  const EndedRun packets = RunText(Ring("mode: FLOW\n"), With("packet", {"--no-baseline"}));
  EXPECT_EQ(packets.Text("mode"), "packet");
  EXPECT_THAT(packets.exit.output, Not(HasSubstr("flow mode")));
  EXPECT_GT(packets.Integer("packet_hops"), 0);
  EXPECT_NE(packets.Text("fingerprint"), flows.Text("fingerprint"));
}

// A ring has no queues to model: nothing shares a link with anything else.
TEST_F(FlowModeTest, ARingTakesTheTimeThatItTakesWithPackets) {
  EXPECT_NEAR(RatioOf(Ring()), 1, 0.005);
}

TEST_F(FlowModeTest, TreesAndSumsInSwitchesAreNear) {
  for (const char* algorithm : {"TREE", "NVLS", "NVLS_TREE"}) {
    SCOPED_TRACE(algorithm);
    const uint32_t servers = std::string(algorithm) == "NVLS" ? 1 : 2;
    EXPECT_NEAR(RatioOf(RailOptimized(servers) + "workload { algorithm: " + algorithm +
                        " program { collectives { kind: ALL_REDUCE bytes: \"64MiB\" } } }\n"),
                1, 0.1);
  }
}

TEST_F(FlowModeTest, AnAllToAllIsNear) {
  EXPECT_NEAR(
      RatioOf(RailOptimized(4) +
              "workload { program { collectives { kind: ALL_TO_ALL bytes: \"64MiB\" } } }\n"),
      1, 0.1);
}

TEST_F(FlowModeTest, TheSameRunHasTheSameResultsWithAndWithoutTheReplayCache) {
  const std::string job =
      RailOptimized(1) +
      "workload { program { collectives { kind: ALL_REDUCE bytes: \"64KiB\" repeat: 100 "
      "compute_before: \"10us\" } } }\n";
  const EndedRun first = RunText(job, With("flow", {"--no-baseline"}));
  const EndedRun again = RunText(job, With("flow", {"--no-baseline"}));
  const EndedRun without = RunText(job, With("flow", {"--no-baseline", "--no-replay-cache"}));
  const EndedRun verified = RunText(job, With("flow", {"--no-baseline", "--verify-replay-cache"}));
  EXPECT_GT(first.Integer("collectives.replayed"), 0);
  EXPECT_EQ(without.Integer("collectives.replayed"), 0);
  EXPECT_EQ(verified.exit.status, 0) << verified.exit.errors;
  for (const EndedRun* const run : {&again, &without, &verified}) {
    EXPECT_EQ(run->Text("fingerprint"), first.Text("fingerprint"));
    EXPECT_EQ(ReadText(run->directory + "/links.csv"), ReadText(first.directory + "/links.csv"));
  }
}

TEST_F(FlowModeTest, SeveralThreadsTakeOne) {
  const EndedRun run = RunText(Ring(), With("flow", {"--no-baseline", "--threads", "2"}));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("threads"), 1);
  EXPECT_EQ(run.Text("threads_why"), "flow mode takes one");
}

// Two channels of a NIC move 48 GB/s of its 50; a quarter of the rate takes nearly four times as
// long.
TEST_F(FlowModeTest, ADegradedLinkCostsWhatItLacks) {
  const EndedRun run = RunText(Ring("faults { kind: DEGRADE link: \"server0/nic0--leaf0\" at: "
                                    "\"1us\" rate: \"100Gbps\" }\n",
                                    "256MiB"),
                               With("flow"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_NEAR(run.Real("collectives.stretch.max"), 48.0 / 12.5, 0.4);
}

// Connections that open while a link is slow are not slow, or fast, when it no longer is: what is
// left of it, the order in which ranks begin, is that of packets.
TEST_F(FlowModeTest, ALinkThatIsRepairedLeavesWhatItLeavesOfPackets) {
  for (const char* fault : {"link: \"server0/nic*--leaf*\" rate: \"10Gbps\"",
                            "link: \"server0/gpu0--server0/nvswitch*\" rate: \"1Gbps\""}) {
    SCOPED_TRACE(fault);
    std::vector<double> last;
    for (const char* mode : {"flow", "packet"}) {
      const EndedRun run = RunText(
          RailOptimized(2) +
              "workload { program { collectives { kind: ALL_REDUCE bytes: \"64KiB\" repeat: 40 } } "
              "}\nfaults { kind: DEGRADE " +
              std::string(fault) + " at: \"0s\" until: \"500us\" }\n",
          With(mode));
      ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
      EXPECT_GT(run.Real("collectives.stretch.max"), 1.4);
      last.push_back(run.Query("SELECT stretch FROM collectives ORDER BY start_ps DESC LIMIT 1")
                         .Real(0, "stretch"));
    }
    EXPECT_NEAR(last[0], last[1], 0.03);
  }
}

// All load is through one spine.
TEST_F(FlowModeTest, NoLinkIsBusyForMoreThanTheTime) {
  const EndedRun run = RunText(
      "fabric { leaf_spine { servers { count: 6 gpus: 4 nics: 4 } nics_per_leaf: 4 spines: 1 } }\n"
      "workload { program { collectives { kind: ALL_TO_ALL bytes: \"12MiB\" } } }\n",
      With("flow", {"--no-baseline"}));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const auto rows = run.Query("SELECT MAX(utilization) AS most FROM link_series");
  EXPECT_LT(rows.Real(0, "most"), 1.01);
  EXPECT_GT(rows.Real(0, "most"), 0.9);
}

TEST_F(FlowModeTest, WhatActsOnPacketsIsRefused) {
  ExpectRefused(Ring("faults { kind: LINK_DOWN link: \"server0/nic0--leaf0\" at: \"1us\" until: "
                     "\"2us\" }\n"),
                "faults[0].kind: LINK_DOWN acts on packets, and flow mode has none");
  ExpectRefused(Ring("nccl { NET: \"Socket\" }\n"),
                "flow mode has RDMA over InfiniBand or RoCE only");
  ExpectRefused(Ring("network { load_balancing: SPRAYING }\n"), "load_balancing");
  ExpectRefused(Ring("network { trajectory_hash: true }\n"), "trajectory_hash");
  ExpectRefused(Ring("nccl { COLLNET_ENABLE: 1 }\n"), "COLLNET_ENABLE");
}

TEST_F(FlowModeTest, AFlowHasNoPacketsToCapture) {
  const EndedRun run = RunText(Ring(), With("flow", {"--capture", "server0/nic0--leaf0"}));
  EXPECT_EQ(run.exit.status, 2);
  EXPECT_THAT(run.exit.errors, HasSubstr("--capture: error: flow mode has no packets"));
}

}  // namespace
}  // namespace railyard::testing
