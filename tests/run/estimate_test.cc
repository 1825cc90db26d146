// SPDX-License-Identifier: GPL-2.0-only
// Estimated beside simulated times: the second study's configurations.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

class EstimateTest : public ProgramTest {
 protected:
  static std::string Replaced(std::string text, const std::string& what, const std::string& by) {
    const size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return at == std::string::npos ? text : text.replace(at, what.size(), by);
  }

  // Three iterations of 5 micro-batches on two stages of two layers, without communication worth
  // the name. A layer takes 30 us forward and 60 us backward.
  EndedRun RunTwoStages(const std::string& output_layer) {
    scratch_.Write("plan.textproto",
                   "model { layers: 4 hidden: 64 heads: 4 feed_forward: 64 vocabulary: 64 }\n"
                   "parallelism { pipeline: 2 }\n"
                   "compute { given { attention: \"10us\" feed_forward: \"20us\" embedding: \"0s\" "
                   "output_layer: \"" +
                       output_layer +
                       "\" backward_ratio: 2 optimizer: \"7us\" } }\n"
                       "training { sequence: 16 micro_batch: 1 micro_batches: 5 iterations: 3 }\n");
    return RunText(RailOptimized(2) + "workload { plan: \"plan.textproto\" }\n");
  }

  // A shipped scenario and its plan, at that utilisation.
  void ExpectWithinTenPercent(const std::string& name, const std::string& plan,
                              const std::string& stated, const std::string& utilisation) {
    const std::string folder = std::string(RAILYARD_SOURCE_DIR) + "/workloads/examples/";
    scratch_.Write("plan.textproto",
                   Replaced(ReadText(folder + plan + ".textproto"), "utilisation: " + stated,
                            "utilisation: " + utilisation));
    const EndedRun run =
        RunText(Replaced(ReadText(ShippedScenario(name)),
                         "../../workloads/examples/" + plan + ".textproto", "plan.textproto"));
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_LE(std::abs(run.Real("estimate.difference")), 0.1) << name << " at " << utilisation;
    EXPECT_EQ(run.Integer("estimate.total_ps"),
              run.Integer("estimate.compute_ps") + run.Integer("estimate.tensor_ps") +
                  run.Integer("estimate.expert_ps") + run.Integer("estimate.wait_ps") +
                  run.Integer("estimate.pipeline_ps") + run.Integer("estimate.data_ps") +
                  run.Integer("estimate.bubble_ps"));
    EXPECT_NE(run.exit.output.find("\nEstimated "), std::string::npos) << run.exit.output;
  }
};

TEST_F(EstimateTest, TheStudysConfigurationsAreWithinTenPercent) {
  ExpectWithinTenPercent("study_gpt_1_5b_16_rtx3090", "gpt_1_5b_16", "0.3", "0.3");
  ExpectWithinTenPercent("study_gpt_3b_32_rtx3090", "gpt_3b_32", "0.3", "0.4");
  for (const char* const utilisation : {"0.3", "0.4"}) {
    ExpectWithinTenPercent("study_gpt_1_5b_4_v100", "gpt_1_5b_4", "0.4", utilisation);
    ExpectWithinTenPercent("study_gpt_3b_8_v100", "gpt_3b_8", "0.4", utilisation);
  }
}

// The closed form is the pipeline's: 5 micro-batches on 2 stages, 2 layers of 90 us each, both
// passes.
TEST_F(EstimateTest, ABubbleIsItsClosedForm) {
  const EndedRun run = RunTwoStages("0s");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("estimate.compute_ps"), int64_t{3} * (5 * 2 * 90 + 7) * 1'000'000);
  EXPECT_EQ(run.Integer("estimate.bubble_ps"), int64_t{3} * 2 * 90 * 1'000'000);
  EXPECT_EQ(run.Integer("estimate.data_ps"), 0);
  EXPECT_LE(std::abs(run.Real("estimate.difference")), 0.1);
}

// An output layer of 600 us, which the last stage alone has, adds a bubble: a micro-batch passes
// the first stage once more, 90 us forward and twice that backward, while the last one waits.
TEST_F(EstimateTest, ABubbleIsOfTheOtherStages) {
  const EndedRun run = RunTwoStages("600us");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("estimate.compute_ps"),
            int64_t{3} * (5 * (2 * 90 + 3 * 600) + 7) * 1'000'000);
  EXPECT_EQ(run.Integer("estimate.bubble_ps"), int64_t{3} * 2 * 90 * 1'000'000);
  EXPECT_LE(std::abs(run.Real("estimate.difference")), 0.05);
}

