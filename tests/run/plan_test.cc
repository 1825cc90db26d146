// SPDX-License-Identifier: GPL-2.0-only
// Plans as the program's users run them.
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using PairBytes = std::map<std::pair<int64_t, int64_t>, int64_t>;

// Between different GPUs.
PairBytes PairsOf(const Table& table) {
  PairBytes pairs;
  for (size_t row = 0; row < table.size(); ++row) {
    const int64_t source = table.Integer(row, "source_gpu");
    const int64_t destination = table.Integer(row, "destination_gpu");
    if (source != destination) {
      pairs[{source, destination}] += table.Integer(row, "payload_bytes");
    }
  }
  return pairs;
}

// A plan for 16 GPUs of two servers.
std::string Plan(const std::string& parallelism, const std::string& training) {
  return "model { layers: 4 hidden: 1024 heads: 16 feed_forward: 4096 vocabulary: 32768 }\n"
         "parallelism { " +
         parallelism +
         " ranks: 16 }\n"
         "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
         "training { sequence: 1024 micro_batch: 1 micro_batches: 4 " +
         training + " }\n";
}

class PlanProgramTest : public ProgramTest {
 protected:
  EndedRun RunPlan(const std::string& plan) {
    scratch_.Write("plan.textproto", plan);
    return RunText(RailOptimized(2) + "workload { plan: \"plan.textproto\" algorithm: RING }\n");
  }
  // With `fabric` as a run has them, else as rings. Leaves the matrix in e.csv.
  PairBytes Estimate(const std::vector<std::string>& fabric = {}) {
    std::vector<std::string> arguments = {"estimate", scratch_.Path("plan.textproto"), "--pairs",
                                          "-"};
    arguments.insert(arguments.end(), fabric.begin(), fabric.end());
    const ProgramExit exit = Railyard(arguments);
    EXPECT_EQ(exit.status, 0) << exit.errors;
    scratch_.Write("e.csv", exit.output);
    return PairsOf(ReadCsv(scratch_.Path("e.csv")));
  }
  void ExpectPredicted(const std::string& platform, uint32_t servers, const std::string& plan) {
    scratch_.Write("plan.textproto", plan);
    const std::string count = std::to_string(servers);
    const EndedRun run =
        RunText("fabric { rail_optimized { mixed_servers { count: " + count + " platform: \"" +
                    platform + "\" } } }\n" + "workload { plan: \"plan.textproto\" }\n",
                {"--no-estimate", "--no-baseline"});
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    const PairBytes predicted = Estimate({"--fabric", platform, "--nodes", count});
    EXPECT_EQ(PairsOf(run.pairs), predicted) << platform << "\n" << plan;
    EXPECT_EQ(run.Integer("pairs.active"), static_cast<int64_t>(predicted.size()));
  }
  void ExpectClosedForm(const std::string& parallelism, const std::string& training) {
    const EndedRun run = RunPlan(Plan(parallelism, training));
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_EQ(PairsOf(run.pairs), Estimate()) << parallelism;
  }
};

// Payload from the replayed packets and from the formulas, byte for byte. Groups are inside a
// server or have one GPU in each.
TEST_F(PlanProgramTest, BytesPerPairAreTheClosedForms) {
  ExpectClosedForm("tensor: 4 pipeline: 2 data: 2", "");
  ExpectClosedForm("tensor: 8 data: 2", "zero: ZERO_1");
  ExpectClosedForm("tensor: 2 pipeline: 4 data: 2 sequence: true", "schedule: ZERO_BUBBLE");
  ExpectClosedForm("tensor: 4 pipeline: 2 context: 2", "");
}

// A plan for any number of GPUs whose run is short.
std::string SmallPlan(const std::string& parallelism, const std::string& compute,
                      const std::string& more = "") {
  return "model { layers: 4 hidden: 256 heads: 8 feed_forward: 1024 vocabulary: 8192 " + more +
         "}\n"
         "parallelism { " +
         parallelism + " }\ncompute { accelerator: \"" + compute +
         "\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
         "training { sequence: 256 micro_batch: 1 micro_batches: 4 }\n";
}

