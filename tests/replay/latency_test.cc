// SPDX-License-Identifier: GPL-2.0-only
// Compares the time of small messages with NCCL's tuner (src/graph/tuning.cc, Ring with Simple on
// Hopper), which states the cost of a kernel's start and of a step. A collective of a few bytes
// takes
//
//   T = baseLat + NVLink steps x 3.4 us + network steps x 14 us
//
// over the longest path that a chunk takes. NCCL's own formula counts 2(N-1) network steps of an
// AllReduce on N servers, but a ring crosses servers more often: a chunk passes 2(n-1) edges of a
// ring of n, N of which leave a server, n/N apart, so up to ceil(2(n-1) N/n) are network steps.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

constexpr double kBasePs = 8.4e6;
constexpr double kNvlinkStepPs = 3.4e6;
constexpr double kNetworkStepPs = 14e6;
constexpr uint32_t kGpusPerServer = 8;
// A few bytes on the wires, and the default fabric's latency, which is not exactly 1.5 us.
constexpr double kExact = 0.001;

double SumOfSteps(uint32_t nvlink_steps, uint32_t network_steps) {
  return kBasePs + nvlink_steps * kNvlinkStepPs + network_steps * kNetworkStepPs;
}

class LatencyTest : public ProgramTest {
 protected:
  double DurationPs(uint32_t servers, const std::string& program) {
    const EndedRun run = RunText(RailOptimized(servers) + program);
    EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
    return run.collectives.Real(0, "duration_ps");
  }
};

TEST_F(LatencyTest, FourBytesInOneServerTakeTheSumOfTheSteps) {
  const struct {
    const char* kind;
    const char* bytes;
    uint32_t steps;
  } cases[] = {{"ALL_REDUCE", "4", 14},
               {"ALL_GATHER", "32", 7},
               {"REDUCE_SCATTER", "32", 7},
               {"BROADCAST", "4", 7},
               {"REDUCE", "4", 7}};
  for (const auto& c : cases) {
    const double expected_ps = SumOfSteps(c.steps, 0);
    EXPECT_NEAR(DurationPs(1, Program(c.kind, c.bytes)), expected_ps, kExact * expected_ps)
        << c.kind;
  }
}

// One chunk goes down a chain: nothing waits for slots or grants, and those are there before the
// chunk. A chain from the GPU that leaves the server begins with a network step.
TEST_F(LatencyTest, ABroadcastDownAChainTakesTheSumOfItsStepsWhereverItBegins) {
  bool has_begun_with_network = false;
  for (uint32_t root = 0; root < kGpusPerServer; ++root) {
    const EndedRun run =
        RunText(RailOptimized(2) + Program("BROADCAST", "4", fmt::format("root: {}", root)));
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    ASSERT_EQ(run.pairs.size(), 15u);
    uint32_t network_steps = 0;
    for (size_t row = 0; row < run.pairs.size(); ++row) {
      const auto source = static_cast<uint32_t>(run.pairs.Integer(row, "source_gpu"));
      const auto target = static_cast<uint32_t>(run.pairs.Integer(row, "destination_gpu"));
      if (source / kGpusPerServer == target / kGpusPerServer) continue;
      ++network_steps;
      if (source == root) has_begun_with_network = true;
    }
    const double expected_ps = SumOfSteps(15 - network_steps, network_steps);
    EXPECT_NEAR(run.collectives.Real(0, "duration_ps"), expected_ps, kExact * expected_ps)
        << "root " << root;
  }
  EXPECT_TRUE(has_begun_with_network);
}

// All chunks go round at once here. The four slices that may be in flight on a connection come back
// to the sender a little later than those of NVLink would, which adds to the sum.
TEST_F(LatencyTest, FourBytesOverServersTakeTheSumOfTheLongestPathsSteps) {
  for (const uint32_t servers : {2u, 4u}) {
    const uint32_t ranks = servers * kGpusPerServer;
    const uint32_t steps = 2 * (ranks - 1);
    const uint32_t network_steps = (steps + kGpusPerServer - 1) / kGpusPerServer;
    const double expected_ps = SumOfSteps(steps - network_steps, network_steps);
    const double duration_ps = DurationPs(servers, Program("ALL_REDUCE", "4"));
    EXPECT_GE(duration_ps, (1 - kExact) * expected_ps);
    EXPECT_LE(duration_ps, 1.05 * expected_ps);
  }
}

