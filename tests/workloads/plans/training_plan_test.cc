// SPDX-License-Identifier: GPL-2.0-only
// Compares the traffic of training with Megatron-LM's and ZeRO's volumes.
#include "workloads/plans/training/training_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "simulator/units/divide_up.h"
#include "tests/workloads/plans/loaded_plan.h"
#include "tests/workloads/plans/trace_calls.h"
#include "traces/trace/trace_check.h"
#include "workloads/job/job.h"
#include "workloads/plans/model/layer_work.h"
#include "workloads/plans/synthesis/synthesize.h"

namespace railyard {
namespace {

constexpr const char* kGpt =
    "model { preset: \"gpt-2\" vocabulary: 50304 }\n"
    "parallelism { tensor: 2 }\n"
    "compute { accelerator: \"a100-sxm4-80gb\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
    "training { sequence: 1024 micro_batch: 2 micro_batches: 4 }\n";

Plan PlanOf(const std::vector<std::string>& sets) {
  const LoadedPlan loaded(kGpt, sets);
  EXPECT_EQ(loaded.findings, "");
  return loaded.plan.value_or(Plan{});
}

uint64_t ElementsOf(const Plan& plan) {
  uint64_t elements = 0;
  const auto add = [&](const std::vector<Weight>& weights) {
    const uint32_t tensor = plan.parallelism.tensor();
    for (const Weight& weight : weights) {
      elements += DivideUp(weight.elements, weight.PartsIn(tensor));
    }
  };
  add(EmbeddingWeights(plan.model));
  for (uint32_t layer = 0; layer < plan.model.layers; ++layer) add(LayerWeights(plan.model, layer));
  add(OutputWeights(plan.model));
  return elements;
}

// Shoeybi et al.: 4 AllReduces of b s h elements for each layer and micro-batch; beside them the
// embedding's, the output layer's gradient and 3 of b s elements for the loss.
TEST(TrainingPlanTest, TensorParallelismAllReducesFourTimesPerLayer) {
  const Trace trace = Synthesize(PlanOf({}));
  const Calls calls = CallsOf(trace, 0, CollectiveKind::kAllReduce, "tensor");
  const uint64_t tokens = uint64_t{2} * 1024;
  EXPECT_EQ(calls.count, 4u * (4 * 12 + 2 + 3));
  EXPECT_EQ(calls.elements, 4u * ((4 * 12 + 2) * tokens * 768 + 3 * tokens));
}

TEST(TrainingPlanTest, RecomputingAllReducesTwiceMorePerLayer) {
  const Trace trace = Synthesize(PlanOf({"training.recompute=FULL"}));
  EXPECT_EQ(CallsOf(trace, 0, CollectiveKind::kAllReduce, "tensor").count, 4u * (6 * 12 + 2 + 3));
}

// Korthikanti et al.: 4 AllGathers and 4 ReduceScatters, and 2 AllGathers more for the weights'
// gradients; an AllReduce's bytes are those of one of each.
TEST(TrainingPlanTest, SequenceParallelismGathersAndScatters) {
  const Trace trace = Synthesize(PlanOf({"parallelism.sequence=true"}));
  const uint64_t share = 2 * 1024 * 768 / 2;
  const Calls gathers = CallsOf(trace, 0, CollectiveKind::kAllGather, "tensor");
  const Calls scatters = CallsOf(trace, 0, CollectiveKind::kReduceScatter, "tensor");
  EXPECT_EQ(scatters.count, 4u * (4 * 12 + 2));
  EXPECT_EQ(gathers.count, 4u * (6 * 12 + 3));
  EXPECT_EQ(scatters.elements, scatters.count * share);
  EXPECT_EQ(gathers.elements, gathers.count * share);
}

// Megatron-LM, finalize_model_grads.py: norms of queries and keys are of each rank's own heads, so
// that their gradients are added up without sequence parallelism, too; and so are a single key
// head's matrices, which all ranks hold for their own queries.
TEST(TrainingPlanTest, WholeWeightsOfARanksHeadsHaveTheirGradientsAddedUp) {
  const auto added_up = [](const std::vector<std::string>& sets) {
    const auto elements = [](const std::vector<std::string>& of) {
      return CallsOf(Synthesize(PlanOf(of)), 0, CollectiveKind::kAllReduce, "tensor").elements;
    };
    return elements(sets) - elements({});
  };
  EXPECT_EQ(added_up({"model.query_key_norm=true", "model.norm_bias=false"}), 12u * 2 * 64);
  EXPECT_EQ(added_up({"model.kv_heads=1", "model.linear_bias=false"}), 12u * 768 * 2 * 64);
  EXPECT_EQ(added_up({"model.kv_heads=2"}), 0u);
}

// Megatron-LM's multi_latent_attention.py: what crosses the tensor group before attention are the
// compressed queries, keys and values, and the rotary part of the keys. The latter is no input of a
// matrix: the backward pass gathers it once less.
TEST(TrainingPlanTest, LatentAttentionGathersWhatIsCompressed) {
  const std::string latent =
      "model { layers: 3 hidden: 1024 heads: 8 feed_forward: 512 vocabulary: 512 tied_embeddings: "
      "true\n"
      "  latent_attention { query_rank: 96 kv_rank: 32 nope_head_dim: 64 rope_head_dim: 16 "
      "value_head_dim: 64 } }\n"
      "compute { accelerator: \"a100-sxm4-80gb\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
      "training { sequence: 256 micro_batch: 1 micro_batches: 2 }\n";
  const auto calls = [&](const std::string& parts, CollectiveKind kind, const std::string& group) {
    const LoadedPlan loaded(latent + "parallelism { " + parts + " }\n");
    EXPECT_EQ(loaded.findings, "");
    return CallsOf(Synthesize(*loaded.plan), 0, kind, group);
  };
  const uint64_t tokens = 2 * 256;  // of both micro-batches
  const uint64_t widths = 96 + 32 + 16;
  // Each layer has: attention forward and again, the network forward, its gradient and again, and
  // the gradient of attention's output; beside them 3 of the output layer.
  EXPECT_EQ(calls("tensor: 4 sequence: true", CollectiveKind::kAllGather, "tensor").elements,
            tokens / 4 * (3 * (widths + (96 + 32) + 4 * 1024) + 3 * 1024));
  EXPECT_EQ(calls("tensor: 4 sequence: true", CollectiveKind::kReduceScatter, "tensor").elements,
            tokens / 4 * (3 * (widths + 3 * 1024) + 2 * 1024));
  EXPECT_EQ(calls("tensor: 4", CollectiveKind::kAllReduce, "tensor").elements,
            tokens * (3 * (widths + 3 * 1024) + 2 * 1024 + 3));
  // Context parallelism exchanges the keys and values of a rank's 4 heads.
  EXPECT_EQ(calls("tensor: 2 context: 2", CollectiveKind::kAllGather, "context").elements,
            uint64_t{2} * 3 * tokens / 2 * 4 * (64 + 16 + 64));
}

TEST(TrainingPlanTest, DataParallelismAllReducesEveryGradientOnce) {
  const Plan plan = PlanOf({"parallelism.data=4", "training.gradient_bucket=\"4MiB\""});
  const Trace trace = Synthesize(plan);
  const Calls calls = CallsOf(trace, 3, CollectiveKind::kAllReduce, "data");
  EXPECT_EQ(calls.elements, ElementsOf(plan));
  // A bucket closes with the weight that fills it.
  for (const TraceOperation& operation : trace.operations[GlobalRank{3}]) {
    const uint32_t communicator = trace.CommunicatorOf(GlobalRank{3}, operation.communicator);
    if (trace.communicators[communicator].name.starts_with("data") &&
        operation.kind == CollectiveKind::kAllReduce) {
      EXPECT_GT(operation.after, 0u);
    }
  }
  EXPECT_GT(calls.count, 12u);
}

// Rajbhandari et al., section 7: ZeRO 1 and 2 send as much as an AllReduce, ZeRO 3 half as much
// again. Here ZeRO 2 and 3 reduce every one of 4 micro-batches, and ZeRO 3 gathers for each twice.
TEST(TrainingPlanTest, ZeroDividesGradientsAndGathersParameters) {
  const auto calls = [](const char* zero, CollectiveKind kind) {
    const Plan plan = PlanOf({"parallelism.data=4", std::string("training.zero=") + zero,
                              "model.tied_embeddings=false"});
    const Calls of_kind = CallsOf(Synthesize(plan), 0, kind, "data");
    // Shares are rounded up, by less than the group's size for each call.
    const double whole = static_cast<double>(ElementsOf(plan));
    EXPECT_LE(of_kind.elements * 4 % ElementsOf(plan), 4 * of_kind.count);
    return static_cast<double>(of_kind.elements * 4) / whole;
  };
  EXPECT_EQ(calls("ZERO_1", CollectiveKind::kAllReduce), 0);
  EXPECT_NEAR(calls("ZERO_1", CollectiveKind::kReduceScatter), 1, 1e-4);
  EXPECT_NEAR(calls("ZERO_1", CollectiveKind::kAllGather), 1, 1e-4);
  EXPECT_NEAR(calls("ZERO_2", CollectiveKind::kReduceScatter), 4, 1e-4);
  EXPECT_NEAR(calls("ZERO_2", CollectiveKind::kAllGather), 1, 1e-4);
  EXPECT_NEAR(calls("ZERO_3", CollectiveKind::kReduceScatter), 4, 1e-4);
}

// The first stage's chunk 0 has the embedding, and the last stage's chunk 1 the output layer: each
// rank gathers each of its chunks once.
TEST(TrainingPlanTest, ZeroTwoGathersEachChunkOfAnInterleavedPipelineOnce) {
  const auto gathered = [](const std::string& zero, uint32_t rank) {
    const Plan plan = PlanOf({"parallelism.data=2", "parallelism.pipeline=2",
                              "training.schedule=INTERLEAVED", "training.virtual_stages=2",
                              "training.gradient_bucket=\"1GiB\"", "training.zero=" + zero});
    return CallsOf(Synthesize(plan), rank, CollectiveKind::kAllGather, "data").elements;
  };
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{2}})
    EXPECT_EQ(gathered("ZERO_2", rank), gathered("ZERO_1", rank));
}