// Data groups of three: within a server for some ranks, over two servers for others, whose calls
// take 11 times as long. All were measured as the first, and the estimate was a quarter short.
TEST_F(EstimateTest, GroupsThatAreSpreadOtherwiseTakeTheirOwnTime) {
  scratch_.Write("plan.textproto",
                 "model { layers: 4 hidden: 2048 heads: 16 feed_forward: 8192 vocabulary: 8192 }\n"
                 "parallelism { tensor: 2 pipeline: 2 data: 3 }\n"
                 "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
                 "training { sequence: 512 micro_batch: 1 micro_batches: 2 }\n");
  const EndedRun run = RunText(RailOptimized(2) + "workload { plan: \"plan.textproto\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_NEAR(run.Real("estimate.data_ps") / run.Real("estimate.simulated.data_ps"), 1, 0.1)
      << run.exit.output;
}

// Given times, so that computation is known: every iteration's parts are all of its time.
TEST_F(EstimateTest, WhatWasSimulatedStandsBesideTheEstimate) {
  const EndedRun run = RunTwoStages("0s");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  const int64_t computed_ps = int64_t{5 * 2 * 90 + 7} * 1'000'000;
  const Table breakdown = ReadCsv(run.directory + "/breakdown.csv");
  ASSERT_EQ(breakdown.size(), 3u);
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(breakdown.Integer(row, "compute_ps"), computed_ps);
    EXPECT_GE(breakdown.Integer(row, "bubble_ps"), 2 * 90'000'000ll - 60'000'000);
    EXPECT_GT(breakdown.Integer(row, "pipeline_ps"), 0);
    EXPECT_EQ(breakdown.Integer(row, "total_ps"), breakdown.Integer(row, "compute_ps") +
                                                      breakdown.Integer(row, "pipeline_ps") +
                                                      breakdown.Integer(row, "bubble_ps"));
  }
  EXPECT_EQ(run.Integer("estimate.simulated.compute_ps"), 3 * computed_ps);
  EXPECT_EQ(run.Integer("estimate.simulated.total_ps"), breakdown.Sum("total_ps"));
  // One of the two ranks ends last, the other before it by a transfer and a pass at most.
  EXPECT_NEAR(run.Real("estimate.simulated.total_ps"), run.Real("simulated_time_ps"), 200e6);
  for (const char* const text : {"mean of 3 iterations", "\npart ", " simulated\n", "\nbubble ",
                                 "\nexposed communication "}) {
    EXPECT_NE(run.exit.output.find(text), std::string::npos) << text << "\n" << run.exit.output;
  }
}

