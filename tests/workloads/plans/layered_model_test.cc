// SPDX-License-Identifier: GPL-2.0-only
// Convolutional networks and recommendation models: published figures, and what their training
// sends.
#include "workloads/plans/model/layered_model.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/workloads/plans/loaded_plan.h"
#include "traces/trace/trace_check.h"
#include "workloads/job/job.h"
#include "workloads/plans/model/layered_presets.h"
#include "workloads/plans/synthesis/synthesize.h"
#include "workloads/plans/training/layered_plan.h"

namespace railyard {
namespace {

TEST(LayeredModelTest, EveryPresetHasThePublishedFiguresWithinOnePercent) {
  for (const LayeredPreset& preset : LayeredPresets()) {
    EXPECT_NEAR(static_cast<double>(ParameterCount(preset.model)) / preset.published_parameters, 1,
                0.01)
        << preset.name;
    EXPECT_NEAR(ForwardFlops(preset.model) / preset.published_flops, 1, 0.01) << preset.name;
  }
}

TEST(LayeredModelTest, ParametersAreThoseOfTheCheckpoints) {
  EXPECT_EQ(ParameterCount(FindLayeredPreset("resnet-18")->model), 11'689'512u);
  EXPECT_EQ(ParameterCount(FindLayeredPreset("vgg-11")->model), 132'863'336u);
}

std::string Text(const std::string& preset) {
  std::string text = "model { preset: \"";
  text += preset;
  return text +
         "\" }\n"
         "parallelism { data: 8 }\n"
         "compute { accelerator: \"h100-sxm\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
         "training { micro_batch: 64 micro_batches: 2 }\n";
}

Trace TraceOf(const std::string& preset, const std::vector<std::string>& sets = {}) {
  const LoadedPlan loaded(Text(preset), sets);
  EXPECT_EQ(loaded.findings, "");
  if (!loaded.plan) return {};
  Trace trace = Synthesize(*loaded.plan);
  EXPECT_LE(trace.operations.OperationCount(), OperationCount(*loaded.plan));
  Diagnostics diagnostics;
  EXPECT_TRUE(CheckTrace(trace, "plan", diagnostics));
  EXPECT_TRUE(BuildJob(trace, diagnostics).has_value());
  EXPECT_EQ(diagnostics.ToString(), "");
  return trace;
}

uint64_t ElementsOf(const Trace& trace, uint32_t rank, CollectiveKind kind) {
  uint64_t elements = 0;
  for (const TraceOperation& operation : trace.operations[GlobalRank{rank}]) {
    if (operation.kind == kind) elements += operation.count;
  }
  return elements;
}

TEST(LayeredModelTest, EveryGradientIsReducedOncePerIteration) {
  EXPECT_EQ(ElementsOf(TraceOf("resnet-18"), 3, CollectiveKind::kAllReduce), 11'689'512u);
  EXPECT_EQ(ElementsOf(TraceOf("vgg-11", {"training.iterations=3"}), 3, CollectiveKind::kAllReduce),
            3u * 132'863'336);
  // The perceptrons of 13-512-256-128 and 479-1024-1024-512-256-1, with biases.
  EXPECT_EQ(ElementsOf(TraceOf("dlrm-criteo-1tb"), 3, CollectiveKind::kAllReduce),
            13u * 512 + 512 + 512 * 256 + 256 + 256 * 128 + 128 + 479 * 1024 + 1024 + 1024 * 1024 +
                1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 256 + 1);
}

// 26 tables on 8 ranks: four on the first two, three on the others. A row of 128 for each table and
// sample, there and its gradient back.
TEST(LayeredModelTest, EmbeddingsGoToTheirSamples) {
  const Trace trace = TraceOf("dlrm-criteo-1tb");
  uint64_t sent = 0;
  for (GlobalRank rank{0}; rank < 8; ++rank) {
    std::map<uint32_t, uint64_t> forward;  // elements to each other rank
    for (const TraceOperation& operation : trace.operations[GlobalRank{rank}]) {
      if (operation.kind == CollectiveKind::kSend && operation.all_to_all == 1) {
        forward[operation.peer] += operation.count;
      }
    }
    ASSERT_EQ(forward.size(), 8u);
    const uint64_t tables = rank < 2 ? 4 : 3;
    for (const auto& [peer, elements] : forward) EXPECT_EQ(elements, tables * 64 * 128);
    sent += ElementsOf(trace, rank, CollectiveKind::kSend);
  }
  EXPECT_EQ(sent, 2u * 2 * 26 * 8 * 64 * 128);
}

// 3 x 1.814 x 2 GFLOP a sample at half of 67 TFLOP/s in FP32 (torchvision's count is rounded and
// without the norms), and the optimizer's 11.7 million elements of 4 + 24 + 4 bytes at half of
// 3,350 GB/s.
TEST(LayeredModelTest, ComputationIsTheModels) {
  const Trace trace = TraceOf("resnet-18");
  double compute_ps = 0;
  for (const TraceOperation& operation : trace.operations[GlobalRank{0}]) {
    if (operation.stream == 0) compute_ps += static_cast<double>(operation.compute_before_ps);
  }
  const double expected =
      2 * 64 * 3 * 2 * 1.814e9 / (0.5 * 67e12) + 11'689'512.0 * 32 / (0.5 * 3350e9);
  EXPECT_NEAR(compute_ps / 1e12 / expected, 1, 0.01);
}

TEST(LayeredModelTest, WhatCannotBeIsRefused) {
  const auto findings = [](const std::string& set) {
    const std::string text = LoadedPlan(Text("vgg-11"), {set}).findings;
    const std::string place = "--set " + set + ": error: ";
    EXPECT_EQ(text.rfind(place, 0), 0u) << text;
    return text.substr(std::min(place.size(), text.size()));
  };
  EXPECT_EQ(findings("model.layers=3"),
            "model.layers: \"vgg-11\" is no transformer (expected precision beside it, or none)\n");
  EXPECT_EQ(findings("parallelism.tensor=2"),
            "parallelism.tensor: the model is no transformer (expected none: it is data parallel "
            "only)\n");
  EXPECT_EQ(findings("parallelism.order=[DATA, TENSOR, CONTEXT, PIPELINE]"),
            "parallelism.order[0]: there is one dimension (expected none)\n");
  EXPECT_EQ(findings("training.sequence=64"),
            "training.sequence: the model is no transformer (expected none)\n");
  EXPECT_EQ(findings("training.zero=ZERO_3"),
            "training.zero: layers of this model are not gathered one by one (expected ZERO_0 to "
            "ZERO_2)\n");
  EXPECT_EQ(findings("expert_routing={ gate: ZIPF }"),
            "expert_routing: the model is no transformer (expected training only)\n");
}

TEST(LayeredModelTest, WhatAPlanSaysChangesItsOperations) {
  const Trace reference = TraceOf("vgg-11");
  for (const char* const set :
       {"model.precision=FP16", "training.micro_batch=32", "training.micro_batches=3",
        "training.zero=ZERO_1", "training.zero=ZERO_2", "training.gradient_precision=FP16",
        "training.gradient_bucket=\"1MiB\"", "training.overlap_gradients=false",
        "compute.part_overhead=\"1us\"", "parallelism.data=4"}) {
    const Trace changed = TraceOf("vgg-11", {set});
    EXPECT_FALSE(changed.rank_count == reference.rank_count &&
                 changed.operations[GlobalRank{0}] == reference.operations[GlobalRank{0}])
        << set;
  }
}

}  // namespace
}  // namespace railyard