// GPUs of a group share key and value heads if it has more GPUs than the model has heads: each of
// 4 GPUs holds one pair of 2 or of 4, and two pairs of 8.
TEST(TrainingPlanTest, KeyAndValueHeadsAreCopiedWhereTheGroupHasMoreGpus) {
  const auto reduced = [](uint32_t kv_heads) {
    const Plan plan = PlanOf({"parallelism.tensor=4", "parallelism.data=2", "model.heads=16",
                              "model.kv_heads=" + std::to_string(kv_heads)});
    return CallsOf(Synthesize(plan), 0, CollectiveKind::kAllReduce, "data").elements;
  };
  const ModelConfig model = PlanOf({"model.heads=16"}).model;
  const uint64_t pair_elements = uint64_t{2} * model.head_dim * (model.hidden + 1);  // with bias
  EXPECT_EQ(reduced(2), reduced(4));
  EXPECT_EQ(reduced(8), reduced(4) + model.layers * pair_elements);
}

// Two transfers per boundary and micro-batch of b s h elements; the embedding and its copy at the
// other end are kept equal, where they are one.
TEST(TrainingPlanTest, PipelinesSendActivationsAndGradients) {
  const Trace trace = Synthesize(PlanOf({"parallelism.pipeline=3"}));
  ASSERT_EQ(trace.rank_count, 6u);
  for (const auto& [rank, forward, backward] :
       {std::tuple{0u, 4u, 0u}, {2u, 4u, 4u}, {5u, 0u, 4u}}) {
    const Calls activations = CallsOf(trace, rank, CollectiveKind::kSend, "activations");
    const Calls gradients = CallsOf(trace, rank, CollectiveKind::kSend, "gradients");
    EXPECT_EQ(activations.count, forward);
    EXPECT_EQ(activations.elements, forward * 2 * 1024 * 768u);
    EXPECT_EQ(gradients.count, backward);
    EXPECT_EQ(CallsOf(trace, rank, CollectiveKind::kRecv, "activations").count, rank < 2 ? 0 : 4u);
    EXPECT_EQ(CallsOf(trace, rank, CollectiveKind::kAllReduce, "embedding").elements,
              rank == 2 ? 0 : 50304u / 2 * 768);
  }
  const Trace untied =
      Synthesize(PlanOf({"parallelism.pipeline=3", "model.tied_embeddings=false"}));
  EXPECT_EQ(CallsOf(untied, 0, CollectiveKind::kAllReduce, "embedding").count, 0u);
}