// The second study's (p, t, d) = (4, 4, 4): NVLS and NVLSTree are chosen for its larger AllReduces,
// its data groups have two GPUs in each of their servers, and no ring goes there in rank order.
TEST_F(PlanProgramTest, WhatIsPredictedOnAFabricIsCarried) {
  ExpectPredicted("dgx-h100", 8, SmallPlan("tensor: 4 pipeline: 4 data: 4", "h100-sxm"));
  ExpectPredicted("dgx-h100", 4, SmallPlan("data: 32", "h100-sxm"));
  ExpectPredicted(
      "dgx-h100", 2,
      SmallPlan("data: 16 expert: 8", "h100-sxm",
                "experts { count: 16 per_token: 2 feed_forward: 256 dense_layers: 1 }"));
  ExpectPredicted("pcie-8x3090", 2, SmallPlan("tensor: 2 pipeline: 2 data: 4", "rtx-3090"));
  ExpectPredicted("dgx-1-v100", 1, SmallPlan("tensor: 4 data: 2", "v100-sxm2", "precision: FP16"));
}

// NVLS inside a server: every GPU gets operands from, and sums to, each other, and a ring would
// have 8 pairs.
TEST_F(PlanProgramTest, APredictionSaysWhoseAlgorithmsItCounts) {
  scratch_.Write("plan.textproto", SmallPlan("tensor: 8", "h100-sxm"));
  const std::string plan = scratch_.Path("plan.textproto");
  const ProgramExit as_rings = Railyard({"estimate", plan});
  EXPECT_NE(as_rings.output.find(
                "\n8 of 56 possible pairs of GPUs talk, every collective as one ring.\n"),
            std::string::npos)
      << as_rings.output;
  const ProgramExit as_run = Railyard({"estimate", plan, "--fabric", "dgx-h100", "--nodes", "2"});
  EXPECT_NE(as_run.output.find(" of 240 possible pairs of GPUs talk, by the algorithms that a run "
                               "with NCCL's default settings chooses.\n"),
            std::string::npos)
      << as_run.output;
}

// A predicted matrix is read by whatever reads a run's: an AllToAllv that carries it, and a fabric
// that is cabled for it.
TEST_F(PlanProgramTest, AFabricIsDesignedFromAPrediction) {
  scratch_.Write("plan.textproto", SmallPlan("tensor: 8 data: 4", "h100-sxm"));
  const PairBytes predicted = Estimate({"--fabric", "dgx-h100", "--nodes", "4"});
  const std::string fabric =
      "fabric { direct_connect { servers { count: 4 } traffic: \"e.csv\" } }\n";
  const EndedRun carried =
      RunText(fabric +
                  "workload { program { collectives { kind: ALL_TO_ALL_V pair_bytes: \"e.csv\" } } "
                  "}\n",
              {"--no-baseline"});
  ASSERT_EQ(carried.exit.status, 0) << carried.exit.errors;
  EXPECT_EQ(PairsOf(carried.pairs), predicted);
  const EndedRun planned = RunText(fabric + "workload { plan: \"plan.textproto\" }\n",
                                   {"--no-baseline", "--no-estimate"});
  EXPECT_EQ(planned.exit.status, 0) << planned.exit.errors;
}

