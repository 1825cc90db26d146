// SPDX-License-Identifier: GPL-2.0-only
// NICs of one fabric that differ: in their rates, their time-outs, their windows and controls.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

constexpr int64_t kPsPerUs = 1'000'000;

constexpr int64_t TimeoutPs(uint32_t ib_timeout) { return int64_t{4'096'000} << ib_timeout; }

// Four servers of one GPU and one NIC on one switch; ranks of job "a" are on the first two, those
// of "b" on the others, and each sends 64 MiB to the other.
constexpr const char* kTwoPairs =
    "fabric { leaf_spine { servers { count: 4 gpus: 1 nics: 1 } nics_per_leaf: 4 spines: 1 } }\n"
    "jobs { name: \"a\" workload { program { collectives { kind: SEND_RECV bytes: \"64MiB\" } } } "
    "placement { gpus: [\"server0/gpu0\", \"server1/gpu0\"] } }\n"
    "jobs { name: \"b\" workload { program { collectives { kind: SEND_RECV bytes: \"64MiB\" } } } "
    "placement { gpus: [\"server2/gpu0\", \"server3/gpu0\"] } }\n";

class NicsTest : public ProgramTest {
 protected:
  static std::vector<double> SortedDurationsPs(const EndedRun& run) {
    std::vector<double> durations_ps;
    for (size_t row = 0; row < run.collectives.size(); ++row) {
      durations_ps.push_back(static_cast<double>(run.collectives.Integer(row, "duration_ps")));
    }
    std::sort(durations_ps.begin(), durations_ps.end());
    return durations_ps;
  }
  // The run with the cache, without, and with every hit simulated as well; the first.
  EndedRun RunInAllWays(const std::string& text) {
    EndedRun cached = RunText(text, {"--no-baseline"});
    EXPECT_EQ(cached.exit.status, 0) << cached.exit.errors;
    const EndedRun simulated = RunText(text, {"--no-baseline", "--no-replay-cache"});
    EXPECT_EQ(simulated.exit.status, 0) << simulated.exit.errors;
    const EndedRun verified = RunText(text, {"--no-baseline", "--verify-replay-cache"});
    EXPECT_EQ(verified.exit.status, 0) << verified.exit.errors;
    if (!cached.has_result() || !simulated.has_result() || !verified.has_result()) return cached;
    EXPECT_EQ(cached.Text("fingerprint"), simulated.Text("fingerprint"));
    EXPECT_EQ(cached.Text("fingerprint"), verified.Text("fingerprint"));
    EXPECT_GT(cached.Integer("collectives.replayed"), 0);
    return cached;
  }
};

// 64 MiB in packets of 4096 bytes with 82 of headers; first packets' RETH and latencies are less
// than a hundredth of it.
TEST_F(NicsTest, ASendOverANicOfHalfTheRateTakesTwiceAsLong) {
  const double wire_bits = 64.0 * (1 << 20) * 8 * (4096 + 82) / 4096;
  const std::string text = std::string(kTwoPairs) + kFreeGpu;
  const EndedRun alike = RunText(text);
  ASSERT_EQ(alike.exit.status, 0) << alike.exit.errors;
  for (const double duration_ps : SortedDurationsPs(alike)) {
    EXPECT_NEAR(duration_ps / (wire_bits / 400e9 * 1e12), 1, 0.02);
  }
  // At either end: the NIC of the one sends, and takes in, at half the rate.
  const EndedRun mixed = RunText(
      text, {"--set", "nics[0].device=[\"server2/nic0\"]", "--set", "nics[0].rate=200Gbps"});
  ASSERT_EQ(mixed.exit.status, 0) << mixed.exit.errors;
  const std::vector<double> durations_ps = SortedDurationsPs(mixed);
  ASSERT_EQ(durations_ps.size(), 2u);
  EXPECT_NEAR(durations_ps[0] / (wire_bits / 400e9 * 1e12), 1, 0.02);
  EXPECT_NEAR(durations_ps[1] / (wire_bits / 200e9 * 1e12), 1, 0.02);
}