// Keys and values of 2 x 512 tokens of 6 heads of 64 each, before attention and its backward pass;
// their gradients after.
TEST(TrainingPlanTest, ContextParallelismGathersKeysAndValues) {
  const Trace trace = Synthesize(PlanOf({"parallelism.context=2"}));
  const uint64_t share = 2 * 512 * 2 * 768 / 2;
  EXPECT_EQ(CallsOf(trace, 0, CollectiveKind::kAllGather, "context").elements,
            uint64_t{4} * 2 * 12 * share);
  EXPECT_EQ(CallsOf(trace, 0, CollectiveKind::kReduceScatter, "context").elements,
            uint64_t{4} * 12 * share);
}

TEST(TrainingPlanTest, GradientsWaitForTheBackwardPassUnlessTheyOverlap) {
  const auto first_wait = [](const char* overlap) {
    const Trace trace =
        Synthesize(PlanOf({"parallelism.data=2", "training.gradient_bucket=\"1MiB\"",
                           std::string("training.overlap_gradients=") + overlap}));
    std::set<uint32_t> waits;
    for (const TraceOperation& operation : trace.operations[GlobalRank{0}]) {
      if (operation.stream == 1) waits.insert(operation.after);
    }
    return waits.size();
  };
  EXPECT_GT(first_wait("true"), 12u);
  EXPECT_EQ(first_wait("false"), 1u);
}

