// SPDX-License-Identifier: GPL-2.0-only
// Compares the traffic metrics of runs with closed forms.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

class TrafficTest : public ProgramTest {
 protected:
  static std::string Plan(const std::string& expert, const std::string& routing, int iterations,
                          int sequence = 128) {
    return fmt::format(
        "fabric {{ rail_optimized {{ servers: 1 }} }}\n"
        "workload {{ inline_plan {{ model {{ layers: 2 hidden: 256 heads: 4 "
        "vocabulary: 512 experts {{ count: 8 per_token: 2 feed_forward: 256 }} }} parallelism {{ "
        "data: 8 expert: {} }} {} compute {{ given {{ attention: \"9us\" feed_forward: \"9us\" "
        "embedding: \"1us\" "
        "output_layer: \"1us\" backward_ratio: 2 optimizer: \"1us\" }} }} training {{ sequence: {} "
        "micro_batch: 1 micro_batches: 1 iterations: {} }} }} }}\n",
        expert, routing, sequence, iterations);
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

// Switches with little room pause their neighbours. The utilization that HPCC computes from a
// port's telemetry is about 1 then, or a little more, so that the job takes about as long as
// without control, even if the window grows by only a byte in a round trip.
TEST_F(TrafficTest, PausesDoNotCloseHpccsWindows) {
  const std::string text =
      "fabric { leaf_spine { servers { platform: \"single-gpu\" count: 12 } nics_per_leaf: 4 "
      "spines: "
      "1 } }\nswitch { buffer: \"64KiB\" }\n" +
      Program("ALL_TO_ALL", "6MiB");
  const EndedRun free = RunText(text + "nic { congestion_control { none {} } }\n");
  const EndedRun controlled =
      RunText(text + "nic { congestion_control { hpcc { additive_increase: \"1\" } } }\n");
  ASSERT_EQ(controlled.exit.status, 0) << controlled.exit.errors;
  EXPECT_GT(controlled.Integer("transport.pfc_pause_ps"), 0);
  EXPECT_LT(controlled.Integer("simulated_time_ps"), 5 * free.Integer("simulated_time_ps"));
}

// A ring in one direction: every GPU sends to one other, so log2 n bits of log2 n (n - 1).
TEST_F(TrafficTest, ARingHasLog2OfItsRanks) {
  const EndedRun run = RunText(RailOptimized(1) + Program("SEND_RECV", "1MiB"));
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_NEAR(run.Real("traffic.pair_entropy_bits"), 3, 1e-9);
  EXPECT_NEAR(run.Real("traffic.pair_entropy_share"), 3 / std::log2(56.0), 1e-9);
}

// Computation of known length between collectives of equal length: the period is their sum, the
// duty the collective's share. Trees of 4 MiB take as long from the first on.
TEST_F(TrafficTest, PeriodAndDutyAreThoseOfComputationAndCommunication) {
  const auto six = [](const std::string& compute) {
    return RailOptimized(2) +
           "workload { algorithm: TREE protocol: SIMPLE program { collectives { kind: ALL_REDUCE "
           "bytes: \"4MiB\" repeat: 6 " +
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

// Tokens of ranks alike, routed to 8 experts on 8 ranks by Zipf's law that becomes even in two
// iterations. In iteration i the r-th most popular expert has the share
// (1 - i/2) / (r H_8) + i/2 / 8, H_8 = 761/280.
class RoutedIterationsTest : public TrafficTest {
 protected:
  static constexpr int kRanks = 8;
  static std::vector<double> SharesIn(int iteration) {
    std::vector<double> shares;
    for (int r = 1; r <= kRanks; ++r) {
      const double even = std::min(1.0, iteration / 2.0);
      shares.push_back((1 - even) * 280 / 761 / r + even / kRanks);
    }
    return shares;
  }
  // A rank gets (n - 1) share of what it would get in the mean ((n - 1) / n): n times its share.
  static double ImbalanceOf(const std::vector<double>& shares) { return kRanks * shares[0]; }
  // There and back a pair exchanges in proportion to both shares; the sum over pairs is 2 (n - 1).
  static double DriftOf(const std::vector<double>& before, const std::vector<double>& after) {
    double difference = 0;
    for (size_t a = 0; a < kRanks; ++a) {
      for (size_t b = 0; b < kRanks; ++b) {
        if (a != b) difference += std::abs(before[a] + before[b] - after[a] - after[b]);
      }
    }
    return difference / (2 * (kRanks - 1)) / 2;
  }
};

TEST_F(RoutedIterationsTest, DriftAndImbalanceAreThoseOfTheGate) {
  // 2,048 choices of each of 7 other ranks: a mean column has 1,792, and the largest of 16 rows and
  // columns is within three standard deviations (its square root) of what the gate says.
  const double relative = 3 / std::sqrt(1792.0);
  const EndedRun run = RunText(
      Plan("8", "expert_routing { gate: ZIPF drift_iterations: 2 }", 3, 1024), {"--no-estimate"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("traffic.iterations"), 3);
  const Table iterations = run.Query("SELECT * FROM iterations");
  ASSERT_EQ(iterations.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    const auto row = static_cast<size_t>(i);
    EXPECT_EQ(iterations.Integer(row, "iteration"), i + 1);
    EXPECT_NEAR(iterations.Real(row, "all_to_all_imbalance"), ImbalanceOf(SharesIn(i)),
                relative * ImbalanceOf(SharesIn(i)))
        << i;
    if (i == 0) continue;
    EXPECT_NEAR(iterations.Real(row, "all_to_all_drift"), DriftOf(SharesIn(i - 1), SharesIn(i)),
                0.01)
        << i;
    EXPECT_LT(iterations.Real(row, "drift"), iterations.Real(row, "all_to_all_drift"));
  }
  EXPECT_EQ(iterations.Text(0, "drift"), "");
  EXPECT_EQ(iterations.Text(0, "all_to_all_drift"), "");
  EXPECT_NEAR(run.Real("traffic.all_to_all_imbalance.max"), ImbalanceOf(SharesIn(0)),
              relative * ImbalanceOf(SharesIn(0)));
  EXPECT_THAT(run.exit.output, HasSubstr("The busiest rank of an AllToAll has"));
}

// Both layers exchange, each there and back, forward and backward: 2 x 2 times the 128 x 2 choices
// of each rank, of 256 elements of 2 bytes, that are not for itself; with no more tokens dropped
// than none, what does not leave the rank is what is missing.
TEST_F(RoutedIterationsTest, MatricesAreByIterationAndLayerAndSumUpToPairs) {
  const std::string plan = Plan("8", "expert_routing { gate: ZIPF drift_iterations: 2 }", 3);
  const EndedRun run = RunText(plan, {"--no-estimate"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const Table sums = run.Query(
      "SELECT COUNT(*) AS different FROM (SELECT source_gpu AS s, destination_gpu AS d, "
      "SUM(payload_bytes) AS b FROM iteration_pairs GROUP BY 1, 2) JOIN pairs ON s = source_gpu "
      "AND d = destination_gpu AND b = payload_bytes");
  EXPECT_EQ(sums.Integer(0, "different"), static_cast<int64_t>(run.pairs.size()));
  const Table layers = run.Query(
      "SELECT iteration, layer, SUM(payload_bytes) AS bytes FROM iteration_pairs WHERE kind = "
      "'AllToAllv' GROUP BY 1, 2");
  ASSERT_EQ(layers.size(), 3u * 2);
  const int64_t all = int64_t{kRanks} * 128 * 2 * 256 * 2 * 4;
  for (size_t row = 0; row < layers.size(); ++row) {
    EXPECT_EQ(layers.Integer(row, "layer"), static_cast<int64_t>(row % 2));
    // Each expert's rank keeps its share of its own tokens; the shares sum to 1 over the ranks.
    EXPECT_NEAR(layers.Real(row, "bytes"), static_cast<double>(all) * (kRanks - 1) / kRanks,
                0.01 * static_cast<double>(all));
  }
  EXPECT_EQ(run.Query("SELECT * FROM iteration_pairs WHERE kind <> 'AllToAllv' AND layer IS NOT "
                      "NULL")
                .size(),
            0u);
  // Collectives from the replay cache count as simulated ones do.
  const EndedRun uncached = RunText(plan, {"--no-estimate", "--no-replay-cache"});
  EXPECT_EQ(ReadText(uncached.directory + "/iteration_pairs.csv"),
            ReadText(run.directory + "/iteration_pairs.csv"));
}

// Eight queries of 128 tokens that answer with one, one on each rank: of three layers the second
// and third dispatch and combine 128 x 2 choices of each rank.
TEST_F(RoutedIterationsTest, MatricesOfAnInferenceAreByLayer) {
  const EndedRun run = RunText(
      "fabric { rail_optimized { servers: 1 } }\n"
      "workload { inline_plan { model { layers: 3 hidden: 256 heads: 4 vocabulary: 512 "
      "feed_forward: 512 experts { count: 8 per_token: 2 feed_forward: 256 dense_layers: 1 } } "
      "parallelism { data: 8 expert: 8 } compute { accelerator: \"h100-sxm\" utilisation: 0.4 "
      "memory_utilisation: 0.8 part_overhead: \"1us\" } inference { prompt_tokens: 128 "
      "output_tokens: 1 queries: 8 batch: 1 } } }\n",
      {"--no-estimate"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const Table layers = run.Query(
      "SELECT layer, SUM(payload_bytes) AS bytes FROM iteration_pairs WHERE kind = 'AllToAllv' "
      "GROUP BY 1");
  ASSERT_EQ(layers.size(), 2u);
  const double all = kRanks * 128.0 * 2 * 256 * 2 * 2;
  for (size_t row = 0; row < layers.size(); ++row) {
    EXPECT_EQ(layers.Integer(row, "layer"), static_cast<int64_t>(row) + 1);
    EXPECT_NEAR(layers.Real(row, "bytes"), all * (kRanks - 1) / kRanks, 0.05 * all);
  }
}

// The model has one feed-forward block in place of its experts.
TEST_F(RoutedIterationsTest, DenseModelsDoNotDrift) {
  const EndedRun dense = RunText(Plan("1", "", 3), {"--no-estimate"});
  ASSERT_EQ(dense.exit.status, 0) << dense.exit.errors;
  EXPECT_EQ(dense.Integer("traffic.iterations"), 3);
  EXPECT_EQ(dense.Real("traffic.drift.max"), 0);
  EXPECT_TRUE(dense.At("traffic.all_to_all_drift.max").IsNull());
  EXPECT_TRUE(dense.At("traffic.all_to_all_imbalance.max").IsNull());
}

TEST_F(TrafficTest, EqualAllToAllsDoNotDrift) {
  const EndedRun run = RunText(
      RailOptimized(1) +
      "workload { program { ranks: 8 repeat: 3 collectives { kind: ALL_TO_ALL bytes: \"1MiB\" } } "
      "}\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Real("traffic.all_to_all_drift.max"), 0);
  EXPECT_EQ(run.Query("SELECT DISTINCT kind FROM collectives").Text(0, "kind"), "AllToAll");
}

// 56 pairs in 4,000 iterations are 224,000 rows, more than a result holds: every second iteration
// is there, and a note says so. Recorded from the cache, each is as the first.
TEST_F(TrafficTest, MatricesOfManyIterationsAreThinned) {
  const EndedRun run =
      RunText(RailOptimized(1) + Program("ALL_TO_ALL", "64KiB", "repeat: 4000"), {"--no-baseline"});
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("traffic.iterations"), 4000);
  EXPECT_EQ(run.Real("traffic.all_to_all_imbalance.max"), 1);
  const Table kept = run.Query(
      "SELECT COUNT(*) AS n, COUNT(DISTINCT iteration) AS iterations, MIN(iteration) AS first, "
      "MIN(iteration % 2) AS odd, MIN(payload_bytes) AS least, MAX(payload_bytes) AS most FROM "
      "iteration_pairs");
  EXPECT_EQ(kept.Integer(0, "n"), 56 * 2000);
  EXPECT_EQ(kept.Integer(0, "iterations"), 2000);
  EXPECT_EQ(kept.Integer(0, "first"), 1);
  EXPECT_EQ(kept.Integer(0, "odd"), 1);
  EXPECT_EQ(kept.Integer(0, "least"), 64 * 1024 / 8);
  EXPECT_EQ(kept.Integer(0, "most"), 64 * 1024 / 8);
  EXPECT_EQ(
      run.Query("SELECT * FROM notes WHERE note LIKE 'iteration_pairs has one iteration in 2, %'")
          .size(),
      1u);
}

// With one NVLink switch that sums (NVLS) and with rings, the matrix is the one that ran.
TEST_F(TrafficTest, MatricesAreOfTheAlgorithmThatRan) {
  for (const char* algorithm : {"RING", "NVLS"}) {
    const EndedRun run =
        RunText(RailOptimized(1) + Program("ALL_REDUCE", "8MiB", "repeat: 3") + "\n",
                {"--no-baseline", "--set", std::string("workload.algorithm=") + algorithm});
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    const Table total = run.Query("SELECT SUM(payload_bytes) AS bytes FROM iteration_pairs");
    EXPECT_EQ(total.Text(0, "bytes"),
              run.pairs.size() == 0 ? "" : std::to_string(run.pairs.Sum("payload_bytes")))
        << algorithm;
  }
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