// Tensor groups of a server compute alike, so that what is simulated of a call is what was
// measured.
TEST_F(EstimateTest, CallsTakeWhatWasMeasured) {
  scratch_.Write("plan.textproto",
                 "model { preset: \"gpt-2\" }\nparallelism { tensor: 4 data: 2 }\n"
                 "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
                 "training { sequence: 512 micro_batch: 2 micro_batches: 2 iterations: 2 }\n");
  const EndedRun run = RunText(RailOptimized(1) + "workload { plan: \"plan.textproto\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.Integer("estimate.simulated.compute_ps"), run.Integer("estimate.compute_ps"));
  EXPECT_NEAR(run.Real("estimate.simulated.tensor_ps") / run.Real("estimate.tensor_ps"), 1, 0.1);
  EXPECT_GT(run.Integer("estimate.simulated.overlap_ps"), 0);
}

// Favourite experts: ranks wait for those that compute for more tokens, and exchanges last as long
// as the rank that gets most. Without both the estimate was a quarter short and more.
TEST_F(EstimateTest, UnevenExpertsAreWaitedFor) {
  scratch_.Write("plan.textproto",
                 "model { layers: 4 hidden: 1024 heads: 16 vocabulary: 4096\n"
                 "  experts { count: 32 per_token: 4 feed_forward: 1024 } }\n"
                 "parallelism { data: 16 expert: 16 }\n"
                 "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
                 "training { sequence: 1024 micro_batch: 1 micro_batches: 2 }\n"
                 "expert_routing { gate: ZIPF zipf_exponent: 1 }\n");
  const EndedRun run = RunText(RailOptimized(2) + "workload { plan: \"plan.textproto\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GT(run.Integer("estimate.expert_ps"), 0);
  EXPECT_LE(std::abs(run.Real("estimate.difference")), 0.15) << run.exit.output;
}

// A call is measured without the scenario's restarts, for which one call has too few iterations.
TEST_F(EstimateTest, APlanThatMayRestartIsEstimated) {
  scratch_.Write("plan.textproto",
                 "model { layers: 2 hidden: 64 heads: 4 feed_forward: 64 vocabulary: 64 }\n"
                 "parallelism { tensor: 4 }\n"
                 "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
                 "training { sequence: 16 micro_batch: 1 micro_batches: 5 iterations: 4 }\n");
  const EndedRun run =
      RunText(RailOptimized(1) + "workload { plan: \"plan.textproto\" }\n" +
              "restart { checkpoint_every: 2 save: \"1ms\" load: \"1ms\" requeue: \"1ms\" }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(run.exit.output.find("Not estimated"), std::string::npos) << run.exit.output;
  EXPECT_FALSE(run.At("estimate").IsNull());
  EXPECT_EQ(run.Integer("estimate.simulated.iterations"), 4);
}

TEST_F(EstimateTest, OnlyWholePlansAreEstimated) {
  scratch_.Write("plan.textproto",
                 "model { layers: 2 hidden: 64 heads: 4 feed_forward: 64 vocabulary: 64 }\n"
                 "parallelism { tensor: 4 }\n"
                 "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
                 "training { sequence: 16 micro_batch: 1 micro_batches: 5 }\n");
  const auto has_estimate = [&](const std::string& workload,
                                const std::vector<std::string>& arguments) {
    const EndedRun run = RunText(RailOptimized(1) + "workload { " + workload + " }\n", arguments);
    EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
    return !run.At("estimate").IsNull();
  };
  const std::string plan = "plan: \"plan.textproto\"";
  EXPECT_TRUE(has_estimate(plan, {}));
  EXPECT_FALSE(has_estimate(plan, {"--no-estimate"}));
  EXPECT_FALSE(has_estimate(plan + " operations_max: 10", {}));
  EXPECT_FALSE(has_estimate("program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } }", {}));
}

TEST_F(EstimateTest, ACommandEstimatesOnAFabric) {
  scratch_.Write("plan.textproto",
                 "model { preset: \"bert-base\" }\n"
                 "parallelism { tensor: 4 data: 2 ranks: 8 }\n"
                 "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
                 "training { sequence: 128 micro_batch: 4 micro_batches: 2 }\n");
  const ProgramExit right =
      Railyard({"estimate", scratch_.Path("plan.textproto"), "--fabric", "dgx-h100"});
  EXPECT_EQ(right.status, 0) << right.errors;
  for (const char* const text : {"measured", "tensor       AllReduce           4", "together"}) {
    EXPECT_NE(right.output.find(text), std::string::npos) << text << "\n" << right.output;
  }
  const ProgramExit small = Railyard(
      {"estimate", scratch_.Path("plan.textproto"), "--fabric", "single-gpu", "--nodes", "4"});
  EXPECT_EQ(small.status, 2);
  EXPECT_NE(
      small.errors.find("railyard: error: --fabric: the job has 8 ranks, 4 x single-gpu has 4 "
                        "GPUs (expected one for each)"),
      std::string::npos)
      << small.errors;
}

TEST_F(EstimateTest, APlansRanksAreThoseOfItsJobAndItsFabricIsNotOverwritten) {
  const std::string folder = std::string(RAILYARD_SOURCE_DIR) + "/workloads/examples/";
  // 16 ranks decode, and 16 others fill the cache.
  const ProgramExit serving = Railyard({"estimate", folder + "mixtral_8x7b_serving_32.textproto"});
  EXPECT_NE(serving.output.find(" on 32 GPUs: "), std::string::npos) << serving.output;
  // Half of a fine-tuned model has no gradients: its operations are not three forward passes.
  const ProgramExit tuning = Railyard({"estimate", folder + "llama_2_7b_lora_8.textproto"});
  EXPECT_EQ(tuning.status, 0) << tuning.errors;
  EXPECT_EQ(tuning.output.find("forward passes"), std::string::npos) << tuning.output;
  EXPECT_NE(tuning.output.find(", in 2 iterations: "), std::string::npos) << tuning.output;

  const std::string text = "rail_optimized { servers: 4 }\n";
  const std::string fabric = scratch_.Write("fabric.textproto", text);
  const ProgramExit refused = Railyard(
      {"estimate", folder + "gpt_1_5b_4.textproto", "--fabric", fabric, "--pairs", fabric});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.errors.find("is read by this command"), std::string::npos) << refused.errors;
  EXPECT_EQ(ReadText(fabric), text);
}

}  // namespace
}  // namespace railyard::testing