// Megatron-LM: the norm is of a replica's gradients, which its tensor and pipeline ranks hold; with
// the distributed optimizer, of all ranks'.
TEST(TrainingPlanTest, ClippingAddsUpOneValueBeforeTheOptimizersStep) {
  const std::vector<std::string> sets = {"parallelism.data=2", "parallelism.pipeline=2",
                                         "training.iterations=3",
                                         "training.gradient_clipping=true"};
  const Trace trace = Synthesize(PlanOf(sets));
  std::map<std::string, std::set<uint32_t>> ranks;
  for (const TraceCommunicator& communicator : trace.communicators) {
    if (!communicator.name.starts_with("norm ")) continue;
    ranks[communicator.name] = {communicator.ranks.begin(), communicator.ranks.end()};
  }
  // Tensor, then data, then pipeline.
  const std::map<std::string, std::set<uint32_t>> replicas = {{"norm 0", {0, 1, 4, 5}},
                                                              {"norm 1", {2, 3, 6, 7}}};
  EXPECT_EQ(ranks, replicas);
  for (GlobalRank rank{0}; rank < 8; ++rank) {
    const Calls calls = CallsOf(trace, rank, CollectiveKind::kAllReduce, "norm");
    EXPECT_EQ(calls.count, 3u);
    EXPECT_EQ(calls.elements, 3u);
    const std::vector<TraceOperation>& program = trace.operations[GlobalRank{rank}];
    ASSERT_EQ(program.back().kind, CollectiveKind::kCompute);
    EXPECT_GT(program.back().compute_before_ps, 0);
    EXPECT_EQ(program[program.size() - 2].count, 1u);
  }

  std::vector<std::string> divided = sets;
  divided.emplace_back("training.zero=ZERO_1");
  for (const TraceCommunicator& communicator : Synthesize(PlanOf(divided)).communicators) {
    if (communicator.name.starts_with("norm ")) {
      EXPECT_EQ(communicator.ranks.size(), 8u);
    }
  }
}

// Megatron-LM's train_step: gradients are zeroed, then the schedule runs, then the optimizer, which
// reads a gradient of 2 B and writes a weight of as many, and reads and writes three FP32 values.
TEST(TrainingPlanTest, AnIterationZeroesItsGradientsBeforeItReceives) {
  const Trace trace = Synthesize(PlanOf({"parallelism.pipeline=2", "training.iterations=2"}));
  const std::vector<TraceOperation>& program = trace.operations[GlobalRank{2}];
  const auto first = std::ranges::find_if(
      program, [](const TraceOperation& operation) { return operation.begins_iteration; });
  ASSERT_NE(first, program.end());
  EXPECT_EQ(first->kind, CollectiveKind::kCompute);
  const auto received =
      std::ranges::find(first, program.end(), CollectiveKind::kRecv, &TraceOperation::kind);
  ASSERT_NE(received, program.end());
  EXPECT_EQ(received->after, static_cast<uint32_t>(first - program.begin()) + 1);
  const TraceOperation& optimizer = *std::prev(first);
  EXPECT_EQ(optimizer.kind, CollectiveKind::kCompute);
  EXPECT_EQ(optimizer.compute_before_ps, program.back().compute_before_ps);
  EXPECT_NEAR(static_cast<double>(optimizer.compute_before_ps) /
                  static_cast<double>(first->compute_before_ps),
              (2 + 2 * 3 * 4 + 2) / 2.0, 1e-6);
}