// Both jobs lose a cable at the same instant, in the middle of their one collective: each is given
// up when the retries of its own NICs are used up. The timer was started at the earliest by the
// last ACK before, at the latest by the first packet sent after: within a window on the wire.
TEST_F(NicsTest, ACutCableIsGivenUpByTheTimeOutOfItsNic) {
  const int64_t cut_ps = 300 * kPsPerUs;
  const std::string text = std::string(kTwoPairs) + kFreeGpu +
                           "nccl { IB_TIMEOUT: 18 IB_RETRY_CNT: 3 }\n"
                           "nics { device: [\"server0/nic0\", \"server1/nic0\"] IB_TIMEOUT: 14 "
                           "IB_RETRY_CNT: 7 }\n" +
                           LinkDown("server1/nic0--leaf0", "300us") +
                           LinkDown("server3/nic0--leaf0", "300us");
  const EndedRun run = RunText(text, {"--no-baseline"});
  EXPECT_EQ(run.exit.status, 3) << run.exit.errors;
  ASSERT_TRUE(run.has_result());
  EXPECT_NEAR(static_cast<double>(run.Integer("jobs.0.first_error_ps")),
              static_cast<double>(cut_ps + 8 * TimeoutPs(14)), 50.0 * kPsPerUs);
  EXPECT_NEAR(static_cast<double>(run.Integer("jobs.1.first_error_ps")),
              static_cast<double>(cut_ps + 4 * TimeoutPs(18)), 50.0 * kPsPerUs);
}

// A job on each rail, all alike but for their NICs: what is known of one rail is replayed on the
// rails that are alike, and on no other.
TEST_F(NicsTest, RailsThatDifferDoNotShareEpisodes) {
  std::string text = RailOptimized(2);
  for (int rail = 0; rail < 8; ++rail) {
    text += fmt::format(
        "jobs {{ name: \"rail{0}\" workload {{ program {{ collectives {{ kind: ALL_REDUCE bytes: "
        "\"4MiB\" repeat: 8 }} }} algorithm: RING protocol: SIMPLE }} placement {{ gpus: "
        "\"*/gpu{0}\" }} }}\n",
        rail);
  }
  text +=
      "nics { device: \"*/nic2\" rate: \"200Gbps\" }\n"
      "nics { device: \"*/nic3\" nic { window: \"16KiB\" ack_every_packets: 1 } }\n"
      "nics { device: \"server1/nic4\" nic { congestion_control { dcqcn {} } burst_packets: 4 } }\n"
      "nics { device: \"server0/nic5\" nic { ack_every_packets: 64 } IB_TIMEOUT: 14 }\n";
  const EndedRun run = RunInAllWays(text);
  ASSERT_TRUE(run.has_result());
  std::vector<double> mean_ps(8);
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    const std::string communicator = run.collectives.Text(row, "communicator");
    const auto rail = static_cast<size_t>(communicator.at(4) - '0');
    mean_ps.at(rail) += static_cast<double>(run.collectives.Integer(row, "duration_ps")) / 8;
  }
  EXPECT_GT(mean_ps[2], 1.2 * mean_ps[0]);
  EXPECT_GT(mean_ps[3], 1.2 * mean_ps[0]);  // a window below what the round trip holds
  EXPECT_EQ(mean_ps[1], mean_ps[0]);
}

// A rail among whole collectives, where the state is the whole network's.
TEST_F(NicsTest, TheReplayCacheChangesNothingWhereNicsDiffer) {
  RunInAllWays(RailOptimized(2) +
               Program("ALL_REDUCE", "8MiB", "repeat: 12 compute_before: \"5ms\"") +
               "nics { device: \"server1/nic3\" rate: \"100Gbps\" nic { window: \"64KiB\" } }\n"
               "nics { device: \"*/nic5\" nic { congestion_control { dcqcn {} } } }\n");
}

// The state of one of the controls is in no snapshot, and the run says so.
TEST_F(NicsTest, AControlOfSomeNicsIsNamedAsWhatKeepsARunFromTheCache) {
  const EndedRun run =
      RunText(RailOptimized(2) + Program("ALL_REDUCE", "4MiB", "repeat: 3") +
              "nics { device: \"*/nic5\" nic { congestion_control { swift {} } } }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_THAT(
      ReadText(run.directory + "/summary.json"),
      ::testing::HasSubstr(
          R"("owner": "queue pairs with railyard::NoCongestionControl and railyard::Swift")"));
}

}  // namespace
}  // namespace railyard::testing
