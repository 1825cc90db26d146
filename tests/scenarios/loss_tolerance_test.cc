// SPDX-License-Identifier: GPL-2.0-only
// Receivers that do without some of what they are sent: how much, and what it saves.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMtu = 4096;

class LossToleranceTest : public ProgramTest {
 protected:
  // Each of 16 GPUs sends 1 MiB to the next: server0/gpu7 over the network to server1/gpu0. So many
  // packets are lost of it.
  EndedRun Lose(int packets, const std::string& tolerance, const std::string& more = "") {
    return RunText(
        RailOptimized(2) + Program("SEND_RECV", "1MiB", tolerance) + "nccl { IB_TIMEOUT: 12 }\n" +
        fmt::format("faults {{ name: \"f\" kind: LOSS link: \"server1/nic0--leaf0\" at: "
                    "\"0s\" direction: BACKWARD loss {{ packets {{ kind: DATA number: 20 "
                    "count: {} }} }} }}\n",
                    packets) +
        more);
  }
};

TEST_F(LossToleranceTest, WhatIsToleratedIsNotAskedForAndSavesTime) {
  const EndedRun run = Lose(3, "loss_tolerance: 0.1");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Drops()["BIT_ERROR"], 3);
  EXPECT_EQ(run.Integer("transport.missing_packets"), 3);
  EXPECT_EQ(run.Integer("transport.missing_bytes"), 3 * kMtu);
  EXPECT_EQ(run.Integer("transport.retransmitted_packets"), 0);
  // Lost packets are not sent again: the time is that without faults, except for one more ACK.
  EXPECT_NEAR(run.Real("collectives.stretch.max"), 1, 0.001);
  const EndedRun reliable = Lose(3, "");
  EXPECT_EQ(reliable.Integer("transport.missing_packets"), 0);
  EXPECT_GT(reliable.Integer("transport.retransmitted_packets"), 0);
  // The paired run is that run.
  EXPECT_EQ(run.Integer("transport.reliable_time_ps"), reliable.Integer("simulated_time_ps"));
  EXPECT_EQ(run.Integer("transport.saved_ps"),
            reliable.Integer("simulated_time_ps") - run.Integer("simulated_time_ps"));
  EXPECT_GT(run.Integer("transport.saved_ps"), 0);
  EXPECT_TRUE(reliable.At("transport.saved_ps").IsNull());
  EXPECT_THAT(run.exit.output, HasSubstr("3 packets that receivers did without (12 KiB)"));
  EXPECT_THAT(run.exit.output, HasSubstr("tolerated loss saves"));
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  const EndedRun unpaired = RunText(
      RailOptimized(2) + Program("SEND_RECV", "1MiB", "loss_tolerance: 0.1"), {"--no-baseline"});
  EXPECT_TRUE(unpaired.At("transport.reliable_time_ps").IsNull());
}

// More than a message may lack is asked for, all of it.
TEST_F(LossToleranceTest, WhatIsBeyondTheToleranceIsSentAgain) {
  const EndedRun run = Lose(3, "loss_tolerance: 0.0001");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("transport.missing_packets"), 0);
  EXPECT_GT(run.Integer("transport.retransmitted_packets"), 0);
  EXPECT_EQ(run.Integer("transport.saved_ps"), 0);
  EXPECT_EQ(run.Text("fingerprint"), Lose(3, "").Text("fingerprint"));
}

// A hundredth of a percent of 256 packets is no packet, which the run reports; 10 % are some.
TEST_F(LossToleranceTest, AToleranceOfNoWholePacketIsReported) {
  const std::string note = "loss_tolerance had no effect: it is rounded down to whole packets";
  EXPECT_THAT(Lose(3, "loss_tolerance: 0.0001").exit.output, HasSubstr(note));
  EXPECT_THAT(Lose(3, "loss_tolerance: 0.1").exit.output, Not(HasSubstr(note)));
  EXPECT_THAT(Lose(3, "").exit.output, Not(HasSubstr(note)));
}

// A share p of packets is lost at random. With a tolerance far above it, all but the ends of
// messages are done without; never more than the tolerated share of what crosses.
TEST_F(LossToleranceTest, RandomLossBelowTheToleranceCostsNothing) {
  const std::string text =
      RailOptimized(2) + Program("ALL_TO_ALL", "64MiB", "loss_tolerance: 0.05") +
      "nccl { IB_TIMEOUT: 12 }\nfaults { name: \"f\" kind: LOSS link: \"server1/nic3--leaf3\" at: "
      "\"0s\" loss { probability: 0.002 } }\n";
  const EndedRun run = RunText(text);
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const int64_t missing = run.Integer("transport.missing_packets");
  EXPECT_GT(missing, 0);
  EXPECT_EQ(run.Integer("transport.missing_bytes"), missing * kMtu);
  EXPECT_LE(missing, run.Drops()["BIT_ERROR"]);
  EXPECT_GT(run.Integer("transport.saved_ps"), 0);
  EXPECT_NE(run.Text("fingerprint"),
            RunText(text, {"--set", "workload.program.collectives[0].loss_tolerance="})
                .Text("fingerprint"));
}

TEST_F(LossToleranceTest, WhatReordersOrNeedsEveryByteIsRefused) {
  const EndedRun late = Lose(1, "loss_tolerance: 0.1", "nic { reorder_tolerance_packets: 4 }\n");
  EXPECT_EQ(late.exit.status, 2);
  EXPECT_THAT(late.exit.errors, HasSubstr("nic.reorder_tolerance_packets: takes for late what a "
                                          "loss_tolerance takes for lost (expected one of them)"));
  const EndedRun sprayed = Lose(1, "loss_tolerance: 0.1", "network { load_balancing: SPRAYING }\n");
  EXPECT_EQ(sprayed.exit.status, 2);
  EXPECT_THAT(sprayed.exit.errors,
              HasSubstr("network.load_balancing: reorders, and a loss_tolerance takes what is late "
                        "for lost (expected ECMP)"));
  const EndedRun whole =
      RunText(RailOptimized(2) + Program("ALL_REDUCE", "1MiB", "loss_tolerance: 0.1"));
  EXPECT_EQ(whole.exit.status, 2);
  EXPECT_THAT(whole.exit.errors, HasSubstr("means nothing for this kind, which needs every byte"));
  const EndedRun all = Lose(1, "loss_tolerance: 1");
  EXPECT_EQ(all.exit.status, 2);
  EXPECT_THAT(all.exit.errors, HasSubstr("1 is out of range (expected 0 to 0.999999)"));
}

}  // namespace
}  // namespace railyard::testing
