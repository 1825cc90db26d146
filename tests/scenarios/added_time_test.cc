// SPDX-License-Identifier: GPL-2.0-only
// Tests the split of added time by cause with runs that have only one cause each.
#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

constexpr int64_t kPsPerUs = 1'000'000;
constexpr const char* kParts[] = {"queueing",  "retransmission", "timeout",
                                  "rerouting", "slow_peer",      "other"};

constexpr int64_t TimeoutPs(uint32_t ib_timeout) { return int64_t{4'096'000} << ib_timeout; }

class AddedTimeTest : public ProgramTest {
 protected:
  EndedRun RunWith(const std::string& fault, const std::string& more = "nccl { IB_TIMEOUT: 14 }") {
    return RunText(RailOptimized(2) + Program("ALL_REDUCE", "64MiB", "repeat: 2") + more +
                   "\nfaults { name: \"f\" " + fault + " }\n");
  }
  // Sums a part over the first `rows` collectives, which are those that the fault hit.
  static int64_t Part(const EndedRun& run, const std::string& part, size_t rows = 2) {
    int64_t sum_ps = 0;
    for (size_t row = 0; row < rows; ++row) {
      sum_ps += run.collectives.Integer(row, "added_" + part + "_ps");
    }
    return sum_ps;
  }
  static int64_t Longer(const EndedRun& run, size_t rows = 2) {
    int64_t sum_ps = 0;
    for (size_t row = 0; row < rows; ++row) {
      sum_ps += run.collectives.Integer(row, "duration_ps") -
                run.collectives.Integer(row, "baseline_duration_ps");
    }
    return sum_ps;
  }
  // At least 90 % of what was added, and no other part more than 10 %.
  static void ExpectOnly(const EndedRun& run, const std::string& cause, size_t rows = 2) {
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    int64_t sum_ps = 0;
    const auto longer_ps = static_cast<double>(Longer(run, rows));
    ASSERT_GT(longer_ps, 0);
    for (const std::string part : kParts) {
      const int64_t part_ps = Part(run, part, rows);
      sum_ps += part_ps;
      const double share = static_cast<double>(part_ps) / longer_ps;
      if (part == cause) {
        EXPECT_GE(share, 0.9) << part;
      } else {
        EXPECT_LE(share, 0.1) << part;
      }
    }
    EXPECT_EQ(sum_ps, Longer(run, rows));
  }
};

// Down for longer than a window lasts: one timer, and what follows it.
TEST_F(AddedTimeTest, AFlapIsATimeOut) {
  const EndedRun run = RunWith(
      "kind: LINK_DOWN link: \"server1/nic3--leaf3\" at: \"300us\" until: \"600us\" "
      "unnoticed: true");
  ExpectOnly(run, "timeout", 1);
  EXPECT_NEAR(static_cast<double>(Part(run, "timeout", 1)), static_cast<double>(TimeoutPs(14)),
              100.0 * kPsPerUs);
  // Rank 11 is that of server1/gpu3: it and its neighbour on the rail are what all wait for.
  const int64_t source = run.collectives.Integer(0, "held_up_by_source");
  const int64_t destination = run.collectives.Integer(0, "held_up_by_destination");
  EXPECT_EQ(std::min(source, destination), 3);
  EXPECT_EQ(std::max(source, destination), 11);
  const Table waits = run.Query(
      "SELECT DISTINCT rank FROM waits WHERE source_rank IN (3, 11) "
      "AND destination_rank IN (3, 11) AND source_rank <> destination_rank "
      "AND waited_ps > 60000000000");
  EXPECT_GE(waits.size(), 14u);  // all but the two themselves, at least
  EXPECT_TRUE(run.At("faults.0.added_ps.timeout").GetInt64() >= Part(run, "timeout", 1));
}

// Two servers of eight GPUs take NVLS_TREE, whose lanes work in rounds: all of a round's messages
// are waited for when it begins.
TEST_F(AddedTimeTest, AFlapIsATimeOutOfRoundsToo) {
  const EndedRun run = RunText(
      "fabric { rail_optimized { servers: 2 gpus_per_server: 8 nic_rate: \"400Gbps\" } }\n"
      "workload { program { collectives { kind: ALL_REDUCE bytes: \"64MiB\" } } }\n"
      "nccl { version: \"2.27.5\" IB_TIMEOUT: 10 }\n"
      "faults { name: \"f\" kind: LINK_DOWN link: \"server1/nic3--leaf3\" at: \"100us\" "
      "until: \"20ms\" unnoticed: true }\n");
  ExpectOnly(run, "timeout", 1);
  EXPECT_NE(run.collectives.Text(0, "held_up_by_source"), "");
}

