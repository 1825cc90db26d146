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

PairBytes PairsOf(const Table& table, const char* source, const char* destination) {
  PairBytes pairs;
  for (size_t row = 0; row < table.size(); ++row) {
    pairs[{table.Integer(row, source), table.Integer(row, destination)}] =
        table.Integer(row, "payload_bytes");
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
  PairBytes Estimate() {
    const ProgramExit exit =
        Railyard({"estimate", scratch_.Path("plan.textproto"), "--pairs", scratch_.Path("e.csv")});
    EXPECT_EQ(exit.status, 0) << exit.errors;
    return PairsOf(ReadCsv(scratch_.Path("e.csv")), "source", "destination");
  }
  void ExpectClosedForm(const std::string& parallelism, const std::string& training) {
    const EndedRun run = RunPlan(Plan(parallelism, training));
    ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
    EXPECT_EQ(PairsOf(run.pairs, "source_gpu", "destination_gpu"), Estimate()) << parallelism;
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

// What tokens their experts get, too: the AllToAllvs' payload is what was routed.
TEST_F(PlanProgramTest, RoutedTokensArriveByteForByte) {
  const EndedRun run = RunPlan(
      "model { layers: 2 hidden: 512 heads: 8 vocabulary: 4096\n"
      "  experts { count: 16 per_token: 4 feed_forward: 256 groups: 4 groups_per_token: 2 } }\n"
      "parallelism { data: 8 pipeline: 2 expert: 8 }\n"
      "compute { accelerator: \"h100-sxm\" utilisation: 0.4 memory_utilisation: 0.8 }\n"
      "training { sequence: 512 micro_batch: 1 micro_batches: 2 }\n"
      "expert_routing { gate: DIRICHLET capacity_factor: 1.5 }\n");
  ASSERT_EQ(run.exit.status, 0) << run.exit.errors;
  EXPECT_EQ(PairsOf(run.pairs, "source_gpu", "destination_gpu"), Estimate());
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

// Of computation alone a pipeline takes its bubble's closed form: (m + p - 1) (f + b), here 6 x 2 x
// (30 + 60) us, with the ends' embedding and output layer free. Transfers come on top.
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
