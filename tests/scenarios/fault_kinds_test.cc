// SPDX-License-Identifier: GPL-2.0-only
// Compares losses, delays, first retransmissions and recovery times of every kind of fault with
// formulas of timers, rates and wires.
#include <cmath>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPsPerUs = 1'000'000;
constexpr int64_t kFaultPs = 300 * kPsPerUs;

constexpr int64_t TimeoutPs(uint32_t ib_timeout) { return int64_t{4'096'000} << ib_timeout; }
// As in fault_test.cc.
constexpr int64_t kTimerStartWithinPs = 25 * kPsPerUs;

class FaultKindsTest : public ProgramTest {
 protected:
  static std::string Job(uint32_t ib_timeout) {
    return RailOptimized(2) + Program("ALL_REDUCE", "64MiB", "repeat: 3") +
           fmt::format("nccl {{ IB_TIMEOUT: {} }}\n", ib_timeout);
  }
  static std::string Fault(const std::string& fields) {
    return "faults { name: \"f\" " + fields + " }\n";
  }
  static int64_t OfFault(const EndedRun& run, const std::string& column, size_t row = 0) {
    return run.Query("SELECT * FROM faults").Integer(row, column);
  }
  static int64_t CrossedOf(const EndedRun& run, const std::string& link) {
    return run.links.Sum("packets", "link", link) + run.links.Sum("dropped_packets", "link", link);
  }
  static int64_t LongerPs(const EndedRun& run, size_t row) {
    return run.collectives.Integer(row, "duration_ps") -
           run.collectives.Integer(row, "baseline_duration_ps");
  }
};

TEST_F(FaultKindsTest, OneLostDataPacketIsAskedForByTheNextOne) {
  const EndedRun run = RunText(Job(14) + Fault("kind: LOSS link: \"server1/nic3--leaf3\" "
                                               "direction: FORWARD at: \"300us\" "
                                               "loss { packets { kind: DATA number: 40 } }"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Drops()["BIT_ERROR"], 1);
  // Packets sent behind it until the NACK arrived: a round trip's worth, at most a window.
  EXPECT_LT(run.Drops()["OUT_OF_SEQUENCE"], 128);
  EXPECT_EQ(run.Integer("transport.timeouts"), 0);
  EXPECT_EQ(run.Integer("transport.retransmitted_packets"), 1 + run.Drops()["OUT_OF_SEQUENCE"]);
  EXPECT_LE(OfFault(run, "first_retransmission_ps") - kFaultPs, 4 * kTimerStartWithinPs);
  EXPECT_LE(run.Integer("faults.0.time_to_recover_ps"), 5 * kTimerStartWithinPs);
}

// Nothing follows a clear-to-send element until it is there: the timer alone brings it again.
TEST_F(FaultKindsTest, LostClearToSendsWaitForTheTimer) {
  const std::string job = RailOptimized(2) + Program("ALL_REDUCE", "64KiB") +
                          "nccl { IB_TIMEOUT: 10 }\n" +
                          Fault(
                              "kind: LOSS link: \"server*/nic*--leaf*\" at: \"0s\" "
                              "loss { packets { kind: CLEAR_TO_SEND count: 100 } } "
                              "until: \"1ms\"");
  const EndedRun run = RunText(job);
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.Drops()["BIT_ERROR"], 0);
  EXPECT_GT(run.Integer("transport.timeouts"), 0);
  const int64_t first_ps = OfFault(run, "first_retransmission_ps");
  EXPECT_GE(first_ps, TimeoutPs(10));
  EXPECT_LE(first_ps, TimeoutPs(10) + 2 * kTimerStartWithinPs);
}