// Asked for by what follows it, without any timer: a message of one queue pair, a megabyte of one
// direction, so that nothing hides what it costs.
TEST_F(AddedTimeTest, ALostPacketIsARetransmission) {
  const EndedRun run =
      RunText(RailOptimized(2) + Program("SEND_RECV", "1MiB") + kFreeGpu +
              "faults { name: \"f\" kind: LOSS link: \"server1/nic0--leaf0\" direction: BACKWARD "
              "at: \"0s\" loss { packets { kind: DATA number: 40 } } }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("transport.timeouts"), 0);
  EXPECT_GT(Part(run, "retransmission", 1), 0);
  for (const char* part : {"timeout", "rerouting", "slow_peer"}) {
    EXPECT_EQ(Part(run, part, 1), 0) << part;
  }
}

TEST_F(AddedTimeTest, ASlowLinkIsQueueing) {
  const EndedRun run =
      RunWith("kind: DEGRADE link: \"server1/nic3--leaf3\" rate: \"50Gbps\" at: \"0s\"");
  ExpectOnly(run, "queueing", 1);
}

TEST_F(AddedTimeTest, ASlowGpuIsASlowPeer) {
  const EndedRun run = RunWith("kind: STRAGGLER device: \"server1/gpu3\" speed: 0.25 at: \"0s\"");
  ExpectOnly(run, "slow_peer");
  EXPECT_EQ(run.collectives.Integer(1, "held_up_by_source"), 11);
  EXPECT_EQ(run.collectives.Integer(1, "held_up_by_destination"), 11);
}

// It stands still for 400 us.
TEST_F(AddedTimeTest, AGpuThatStandsStillIsASlowPeer) {
  const EndedRun run =
      RunWith("kind: STRAGGLER device: \"server1/gpu3\" speed: 0 at: \"100us\" until: \"500us\"");
  ExpectOnly(run, "slow_peer", 1);
  EXPECT_NEAR(static_cast<double>(Part(run, "slow_peer", 1)), 400.0 * kPsPerUs, 40.0 * kPsPerUs);
}

// Ranks that others kept from computing begin late, and all wait for them.
TEST_F(AddedTimeTest, ASlowGpusComputationMakesItsPeersWait) {
  const EndedRun run = RunText(
      RailOptimized(2) + Program("ALL_REDUCE", "1MiB", "repeat: 2 compute_before: \"1ms\"") +
      "faults { name: \"f\" kind: STRAGGLER device: \"server1/gpu3\" speed: 0.5 "
      "at: \"1200us\" until: \"1600us\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  // The computation before the second collective, from about 1.1 ms on, does 200 us of its work in
  // these 400. Without that, too, ranks begin some tens of microseconds after the first.
  EXPECT_NEAR(static_cast<double>(run.collectives.Integer(1, "added_slow_peer_ps")),
              200.0 * kPsPerUs, 50.0 * kPsPerUs);
  EXPECT_EQ(run.collectives.Integer(1, "held_up_by_source"), 11);
}

// A spine is lost while the GPUs compute: no packet is, and the other one carries all.
TEST_F(AddedTimeTest, OneSpineForTwoIsRerouting) {
  const EndedRun run = RunText(
      "fabric { leaf_spine { servers { count: 2 } nics_per_leaf: 8 spines: 2 "
      "leaf_spine { rate: \"400Gbps\" } } }\n" +
      Program("ALL_REDUCE", "16MiB", "repeat: 3 compute_before: \"10ms\"") +
      "routing { detection_delay: \"10us\" convergence_delay: \"20us\" }\n"
      "faults { name: \"f\" kind: LINK_DOWN link: \"leaf0--spine0\" at: \"15ms\" }\n");
  EXPECT_TRUE(run.Drops().empty());
  ExpectOnly(run, "rerouting", 3);
  EXPECT_EQ(run.Integer("faults.0.added_ps.rerouting"), Part(run, "rerouting", 3));
}

// Payload is counted once, not per link: of one data packet lost alone, what go-back-N repeats.
TEST_F(AddedTimeTest, RetransmittedBytesAreTheFaultsOwn) {
  const EndedRun run = RunWith(
      "kind: LOSS link: \"server1/nic3--leaf3\" direction: FORWARD at: \"300us\" "
      "loss { packets { kind: DATA number: 40 } }");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("faults.0.retransmitted_bytes"),
            4096 * run.Integer("transport.retransmitted_packets"));
  // On the way to the leaf and from there.
  EXPECT_EQ(run.OfTier("NIC_LEAF", "retransmitted_bytes"),
            2 * run.Integer("faults.0.retransmitted_bytes"));
}

// The network has no pauses. It drops packets in congestion long after the fault's losses are
// repaired.
TEST_F(AddedTimeTest, RetransmissionsAfterCongestionAreNoFaults) {
  const auto run = [this](const std::string& buffer) {
    return RunText(
        RailOptimized(4) +
            "workload { program { collectives { kind: ALL_TO_ALL bytes: \"32MiB\" repeat: "
            "6 } } }\nnccl { IB_TIMEOUT: 10 }\nnetwork { network_flow_control: NONE }\n"
            "switch { buffer: \"" +
            buffer +
            "\" }\nfaults { name: \"f\" kind: LOSS link: \"server1/nic3--leaf3\" loss { packets "
            "{ kind: DATA number: 1 count: 1 } } at: \"10us\" until: \"300us\" }\n",
        {"--no-baseline"});
  };
  const EndedRun calm = run("8MiB");
  const EndedRun congested = run("4MiB");
  ASSERT_EQ(calm.exit.status, 0) << calm.exit.errors;
  ASSERT_EQ(congested.exit.status, 0) << congested.exit.errors;
  EXPECT_EQ(calm.Drops()["BUFFER_FULL"], 0);
  EXPECT_GT(congested.Drops()["BUFFER_FULL"], 0);
  EXPECT_EQ(congested.Integer("faults.0.retransmitted_bytes"),
            calm.Integer("faults.0.retransmitted_bytes"));
}

// Full bandwidth is back with the first collective after the last that was hit or late.
TEST_F(AddedTimeTest, FullBandwidthIsBackAfterTheLastSlowCollective) {
  const EndedRun run = RunText(
      RailOptimized(2) + Program("ALL_REDUCE", "16MiB", "repeat: 4 compute_before: \"1ms\"") +
      "nccl { IB_TIMEOUT: 10 }\nfaults { name: \"f\" kind: LINK_DOWN unnoticed: true "
      "link: \"server1/nic3--leaf3\" at: \"1050us\" until: \"1150us\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.collectives.Real(0, "stretch"), 2);
  int64_t last_slow_end_ps = 0;
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    // The fault-free run's ranks all begin at once.
    const double took_ps = static_cast<double>(run.collectives.Integer(row, "end_ps") -
                                               run.collectives.Integer(row, "last_start_ps"));
    const int64_t usual_ps = run.collectives.Integer(row, "baseline_duration_ps");
    if (took_ps * 0.99 <= static_cast<double>(usual_ps)) continue;
    last_slow_end_ps = run.collectives.Integer(row, "end_ps");
  }
  ASSERT_LT(last_slow_end_ps, run.collectives.Integer(3, "start_ps"));
  EXPECT_EQ(run.Integer("faults.0.time_to_full_busbw_ps"), last_slow_end_ps - 1050 * kPsPerUs);
}

// Episodes that are replayed while a fault holds tell as much as simulated ones.
TEST_F(AddedTimeTest, ReplayedCollectivesHaveTheSplitOfSimulatedOnes) {
  const std::string text =
      RailOptimized(2) + Program("ALL_REDUCE", "4MiB", "repeat: 12 compute_before: \"1ms\"") +
      "faults { name: \"f\" kind: STRAGGLER device: \"server1/gpu3\" speed: 0.5 at: \"2500us\" }\n";
  const EndedRun run = RunText(text);
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.Integer("collectives.replayed"), 0);
  const EndedRun simulated = RunText(text, {"--no-replay-cache"});
  EXPECT_EQ(run.Text("fingerprint"), simulated.Text("fingerprint"));
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    for (const std::string part : kParts) {
      EXPECT_EQ(run.collectives.Text(row, "added_" + part + "_ps"),
                simulated.collectives.Text(row, "added_" + part + "_ps"))
          << row << ' ' << part;
    }
  }
  EXPECT_EQ(run.Query("SELECT * FROM waits").rows, simulated.Query("SELECT * FROM waits").rows);
}

}  // namespace
}  // namespace railyard::testing