// A chunk goes down a chain of eight CTAs, one after the other. Their 512 threads take 4 KiB in one
// iteration with LL, and 38,400 B with LL128's 640; a few bytes more are a second iteration.
TEST_F(LatencyTest, BytesBeyondAnIterationTakeAnother) {
  const struct {
    const char* protocol;
    uint32_t iteration_bytes;
  } cases[] = {{"LL", 4096}, {"LL128", 38400}};
  for (const auto& c : cases) {
    const auto duration_ps = [&](uint32_t bytes) {
      return DurationPs(
          1, fmt::format("workload {{ algorithm: RING protocol: {} program {{ collectives {{ kind: "
                         "BROADCAST bytes: \"{}\" }} }} }}\n"
                         "nccl {{ MAX_NCHANNELS: 1 }}\ngpu {{ channel_rate: \"8Gbps\" }}\n",
                         c.protocol, bytes));
    };
    const double iteration_ps = c.iteration_bytes * 1e3;  // at 1 GB/s
    const double one_ps = duration_ps(c.iteration_bytes);
    EXPECT_NEAR(one_ps - duration_ps(c.iteration_bytes / 2), 8 * iteration_ps / 2,
                0.1 * iteration_ps)
        << c.protocol;
    EXPECT_NEAR(duration_ps(c.iteration_bytes + 120) - one_ps, 8 * iteration_ps, 0.1 * iteration_ps)
        << c.protocol;
    EXPECT_NEAR(duration_ps(2 * c.iteration_bytes) - one_ps, 8 * iteration_ps, 0.1 * iteration_ps)
        << c.protocol;
  }
}

// A proxy is busy 1 us with each message it posts and half of that with each that arrives: for
// messages of 128 KiB, 2.6 us on the wire, the NIC is the bottleneck, where the CTAs do not hold it
// up. On 4 servers every rank sends 24 blocks of 2 MiB to other servers; a NIC's wire also carries
// ACKs (86 B for 4 packets), clear-to-sends (162 B) and their ACKs.
constexpr double kMessages = 24 * 16;

TEST_F(LatencyTest, AnAllToAllIsBoundByTheNics) {
  constexpr double kWireBytes =
      kMessages * (32 * (4096 + 82) + 16 + 8 * 86 + 162 + 86);  // 32 packets each
  constexpr double kWirePs = kWireBytes * 8 / 400e9 * 1e12;
  const double expected_ps = kBasePs + kNetworkStepPs + kWirePs;
  EXPECT_NEAR(DurationPs(4, Program("ALL_TO_ALL", "64MiB") + "gpu { channel_rate: \"0Gbps\" }\n"),
              expected_ps, 0.02 * expected_ps);
}

std::string FourServers(const std::string& cpu) {
  return "fabric { rail_optimized { mixed_servers { count: 4 cpu: \"" + cpu + "\" } } }\n";
}

// With AMD's CPUs 2 us and 1 us, longer than a message is on the wire. A message still waits
// 14 us in all.
TEST_F(LatencyTest, AnAllToAllWithAmdsCpusIsBoundByTheirProxies) {
  const std::string program = Program("ALL_TO_ALL", "64MiB") + "gpu { channel_rate: \"0Gbps\" }\n";
  const double expected_ps = kBasePs + kNetworkStepPs + kMessages * (2e6 + 1e6);
  const double amd_ps = RunText(FourServers("AMD") + program).collectives.Real(0, "duration_ps");
  EXPECT_NEAR(amd_ps, expected_ps, 0.02 * expected_ps);
  const double intel_ps =
      RunText(FourServers("INTEL") + program).collectives.Real(0, "duration_ps");
  EXPECT_LT(intel_ps, 0.95 * amd_ps);
}

// Down a chain over four servers nothing waits for a proxy that is busy.
TEST_F(LatencyTest, ALoneMessageTakesAsLongWithAnyCpu) {
  const std::string program = Program("BROADCAST", "4");
  const double intel_ps =
      RunText(FourServers("INTEL") + program).collectives.Real(0, "duration_ps");
  const double amd_ps = RunText(FourServers("AMD") + program).collectives.Real(0, "duration_ps");
  EXPECT_NEAR(amd_ps, intel_ps, kExact * intel_ps);
}

TEST_F(LatencyTest, AnAllToAllWithSlowProxiesIsBoundByThem) {
  const double expected_ps = kBasePs + kNetworkStepPs + kMessages * (4e6 + 2e6);
  EXPECT_NEAR(DurationPs(4, Program("ALL_TO_ALL", "64MiB") +
                                "gpu { proxy_post_latency: \"4us\" channel_rate: \"0Gbps\" }\n"),
              expected_ps, 0.02 * expected_ps);
}

}  // namespace
}  // namespace railyard::testing
