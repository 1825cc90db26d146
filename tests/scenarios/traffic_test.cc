// SPDX-License-Identifier: GPL-2.0-only
// What kind of traffic runs say they had, against closed forms.
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

class TrafficTest : public ProgramTest {
 protected:
  static std::string Plan(const std::string& expert, const std::string& routing, int iterations) {
    return fmt::format(
        "fabric {{ rail_optimized {{ servers: 1 }} }}\n"
        "workload {{ inline_plan {{ model {{ layers: 2 hidden: 256 heads: 4 "
        "vocabulary: 512 experts {{ count: 8 per_token: 2 feed_forward: 256 }} }} parallelism {{ "
        "data: 8 expert: {} }} {} compute {{ given {{ attention: \"9us\" feed_forward: \"9us\" "
        "embedding: \"1us\" "
        "output_layer: \"1us\" backward_ratio: 2 optimizer: \"1us\" }} }} training {{ sequence: "
        "128 "
        "micro_batch: 1 micro_batches: 1 iterations: {} }} }} }}\n",
        expert, routing, iterations);
  }
};

// n GPUs that send each other the same: log2 n (n - 1) bits, and as much on every link as it has
// flows. Over the NIC of a rail come those of all 8 GPUs to the rail's GPU of the other server
// (PXN).
TEST_F(TrafficTest, AnAllToAllHasAnEvenPairMatrix) {
  const EndedRun run = RunText(RailOptimized(2) + Program("ALL_TO_ALL", "16MiB"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_NEAR(run.Real("traffic.pair_entropy_bits"), std::log2(16.0 * 15), 1e-9);
  EXPECT_NEAR(run.Real("traffic.pair_entropy_share"), 1, 1e-9);
  EXPECT_EQ(run.Integer("traffic.message_bytes.count"), 16 * 15);
  EXPECT_EQ(run.Integer("traffic.message_bytes.min"), 1 << 20);
  EXPECT_EQ(run.Integer("traffic.message_bytes.max"), 1 << 20);
  const Table traffic = ReadCsv(run.directory + "/traffic.csv");
  EXPECT_GT(traffic.Sum("flows", "link", "server0/nic3>leaf3"), 0);
  EXPECT_EQ(traffic.Sum("flows", "link", "server0/nic3>leaf3") % 8, 0);
  for (size_t row = 0; row < traffic.size(); ++row) {
    EXPECT_NEAR(traffic.Real(row, "flow_entropy_bits"),
                traffic.Integer(row, "flows") == 0
                    ? 0
                    : std::log2(static_cast<double>(traffic.Integer(row, "flows"))),
                1e-9)
        << traffic.Text(row, "link");
  }
  EXPECT_THAT(run.exit.output, HasSubstr("7.91 bits of entropy, 100.0 % of an even one's"));
}

// A ring in one direction: every GPU sends to one other, so log2 n bits of log2 n (n - 1).
TEST_F(TrafficTest, ARingHasLog2OfItsRanks) {
  const EndedRun run = RunText(RailOptimized(1) + Program("SEND_RECV", "1MiB"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_NEAR(run.Real("traffic.pair_entropy_bits"), 3, 1e-9);
  EXPECT_NEAR(run.Real("traffic.pair_entropy_share"), 3 / std::log2(56.0), 1e-9);
}

// Computation of known length between collectives of equal length: the period is their sum, the
// duty the collective's share.
TEST_F(TrafficTest, PeriodAndDutyAreThoseOfComputationAndCommunication) {
  const auto six = [](const std::string& compute) {
    return RailOptimized(2) +
           "workload { program { collectives { kind: ALL_REDUCE bytes: \"4MiB\" repeat: 6 " +
           compute + "} } }\n";
  };
  const EndedRun run = RunText(six("compute_before: \"300us\" "));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const int64_t collective_ps = run.collectives.Integer(0, "duration_ps");
  ASSERT_EQ(run.collectives.Integer(5, "duration_ps"), collective_ps);
  const int64_t period_ps = 300'000'000 + collective_ps;
  EXPECT_EQ(run.Integer("traffic.link_period_ps.min"), period_ps);
  EXPECT_EQ(run.Integer("traffic.link_period_ps.max"), period_ps);
  const double duty = static_cast<double>(collective_ps) / static_cast<double>(period_ps);
  EXPECT_NEAR(run.Real("traffic.link_duty.mean"), duty, 1e-9);
  EXPECT_EQ(run.Integer("traffic.iterations"), 6);
  EXPECT_EQ(run.Real("traffic.drift.max"), 0);
  const Table traffic = ReadCsv(run.directory + "/traffic.csv");
  EXPECT_EQ(traffic.Sum("bursts", "link", "server0/nic3>leaf3"), 6);
  EXPECT_EQ(traffic.Sum("on_ps", "link", "server0/nic3>leaf3"), 6 * collective_ps);
  // Back to back they are one burst; what the cache knew counts as well.
  const EndedRun dense = RunText(six(""));
  EXPECT_TRUE(dense.At("traffic.link_period_ps.p50").IsNull());
  const EndedRun uncached = RunText(six("compute_before: \"300us\" "), {"--no-replay-cache"});
  EXPECT_EQ(ReadText(uncached.directory + "/traffic.csv"),
            ReadText(run.directory + "/traffic.csv"));
}

// Routed tokens go elsewhere in each iteration; gradients go where they always go.
TEST_F(TrafficTest, RoutedTokensDrift) {
  const EndedRun routed =
      RunText(Plan("8", "expert_routing { gate: ZIPF drift_iterations: 2 }", 3), {"--no-estimate"});
  ASSERT_EQ(routed.exit.status, 0) << routed.exit.errors;
  EXPECT_EQ(routed.Integer("traffic.iterations"), 3);
  EXPECT_GT(routed.Real("traffic.drift.mean"), 0);
  EXPECT_LT(routed.Real("traffic.drift.max"), 1);
  const Table drifts = routed.Query("SELECT * FROM iterations");
  ASSERT_EQ(drifts.size(), 2u);
  EXPECT_EQ(drifts.Integer(1, "iteration"), 2);
  EXPECT_EQ(drifts.Real(1, "drift") > 0, true);
  // The same model with its experts in one piece.
  const EndedRun dense = RunText(Plan("1", "", 3), {"--no-estimate"});
  ASSERT_EQ(dense.exit.status, 0) << dense.exit.errors;
  EXPECT_EQ(dense.Integer("traffic.iterations"), 3);
  EXPECT_EQ(dense.Real("traffic.drift.max"), 0);
}

// Gupta et al. (arXiv 2507.07117) on DeepSeek V3's inference: few pairs of GPUs talk, and little
// leaves a server. With rings it follows from their order: inside a server half descend and half
// ascend, so a GPU sends to two neighbours there and, over its rail, to one elsewhere; of a ring's
// 16 hops two leave a server.
TEST_F(TrafficTest, InferenceKeepsToFewPairsAndToServers) {
  const EndedRun run = RunFile(ShippedScenario("deepseek_v3_inference_600k"),
                               {"--no-baseline", "--no-estimate", "--set",
                                "workload.operations_max=200", "--set", "workload.algorithm=RING"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("pairs.active"), 16 * 3);
  EXPECT_EQ(run.Integer("pairs.possible"), 16 * 15);
  EXPECT_DOUBLE_EQ(run.Real("payload.left_server_share"), 2.0 / 16);
}

}  // namespace
}  // namespace railyard::testing