// n p of n packets are lost, within four times sqrt(n p (1 - p)).
TEST_F(FaultKindsTest, EvenLossTakesItsShareOfWhatCrossesTheLink) {
  const double p = 0.002;
  const EndedRun run = RunText(Job(14) + Fault("kind: LOSS link: \"server1/nic3--leaf3\" "
                                               "at: \"0s\" loss { probability: 0.002 }"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const auto crossed = static_cast<double>(CrossedOf(run, "server1/nic3>leaf3") +
                                           CrossedOf(run, "leaf3>server1/nic3"));
  EXPECT_NEAR(static_cast<double>(run.Drops()["BIT_ERROR"]), crossed * p,
              4 * std::sqrt(crossed * p));
  EXPECT_EQ(OfFault(run, "dropped_packets"), run.Drops()["BIT_ERROR"]);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  const EndedRun again = RunText(Job(14) + Fault("kind: LOSS link: \"server1/nic3--leaf3\" "
                                                 "at: \"0s\" loss { probability: 0.002 }"));
  EXPECT_EQ(again.Text("fingerprint"), run.Text("fingerprint"));
  // Another seed loses others.
  const EndedRun other = RunText(Job(14) + Fault("kind: LOSS link: \"server1/nic3--leaf3\" "
                                                 "at: \"0s\" loss { probability: 0.002 }"),
                                 {"--seed", "2"});
  EXPECT_NE(other.Text("fingerprint"), run.Text("fingerprint"));
}

// Bits are wrong one by one: of packets of n bytes 1 - (1 - b)^(8 n) are lost. Nearly all bytes are
// in packets of 4 KiB and their headers.
TEST_F(FaultKindsTest, BitErrorsTakeTheShareThatPacketsOfThatLengthHave) {
  const double b = 4e-7;
  const EndedRun run =
      RunText(Job(10) + Fault("kind: LOSS link: \"server1/nic3--leaf3\" at: \"0s\" "
                              "loss { bit_error_ratio: 4e-7 }"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  double crossed_bytes = 0;
  for (const char* link : {"server1/nic3>leaf3", "leaf3>server1/nic3"}) {
    for (const char* part : {"payload_bytes", "header_bytes", "retransmitted_bytes"}) {
      crossed_bytes += static_cast<double>(run.links.Sum(part, "link", link));
    }
  }
  const double packet_bytes = 4096 + 82;
  const double lost = -std::expm1(8 * packet_bytes * std::log1p(-b));
  const double expected = crossed_bytes / packet_bytes * lost;
  EXPECT_NEAR(static_cast<double>(run.Drops()["BIT_ERROR"]), expected, 4 * std::sqrt(expected));
  EXPECT_GT(run.Drops()["BIT_ERROR"], 200);
  EXPECT_EQ(OfFault(run, "dropped_packets"), run.Drops()["BIT_ERROR"]);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
}

// The share of the bad state, to_bad / (to_bad + to_good), widened as losses come together.
TEST_F(FaultKindsTest, BurstsTakeTheShareOfTheirState) {
  const double to_bad = 0.001;
  const double to_good = 0.05;
  const EndedRun run =
      RunText(Job(10) + Fault("kind: LOSS link: \"server1/nic3--leaf3\" at: \"0s\" loss { "
                              "gilbert_elliott { to_bad: 0.001 to_good: 0.05 } }"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const auto crossed = static_cast<double>(CrossedOf(run, "server1/nic3>leaf3") +
                                           CrossedOf(run, "leaf3>server1/nic3"));
  const double share = to_bad / (to_bad + to_good);
  const double r = 1 - to_bad - to_good;
  EXPECT_NEAR(static_cast<double>(run.Drops()["BIT_ERROR"]), crossed * share,
              4 * std::sqrt(crossed * share * (1 - share) * (1 + r) / (1 - r)));
  EXPECT_EQ(OfFault(run, "dropped_packets"), run.Drops()["BIT_ERROR"]);
}

// Half of all bits, or a bad state that nothing leaves: all that crosses is lost, but for the
// packet that each direction's state turns bad after. The timer brings it again when all is over.
TEST_F(FaultKindsTest, BitErrorsAndBurstsWithoutEndAreRiddenOutByTheTimer) {
  for (const char* loss : {"bit_error_ratio: 0.5", "gilbert_elliott { to_bad: 1 to_good: 0 }"}) {
    SCOPED_TRACE(loss);
    const EndedRun run = RunText(
        Job(16) + Fault(fmt::format("kind: LOSS link: \"server1/nic3--leaf3\" at: \"300us\" "
                                    "until: \"5300us\" loss {{ {} }}",
                                    loss)));
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_EQ(run.Drops().count("LINK_DOWN"), 0u);
    EXPECT_EQ(OfFault(run, "dropped_packets"), run.Drops()["BIT_ERROR"]);
    EXPECT_NEAR(static_cast<double>(OfFault(run, "first_retransmission_ps")),
                static_cast<double>(kFaultPs + TimeoutPs(16)), kTimerStartWithinPs);
    EXPECT_NEAR(static_cast<double>(run.Integer("faults.0.time_to_recover_ps")),
                static_cast<double>(TimeoutPs(16)), 4 * kTimerStartWithinPs);
  }
}

// All that crosses while it lasts: as a flap, but for the reason.
TEST_F(FaultKindsTest, LossOfEverythingIsRiddenOutByTheTimer) {
  const EndedRun run = RunText(Job(16) + Fault("kind: LOSS link: \"server1/nic3--leaf3\" "
                                               "at: \"300us\" until: \"5300us\" "
                                               "loss { probability: 1 }"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Drops().count("LINK_DOWN"), 0u);
  EXPECT_NEAR(static_cast<double>(OfFault(run, "first_retransmission_ps")),
              static_cast<double>(kFaultPs + TimeoutPs(16)), kTimerStartWithinPs);
  // Then it is over, and what is sent again arrives.
  EXPECT_GE(run.Integer("faults.0.time_to_recover_ps"), TimeoutPs(16) - kTimerStartWithinPs);
  EXPECT_LE(run.Integer("faults.0.time_to_recover_ps"), TimeoutPs(16) + 4 * kTimerStartWithinPs);
  EXPECT_EQ(OfFault(run, "dropped_packets"), run.Drops()["BIT_ERROR"]);
}

// Eight senders overflow the buffer before the link that was down for a moment, before and after
// it.
TEST_F(FaultKindsTest, CongestionOnALinkThatWasDownIsNotItsFault) {
  const EndedRun run = RunText(
      "fabric { rail_optimized { servers: 9 gpus_per_server: 1 nic_rate: \"100Gbps\" } }\n"
      "workload { program { collectives { kind: GATHER bytes: \"72MiB\" } } }\n"
      "nccl { NET: \"Socket\" SOCKET_NTHREADS: 4 }\n"
      "switch { buffer: \"4MiB\" }\n" +
          Fault("kind: LINK_DOWN link: \"server0/nic0--leaf0\" at: \"300us\" until: \"310us\""),
      {"--no-baseline"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.Drops()["BUFFER_FULL"], 0);
  EXPECT_GT(run.Drops()["LINK_DOWN"], 0);
  EXPECT_EQ(OfFault(run, "dropped_packets"), run.Drops()["LINK_DOWN"]);
}

// A link that is the slowest of the ring sends all the time: bytes over rate, and little more.
TEST_F(FaultKindsTest, ADegradedLinkSetsThePace) {
  const EndedRun run = RunText(Job(20) + Fault("kind: DEGRADE link: \"server1/nic3--leaf3\" "
                                               "direction: FORWARD rate: \"20Gbps\" at: \"0s\""));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_TRUE(run.Drops().empty());
  const auto bytes =
      static_cast<double>(run.links.Sum("payload_bytes", "link", "server1/nic3>leaf3") +
                          run.links.Sum("header_bytes", "link", "server1/nic3>leaf3"));
  const double wire_ps = bytes * 8 / 20e9 * 1e12;
  const auto took_ps = static_cast<double>(run.Integer("simulated_time_ps"));
  EXPECT_GE(took_ps, wire_ps);
  EXPECT_LE(took_ps, 1.1 * wire_ps);
}

TEST_F(FaultKindsTest, ADegradedLinkHasItsOwnRateAgainInTheEnd) {
  const EndedRun run =
      RunText(Job(20) + Fault("kind: DEGRADE link: \"server1/nic3--leaf3\" rate_share: 0.1 "
                              "at: \"300us\" until: \"350us\""));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.collectives.Real(0, "stretch"), 1);
  EXPECT_NEAR(run.collectives.Real(2, "stretch"), 1, 0.1);
}

// NVSwitch 0 takes 5 of a GPU's 18 NVLinks and of its packets. With 2 lanes of the 5, those take
// 5/2 as long, and a transfer waits for them.
TEST_F(FaultKindsTest, LostLanesSlowTheirShareOfTheTraffic) {
  const EndedRun run = RunText(RailOptimized(1) + Program("SEND_RECV", "64MiB") + kFreeGpu +
                               Fault("kind: DEGRADE link: \"server0/gpu2--server0/nvswitch0\" "
                                     "lanes: 2 at: \"0s\""));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_NEAR(run.collectives.Real(0, "stretch"), 5.0 / 2, 0.05);
  EXPECT_TRUE(run.Drops().empty());
}

// The clear-to-send one way, then the data the other way: each later by the delay.
TEST_F(FaultKindsTest, ADelayIsPaidOncePerWay) {
  const std::string job =
      "fabric { rail_optimized { servers: 2 } }\n" + Program("SEND_RECV", "4KiB") + kFreeGpu;
  const EndedRun run = RunText(job + Fault("kind: DELAY link: \"server1/nic0--leaf0\" "
                                           "delay: \"50us\" at: \"0s\""));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_TRUE(run.Drops().empty());
  EXPECT_NEAR(static_cast<double>(LongerPs(run, 0)), 2.0 * 50 * kPsPerUs, 1e6);
}

// A storm pauses one link, for exactly its time, and loses nothing.
TEST_F(FaultKindsTest, AStormPausesForItsTimeAndLosesNothing) {
  const EndedRun run = RunText(Job(16) + Fault("kind: PAUSE_STORM device: \"server1/nic3\" "
                                               "at: \"300us\" until: \"2300us\""));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_TRUE(run.Drops().empty());
  EXPECT_GE(run.Integer("transport.pfc_pause_ps"), 2'000 * kPsPerUs);
  EXPECT_EQ(run.Integer("transport.timeouts"), 0);
  EXPECT_NEAR(static_cast<double>(LongerPs(run, 0)), 2'000.0 * kPsPerUs, 100.0 * kPsPerUs);
}

// Packets that wait at a paused port are not lost, but the sender cannot know: its retry budget
// runs out.
TEST_F(FaultKindsTest, AStormBeyondTheRetriesAbortsTheJob) {
  const EndedRun run =
      RunText(Job(8) + Fault("kind: PAUSE_STORM device: \"server1/nic3\" at: \"300us\""));
  ASSERT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_NEAR(static_cast<double>(run.Integer("jobs.0.first_error_ps")),
              static_cast<double>(kFaultPs + 8 * TimeoutPs(8)), 2.0 * kTimerStartWithinPs);
  // It has not ended when the run does.
  EXPECT_GE(run.Integer("transport.pfc_pause_ps"), run.Integer("jobs.0.first_error_ps") - kFaultPs);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_THAT(run.exit.output, HasSubstr("IBV_WC_RETRY_EXC_ERR(12)"));
}

// If a CTA is the slowest part of the ring, half its speed is twice the time.
TEST_F(FaultKindsTest, AStragglerSetsThePace) {
  const std::string gpu =
      "gpu { launch_latency: \"0s\" nvlink_step_latency: \"0s\" network_step_latency: \"0s\" "
      "channel_rate: \"10Gbps\" proxy_post_latency: \"0s\" }\n";
  const EndedRun run = RunText(RailOptimized(2) + Program("ALL_REDUCE", "64MiB") + gpu +
                               Fault("kind: STRAGGLER device: \"server1/gpu3\" speed: 0.5 "
                                     "at: \"0s\""));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_NEAR(run.collectives.Real(0, "stretch"), 2, 0.1);
}

TEST_F(FaultKindsTest, AGpuThatStandsStillForAWhileCostsThatWhile) {
  const EndedRun run = RunText(Job(20) + Fault("kind: STRAGGLER device: \"server1/gpu3\" speed: 0 "
                                               "at: \"300us\" until: \"10300us\""));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_NEAR(static_cast<double>(LongerPs(run, 0)), 10'000.0 * kPsPerUs, 100.0 * kPsPerUs);
  EXPECT_TRUE(run.Drops().empty());
}

TEST_F(FaultKindsTest, AGpuThatStopsStallsTheJobAndIsNamed) {
  const EndedRun run =
      RunText(Job(20) + Fault("kind: STRAGGLER device: \"server1/gpu3\" speed: 0 at: \"300us\""));
  EXPECT_EQ(run.exit.status, 4) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), "STALLED");
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
  EXPECT_THAT(run.exit.output, HasSubstr("server1/gpu3, rank 11, stands still"));
  EXPECT_THAT(run.exit.output, HasSubstr("waits for data from rank"));
  EXPECT_EQ(run.Integer("transport.qp_errors"), 0);
}

// Though a cable elsewhere flaps for ever, the run ends: when nothing went on for the stated time,
// and an eighth of it at most later.
TEST_F(FaultKindsTest, TheWatchdogEndsWhatWouldNeverEnd) {
  const EndedRun run = RunText(
      Job(20) + "watchdog { no_progress: \"8ms\" }\n" +
      Fault("kind: STRAGGLER device: \"server1/gpu3\" speed: 0 at: \"300us\"") +
      "faults { name: \"idle\" kind: LINK_DOWN link: \"leaf7--spine0\" at: \"0s\" until: \"1us\" "
      "repeat { period: \"100us\" } }\n");
  EXPECT_EQ(run.exit.status, 4) << run.exit.errors;
  const int64_t end_ps = run.Integer("simulated_time_ps");
  EXPECT_GE(end_ps, kFaultPs + 8'000 * kPsPerUs);
  EXPECT_LE(end_ps, kFaultPs + 10'000 * kPsPerUs);
  EXPECT_THAT(run.exit.output, HasSubstr("nothing went on for 8 ms of simulated time"));
}

// The root of a broadcast is done when its data has left; nobody is in a collective while its
// receiver, which stands still, does not even begin.
TEST_F(FaultKindsTest, TheWatchdogSeesAGpuThatStopsWhileItComputes) {
  const EndedRun run =
      RunText("fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }\n" +
              Program("BROADCAST", "64KiB", "compute_before: \"3ms\"") +
              "watchdog { no_progress: \"8ms\" }\n" +
              Fault("kind: STRAGGLER device: \"server1/gpu0\" speed: 0 at: \"300us\"") +
              "faults { name: \"idle\" kind: DELAY link: \"leaf0--spine0\" delay: \"1us\" at: "
              "\"0s\" until: "
              "\"1us\" repeat { period: \"100us\" } }\n");
  EXPECT_EQ(run.exit.status, 4) << run.exit.errors;
  EXPECT_LE(run.Integer("simulated_time_ps"), 14'000 * kPsPerUs);
  EXPECT_THAT(run.exit.output, HasSubstr("server1/gpu0, rank 1, stands still"));
}

// Back after its cables have trained: the first try after that is the one that is through.
TEST_F(FaultKindsTest, AfterARebootTheLinksTrain) {
  const std::string routing = "routing { detection_delay: \"10us\" convergence_delay: \"20us\" }\n";
  const EndedRun run = RunText(Job(10) + routing +
                               Fault("kind: SWITCH_REBOOT device: \"leaf3\" at: \"300us\" "
                                     "until: \"3300us\" training: \"3ms\""));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  // Down for 6 ms and a bit; tries every 4.19 ms.
  const int64_t tries = 2;
  const int64_t recover_ps = run.Integer("faults.0.time_to_recover_ps");
  EXPECT_GE(recover_ps, tries * TimeoutPs(10) - kTimerStartWithinPs);
  EXPECT_LE(recover_ps, tries * TimeoutPs(10) + 4 * kTimerStartWithinPs);
  EXPECT_GT(run.Drops()["LINK_DOWN"], 0);
  EXPECT_GT(run.Drops()["NO_ROUTE"], 0);
}

// Others' traffic is no progress of the job's.
TEST_F(FaultKindsTest, ALoadDoesNotHideAStall) {
  const EndedRun run = RunText(
      Job(20) + "watchdog { no_progress: \"10ms\" }\n" +
      Fault("kind: STRAGGLER device: \"server1/gpu0\" speed: 0 at: \"300us\"") +
      "faults { name: \"load\" kind: BACKGROUND_LOAD at: \"0s\" load { from: \"server0/gpu5\" to: "
      "\"server1/gpu5\" rate: \"1Gbps\" message: \"64KiB\" } }\n");
  EXPECT_EQ(run.exit.status, 4) << run.exit.errors;
  EXPECT_THAT(run.exit.output, HasSubstr("server1/gpu0, rank 8, stands still"));
}

// Nobody sees it: no route changes, though another spine is there, and the retries are used up.
TEST_F(FaultKindsTest, AGrayFailureIsNotRoutedAround) {
  const EndedRun run = RunFile(ShippedScenario("fault_gray"));
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  EXPECT_EQ(run.Drops().count("NO_ROUTE"), 0u);
  EXPECT_GT(run.Drops()["LINK_DOWN"], 0);
  EXPECT_TRUE(run.At("faults.0.time_to_detect_ps").IsNull());
  EXPECT_NEAR(static_cast<double>(OfFault(run, "first_retransmission_ps")),
              static_cast<double>(20 * kPsPerUs + TimeoutPs(10)), 200.0 * kPsPerUs);
  EXPECT_NEAR(static_cast<double>(run.Integer("jobs.0.first_error_ps")),
              static_cast<double>(20 * kPsPerUs + 8 * TimeoutPs(10)), 200.0 * kPsPerUs);
  const EndedRun seen = RunFile(ShippedScenario("fault_gray"), {"--set", "faults[0].unnoticed="});
  EXPECT_EQ(seen.exit.status, 0) << seen.exit.errors;
}

TEST_F(FaultKindsTest, AFlapRepeatsAsOftenAsStated) {
  const EndedRun run = RunText(
      Job(14) + Fault("kind: LINK_DOWN link: \"leaf7--spine0\" at: \"10us\" until: \"12us\" "
                      "repeat { period: \"20us\" count: 7 }"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("faults.0.begins"), 7);
  EXPECT_EQ(run.Integer("faults.0.from_ps"), 10 * kPsPerUs);
  EXPECT_EQ(run.Integer("faults.0.until_ps"), 10 * kPsPerUs + 6 * (20 * kPsPerUs) + 2 * kPsPerUs);
}

TEST_F(FaultKindsTest, AFaultMayBeginWithACollectiveOrHalfwayThrough) {
  const EndedRun run = RunText(
      Job(14) +
      "faults { name: \"begin\" kind: LINK_DOWN link: \"leaf7--spine0\" when { number: 2 } "
      "until: \"5us\" }\n"
      "faults { name: \"half\" kind: LINK_DOWN link: \"leaf6--spine0\" "
      "when { number: 3 kind: ALL_REDUCE progress: 0.5 } until: \"7us\" }\n"
      "faults { name: \"then\" kind: LINK_DOWN link: \"leaf5--spine0\" when { end_of: \"half\" } "
      "at: \"3us\" until: \"4us\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("faults.0.from_ps"), run.collectives.Integer(1, "start_ps"));
  const auto start_ps = static_cast<double>(run.collectives.Integer(2, "start_ps"));
  const auto duration_ps = static_cast<double>(run.collectives.Integer(2, "duration_ps"));
  EXPECT_NEAR(static_cast<double>(run.Integer("faults.1.from_ps")), start_ps + 0.5 * duration_ps,
              0.1 * duration_ps);
  EXPECT_EQ(run.Integer("faults.2.from_ps"), run.Integer("faults.1.until_ps") + 3 * kPsPerUs);
  EXPECT_EQ(run.Real("collectives.stretch.max"), 1);
}

// An eighth of a NIC's rate from each of eight senders: what the others leave of the receiver's
// link is what the collective has, and what was offered is what came.
// "50 % into the twelfth AllReduce of communicator X": of one of eight that run at the same time.
TEST_F(FaultKindsTest, AnAnchorCountsTheCollectivesOfItsCommunicator) {
  const EndedRun run = RunText(
      RailOptimized(2) +
      Program("ALL_REDUCE", "4MiB", "stride: 8 repeat: 13 compute_before: \"20us\"") +
      "faults { kind: LINK_DOWN link: \"leaf7--spine0\" until: \"1us\" when { number: 12 kind: "
      "ALL_REDUCE communicator: \"stride8/5\" progress: 0.5 } }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const int64_t from_ps = run.Integer("faults.0.from_ps");
  int number = 0;
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    if (run.collectives.Text(row, "communicator") != "stride8/5" || ++number != 12) continue;
    const auto start_ps = static_cast<double>(run.collectives.Integer(row, "start_ps"));
    const auto duration_ps = static_cast<double>(run.collectives.Integer(row, "duration_ps"));
    EXPECT_NEAR(static_cast<double>(from_ps), start_ps + 0.5 * duration_ps, 0.25 * duration_ps);
  }
  EXPECT_EQ(number, 13);
}

TEST_F(FaultKindsTest, BackgroundLoadTakesWhatItOffers) {
  const std::string job = Job(20);
  const EndedRun alone = RunText(job);
  const EndedRun run =
      RunText(job + Fault("kind: BACKGROUND_LOAD at: \"100us\" until: \"1100us\" "
                          "load { from: \"server0/gpu0\" to: \"server1/gpu1\" rate: \"80Gbps\" "
                          "message: \"64KiB\" }"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_TRUE(run.Drops().empty());
  const auto more =
      static_cast<double>(run.links.Sum("payload_bytes", "link", "leaf1>server1/nic1") -
                          alone.links.Sum("payload_bytes", "link", "leaf1>server1/nic1"));
  EXPECT_NEAR(more, 80e9 / 8 * 1e-3, 0.02 * 80e9 / 8 * 1e-3);
  EXPECT_GT(run.Real("collectives.stretch.max"), 1);
  EXPECT_EQ(run.Integer("payload.total_bytes"), alone.Integer("payload.total_bytes"));
}

TEST_F(FaultKindsTest, FaultsThatTouchNothingStretchNothing) {
  for (const char* fields :
       {"kind: LINK_DOWN link: \"leaf*--spine*\" at: \"10us\"",
        "kind: DEGRADE link: \"leaf*--spine*\" rate: \"1Gbps\" at: \"10us\"",
        "kind: DELAY link: \"leaf*--spine*\" delay: \"1ms\" at: \"10us\"",
        "kind: LOSS link: \"leaf*--spine*\" loss { probability: 1 } at: \"10us\"",
        "kind: LOSS link: \"server*/nic*--leaf*\" loss { probability: 0 } at: \"10us\"",
        "kind: PAUSE_STORM device: \"spine*\" at: \"10us\"",
        "kind: STRAGGLER device: \"server1/gpu3\" speed: 1 at: \"10us\""}) {
    SCOPED_TRACE(fields);
    const EndedRun run = RunText(Job(14) + Fault(fields));
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    for (size_t row = 0; row < run.collectives.size(); ++row) {
      EXPECT_EQ(run.collectives.Text(row, "stretch"), "1");
    }
  }
}

// --- Shipped examples ----------------------------------------------------------------------------

class ShippedFaultTest : public ProgramTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ShippedFaultTest, EndsAsItsFirstLineSays) {
  const std::string path = ShippedScenario(std::string("fault_") + GetParam());
  const std::string text = ReadText(path);
  const std::string expect = "# expect: ";
  ASSERT_TRUE(text.starts_with(expect));
  const std::string wanted = text.substr(expect.size(), text.find('\n') - expect.size());
  const EndedRun run = RunFile(path);
  ASSERT_TRUE(run.has_result()) << run.exit.errors;
  EXPECT_EQ(run.Text("status"), wanted);
  EXPECT_EQ(run.exit.status, wanted == "COMPLETED" ? 0 : wanted == "JOB_ABORTED" ? 3 : 4);
  EXPECT_TRUE(run.At("conservation.ok").GetBool());
}

class ShippedFaultsTest : public ProgramTest {
 protected:
  static constexpr double kTimeoutPs = 4.096e6 * (1 << 14);
};

// One restart, on the spare; the rest of the job is as fast as before.
TEST_F(ShippedFaultsTest, TheSpareServerTakesTheRanksOfTheBrokenOne) {
  const EndedRun run = RunFile(ShippedScenario("fault_spare_server"));
  EXPECT_EQ(run.Integer("jobs.0.restarts"), 1);
  EXPECT_EQ(run.Integer("jobs.0.servers_replaced"), 1);
  EXPECT_GT(run.links.Sum("payload_bytes", "link", "server2/nic3>leaf3"), 0);
  const EndedRun without =
      RunFile(ShippedScenario("fault_spare_server"),
              {"--set", "restart.spare_servers=[]", "--set", "restart.restarts_max=3"});
  EXPECT_EQ(without.exit.status, 3);
}

// Only timers after the slow switch's delay find the way: at 1, 2, 3, ... of them, that is the
// third.
TEST_F(ShippedFaultsTest, TheSlowSwitchCostsTimersUntilItHasConverged) {
  const EndedRun slow = RunFile(ShippedScenario("fault_slow_switch"));
  const EndedRun quick =
      RunFile(ShippedScenario("fault_slow_switch"), {"--set", "routing.devices=[]"});
  const auto timers = [](const EndedRun& run) {
    return run.Real("faults.0.time_to_recover_ps") / kTimeoutPs;
  };
  EXPECT_NEAR(timers(quick), 1, 0.02);
  EXPECT_NEAR(timers(slow), std::ceil(201e9 / kTimeoutPs), 0.02);
}

// 100 us after the fifth collective, of two an iteration, begins.
TEST_F(ShippedFaultsTest, TheIterationsFaultBeginsWithIt) {
  const EndedRun run = RunFile(ShippedScenario("fault_iteration"));
  EXPECT_EQ(run.Integer("faults.0.from_ps"), run.collectives.Integer(4, "start_ps") + 100'000'000);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShippedFaultTest,
                         ::testing::Values("anchored", "bit_errors", "by_chance", "cut", "degrade",
                                           "delay", "drawn", "flap", "gpu_hang", "gray", "incast",
                                           "iteration", "jobs_restart", "log", "loss",
                                           "loss_bursts", "lost_packet", "nic_failover",
                                           "nvlink_lanes", "pause_storm", "plane", "port_failover",
                                           "slow_switch", "spare_server", "straggler",
                                           "switch_reboot"),
                         [](const auto& shipped) { return std::string(shipped.param); });

}  // namespace
}  // namespace railyard::testing