TEST(TrainingPlanTest, WithZero2GradientsAreNotKeptAndNotZeroed) {
  const auto begin_of = [](const char* zero) {
    const Trace trace =
        Synthesize(PlanOf({"parallelism.data=2", std::string("training.zero=") + zero}));
    return trace.operations[GlobalRank{0}].front();
  };
  EXPECT_EQ(begin_of("ZERO_1").kind, CollectiveKind::kCompute);
  EXPECT_NE(begin_of("ZERO_2").kind, CollectiveKind::kCompute);
}

TEST(TrainingPlanTest, AllRanksWaitForOneAnotherEverySoManyIterations) {
  const Trace trace = Synthesize(PlanOf({"parallelism.data=2", "parallelism.pipeline=2",
                                         "training.iterations=5", "training.log_interval=2"}));
  for (GlobalRank rank{0}; rank < 8; ++rank) {
    uint32_t iteration = 0;
    std::vector<uint32_t> with_barrier;
    for (const TraceOperation& operation : trace.operations[GlobalRank{rank}]) {
      iteration += operation.begins_iteration ? 1 : 0;
      if (operation.kind == CollectiveKind::kCompute) continue;
      const TraceCommunicator& communicator =
          trace.communicators[trace.CommunicatorOf(GlobalRank{rank}, operation.communicator)];
      if (!communicator.name.starts_with("all ")) continue;
      EXPECT_EQ(communicator.ranks.size(), 8u);
      EXPECT_EQ(operation.kind, CollectiveKind::kAllReduce);
      EXPECT_EQ(operation.count, 1u);
      EXPECT_TRUE(iteration == 0 || operation.begins_iteration);
      with_barrier.push_back(iteration);
    }
    EXPECT_EQ(with_barrier, (std::vector<uint32_t>{0, 2, 4}));
  }
}

// Every combination is a trace whose calls match.
TEST(TrainingPlanTest, RanksFitTogether) {
  const std::vector<std::vector<std::string>> schedules = {
      {},
      {"parallelism.pipeline=2"},
      {"parallelism.pipeline=4"},
      {"parallelism.pipeline=2", "training.schedule=ZERO_BUBBLE"},
      {"parallelism.pipeline=2", "training.schedule=INTERLEAVED", "training.virtual_stages=3"},
      {"parallelism.pipeline=4", "training.schedule=INTERLEAVED", "training.virtual_stages=2"}};
  const std::vector<std::vector<std::string>> others = {
      {},
      {"parallelism.tensor=1"},
      {"parallelism.sequence=true", "parallelism.data=2"},
      {"parallelism.context=2", "training.recompute=FULL"},
      {"parallelism.data=2", "training.zero=ZERO_1", "training.gradient_clipping=true"},
      {"parallelism.data=2", "training.zero=ZERO_2", "training.iterations=2"},
      {"parallelism.data=2", "training.zero=ZERO_3", "training.overlap_gradients=false"},
      {"parallelism.order=[PIPELINE, DATA, TENSOR, CONTEXT]", "parallelism.data=2"}};
  for (const auto& schedule : schedules) {
    for (const auto& other : others) {
      std::vector<std::string> sets = schedule;
      sets.insert(sets.end(), other.begin(), other.end());
      const Plan plan = PlanOf(sets);
      const Trace trace = Synthesize(plan);
      EXPECT_EQ(trace.operations.OperationCount(), OperationCount(plan));
      Diagnostics diagnostics;
      EXPECT_TRUE(CheckTrace(trace, "plan", diagnostics));
      EXPECT_TRUE(BuildJob(trace, diagnostics).has_value());
      EXPECT_EQ(diagnostics.ToString(), "");
    }
  }
}