// The AllToAllvs' payload is the tokens that were routed to experts.
TEST_F(PlanProgramTest, RoutedTokensArriveByteForByte) {
  const EndedRun run = RunPlan(
      "model { layers: 2 hidden: 512 heads: 8 vocabulary: 4096\n"
      "  experts { count: 16 per_token: 4 feed_forward: 256 groups: 4 groups_per_token: 2 } }\n"
      "parallelism { data: 8 pipeline: 2 expert: 8 }\n"
      "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
      "training { sequence: 512 micro_batch: 1 micro_batches: 2 }\n"
      "expert_routing { gate: DIRICHLET capacity_factor: 1.5 }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(PairsOf(run.pairs), Estimate());
  size_t all_to_alls = 0;
  for (size_t row = 0; row < run.collectives.size(); ++row) {
    all_to_alls += run.collectives.Text(row, "kind") == "AllToAllv" ? 1 : 0;
  }
  // Two forward and two backward, in each of a layer a stage and 2 micro-batches.
  EXPECT_EQ(all_to_alls, 4u * 2 * 2);
}

TEST_F(PlanProgramTest, ASynthesizedTraceRunsAsItsPlan) {
  const EndedRun of_plan = RunPlan(Plan("tensor: 4 pipeline: 2 data: 2", ""));
  ASSERT_EQ(of_plan.exit.status, 0) << of_plan.exit.errors;
  const ProgramExit exit =
      Railyard({"synth", scratch_.Path("plan.textproto"), "-o", scratch_.Path("job.trace")});
  ASSERT_EQ(exit.status, 0) << exit.errors;
  const EndedRun of_trace =
      RunText(RailOptimized(2) + "workload { trace: \"job.trace\" algorithm: RING }\n");
  ASSERT_EQ(of_trace.exit.status, 0) << of_trace.exit.errors;
  EXPECT_EQ(of_trace.Text("fingerprint"), of_plan.Text("fingerprint"));
}

// With computation alone a pipeline's bubble has the closed form (m + p - 1) (f + b), here 6 x 2 x
// (30 + 60) us, with the ends' embedding and output layer free. Transfers are added to it.
TEST_F(PlanProgramTest, APipelineTakesItsBubble) {
  const EndedRun run = RunPlan(
      "model { layers: 4 hidden: 64 heads: 4 feed_forward: 64 vocabulary: 64 }\n"
      "parallelism { pipeline: 2 }\n"
      "compute { given { attention: \"10us\" feed_forward: \"20us\" embedding: \"0s\" "
      "output_layer: \"0s\" backward_ratio: 2 optimizer: \"0s\" } }\n"
      "training { sequence: 16 micro_batch: 1 micro_batches: 5 }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_GE(run.Integer("simulated_time_ps"), 6 * (2 * 90'000'000ll));
  EXPECT_LE(run.Integer("simulated_time_ps"), 6 * (2 * 90'000'000ll) + 200'000'000);
}

// --set goes on into the file that `workload.plan` names; findings are at that --set.
TEST_F(PlanProgramTest, FieldsOfAScenariosPlanAreSet) {
  scratch_.Write("plan.textproto", SmallPlan("data: 16", "h100-sxm"));
  const std::string scenario =
      scratch_.Write("s.textproto", RailOptimized(2) + "workload { plan: \"plan.textproto\" }\n");
  const auto iterations = [&](const std::vector<std::string>& arguments) {
    const EndedRun run = RunFile(scenario, arguments);
    EXPECT_EQ(run.exit.status, 0) << run.exit.errors;
    return run.Integer("estimate.simulated.iterations");
  };
  EXPECT_EQ(iterations({}), 1);
  EXPECT_EQ(iterations({"--set", "workload.plan.training.iterations=3"}), 3);
  const ProgramExit valid =
      Railyard({"validate", scenario, "--set", "workload.plan.parallelism.data=8"});
  EXPECT_EQ(valid.status, 0) << valid.errors;
  EXPECT_NE(valid.output.find("valid: 8 ranks on 16 GPUs"), std::string::npos) << valid.output;
  const auto expect_error = [&](const std::vector<std::string>& sets, const std::string& error) {
    std::vector<std::string> arguments = {"validate", scenario};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    const ProgramExit exit = Railyard(arguments);
    EXPECT_EQ(exit.status, 2);
    EXPECT_NE(exit.errors.find(error), std::string::npos) << exit.errors;
  };
  expect_error({"workload.plan.training.iteration=3"},
               "--set workload.plan.training.iteration=3: error: training.iteration: unknown field "
               "\"iteration\"");
  expect_error({"workload.plan.training.iterations=0"},
               "--set workload.plan.training.iterations=0: error: training.iterations: 0 ");
  expect_error(
      {"workload.program.collectives=[{ kind: ALL_REDUCE bytes: \"1MiB\" }]",
       "workload.plan.training.iterations=3"},
      "--set workload.plan.training.iterations=3: error: workload.plan: the workload names "
      "no plan");
  // A set that names another workload removes earlier sets of the plan.
  const ProgramExit other =
      Railyard({"validate", scenario, "--set", "workload.plan.training.iterations=3", "--set",
                "workload.program.collectives=[{ kind: ALL_REDUCE bytes: \"1MiB\" }]"});
  EXPECT_EQ(other.status, 0) << other.errors;
}

// 2^63 ps are 106 days. A longer time is refused where it is stated.
TEST_F(PlanProgramTest, TimesThatDoNotFitAreRefused) {
  const auto expect_error = [&](const std::string& plan, const std::string& set,
                                const std::string& error) {
    scratch_.Write("plan.textproto", plan);
    const ProgramExit exit = Railyard({"estimate", scratch_.Path("plan.textproto"), "--set", set});
    EXPECT_EQ(exit.status, 2) << set;
    EXPECT_EQ(exit.output, "");
    EXPECT_NE(exit.errors.find("--set " + set + ": error: " + error), std::string::npos)
        << exit.errors;
  };
  const std::string training = SmallPlan("data: 2", "h100-sxm");
  expect_error(training, "compute.utilisation=1e-15",
               "compute.utilisation: a part of the model takes a GPU ");
  // Computed for a day in each, 50 iterations take 50 days.
  expect_error(
      "model { layers: 2 hidden: 64 heads: 4 feed_forward: 64 vocabulary: 64 }\n"
      "parallelism { data: 2 }\n"
      "compute { given { attention: \"4h\" feed_forward: \"4h\" embedding: \"0s\" "
      "output_layer: \"0s\" backward_ratio: 2 optimizer: \"0s\" } }\n"
      "training { sequence: 16 micro_batch: 1 micro_batches: 1 }\n",
      "training.iterations=50", "training.iterations: a GPU may compute for ");
  const std::string serving =
      "model { preset: \"gpt-2\" }\nparallelism { tensor: 2 }\n"
      "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
      "inference { queries: 8 batch: 2 prompt_tokens: 32 output_tokens: 4\n"
      "  arrivals { queries_per_second: 10 } }\n";
  expect_error(serving, "inference.arrivals.queries_per_second=1e-8",
               "inference.arrivals.queries_per_second: the 8 queries take more than ");
}

TEST_F(PlanProgramTest, PlansThatCannotBeEndWithStatusTwo) {
  scratch_.Write("plan.textproto", Plan("tensor: 3 pipeline: 2 data: 2", ""));
  for (const char* const command : {"synth", "estimate"}) {
    std::vector<std::string> arguments = {command, scratch_.Path("plan.textproto")};
    if (std::string(command) == "synth") {
      arguments.insert(arguments.end(), {"-o", scratch_.Path("job.trace")});
    }
    const ProgramExit exit = Railyard(arguments);
    EXPECT_EQ(exit.status, 2);
    EXPECT_NE(
        exit.errors.find("plan.textproto:2:45: error: parallelism.ranks: 16 is not tensor 3 x "
                         "context 1 x data 2 x pipeline 2 = 12 (expected 12, or a multiple "
                         "of 6, e.g. 18)"),
        std::string::npos)
        << exit.errors;
  }
}

}  // namespace
}  // namespace railyard::testing