TEST(TrainingPlanTest, EveryFieldOfTrainingChangesTheOperations) {
  const std::vector<std::string> base = {"parallelism.data=2", "parallelism.pipeline=2",
                                         "training.zero=ZERO_1"};
  const Trace reference = Synthesize(PlanOf(base));
  for (const std::vector<std::string>& change : std::vector<std::vector<std::string>>{
           {"training.sequence=512"},
           {"training.micro_batch=1"},
           {"training.micro_batches=6"},
           {"training.iterations=2"},
           {"training.schedule=ZERO_BUBBLE"},
           {"training.schedule=INTERLEAVED", "training.virtual_stages=2"},
           {"training.schedule=INTERLEAVED", "training.virtual_stages=3"},
           {"training.zero=ZERO_0"},
           {"training.zero=ZERO_2"},
           {"training.zero=ZERO_3"},
           {"training.gradient_precision=FP32"},
           {"training.gradient_bucket=\"1MiB\""},
           {"training.overlap_gradients=false"},
           {"training.gradient_clipping=true"},
           {"training.log_interval=1"},
           {"training.recompute=FULL"},
           {"parallelism.sequence=true"},
           {"parallelism.order=[DATA, TENSOR, PIPELINE, CONTEXT]"},
           {"parallelism.rank_at=[7, 6, 5, 4, 3, 2, 1, 0]"},
           {"compute.utilisation=0.4"},
           {"compute.memory_utilisation=0.4"},
           {"compute.part_overhead=\"1us\""},
           {"compute.accelerator=\"h100-sxm\""}}) {
    std::vector<std::string> sets = base;
    sets.insert(sets.end(), change.begin(), change.end());
    const Trace changed = Synthesize(PlanOf(sets));
    bool same = changed.rank_count == reference.rank_count;
    for (GlobalRank rank{0}; same && rank < reference.rank_count; ++rank) {
      same = changed.operations[GlobalRank{rank}] == reference.operations[GlobalRank{rank}];
    }
    same = same && changed.communicators_of_rank == reference.communicators_of_rank;
    for (size_t i = 0; same && i < reference.communicators.size(); ++i) {
      same = changed.communicators[i].ranks == reference.communicators[i].ranks;
    }
    EXPECT_FALSE(same) << change.front();
  }
}

TEST(TrainingPlanTest, WhatCannotBeIsRefused) {
  const auto findings = [](const std::vector<std::string>& sets) {
    return LoadedPlan(kGpt, sets).findings;
  };
  EXPECT_EQ(findings({"training.zero=ZERO_1"}),
            "--set training.zero=ZERO_1: error: training.zero: there is one replica (expected "
            "parallelism.data: 2 or more)\n");
  EXPECT_EQ(findings({"parallelism.tensor=1", "training.gradient_clipping=true"}),
            "--set training.gradient_clipping=true: error: training.gradient_clipping: there is "
            "one rank, which has all gradients (expected none)\n");
  EXPECT_EQ(
      findings({"parallelism.tensor=1", "parallelism.data=2", "training.gradient_clipping=true"}),
      "--set training.gradient_clipping=true: error: training.gradient_clipping: every rank "
      "has all gradients (expected none, or parallelism.tensor or parallelism.pipeline: 2 or "
      "more, or zero: ZERO_1 to ZERO_3)\n");
  EXPECT_EQ(findings({"parallelism.tensor=1", "training.log_interval=1"}),
            "--set training.log_interval=1: error: training.log_interval: there is one rank, which "
            "waits for nobody (expected none)\n");
  EXPECT_EQ(findings({"training.log_interval=0"}),
            "--set training.log_interval=0: error: training.log_interval: 0 is out of range "
            "(expected 1 to 1000000)\n");
  EXPECT_EQ(findings({"parallelism.pipeline=3", "training.schedule=INTERLEAVED",
                      "training.virtual_stages=2"}),
            ":4:42: error: training.micro_batches: 4 are not a multiple of the 3 stages, as "
            "INTERLEAVED wants (expected 3 or 6)\n");
  EXPECT_EQ(findings({"parallelism.pipeline=13"}),
            "--set parallelism.pipeline=13: error: parallelism.pipeline: 13 stages of 12 layers "
            "(expected at most 12)\n");
  EXPECT_EQ(
      findings({"parallelism.context=5"}),
      ":4:12: error: training.sequence: 1024 tokens are not divided by the 5 parts of context "
      "and sequence parallelism (expected a multiple, e.g. 1025)\n");
  EXPECT_EQ(findings({"training.iterations=1000000", "training.micro_batches=65536"}),
            ":4:1: error: training: up to 36176768000000 operations of GPUs that differ (expected "
            "at most 40000000: fewer tokens, micro-batches or iterations)\n");
}

}  // namespace
}  // namespace railyard
