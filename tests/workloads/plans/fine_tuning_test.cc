// SPDX-License-Identifier: GPL-2.0-only
// Fine-tuning computes and sends what is trained, and nothing for what is frozen. Expected values
// follow from the shapes of GPT-2 (768 wide, 12 layers) and ResNet-18 (torchvision: 11,689,512
// parameters, 20 batch norms over 4,800 channels).
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include "tests/workloads/plans/loaded_plan.h"
#include "tests/workloads/plans/trace_calls.h"
#include "workloads/plans/model/model_config.h"
#include "workloads/plans/plan_volume.h"
#include "workloads/plans/synthesis/synthesize.h"
#include "workloads/plans/workload.pb.h"

namespace railyard {
namespace {

std::string Gpt2(const std::string& parallelism, const std::string& training) {
  return "model { preset: \"gpt-2\" vocabulary: 50304 }\n"
         "parallelism { " +
         parallelism +
         " }\n"
         "compute { accelerator: \"a100-sxm4-80gb\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
         "training { sequence: 1024 micro_batch: 2 micro_batches: 4 " +
         training + " }\n";
}

Trace TraceOf(const std::string& text) {
  const LoadedPlan loaded(text);
  EXPECT_EQ(loaded.findings, "");
  return loaded.plan ? Synthesize(*loaded.plan) : Trace{};
}

int64_t ComputedPs(const Trace& trace, uint32_t rank) {
  int64_t ps = 0;
  for (const TraceOperation& operation : trace.operations[GlobalRank{rank}]) {
    if (operation.stream == 0) ps += operation.compute_before_ps;
  }
  return ps;
}

// Hu et al., section 4.1: r x (in + out) for each matrix.
TEST(FineTuningTest, AdaptersAreAllThatIsReduced) {
  const Trace two = TraceOf(Gpt2("data: 2", "fine_tuning { lora { rank: 16 } }"));
  EXPECT_EQ(CallsOf(two, 0, CollectiveKind::kAllReduce, "data").elements,
            12u * 2 * 16 * (768 + 768));
  const Trace all = TraceOf(Gpt2(
      "data: 2", "fine_tuning { lora { rank: 8 matrices: [QUERY, ATTENTION_OUTPUT, UP, DOWN] } }"));
  EXPECT_EQ(CallsOf(all, 0, CollectiveKind::kAllReduce, "data").elements,
            12u * 8 * (2 * (768 + 768) + 2 * (768 + 3072)));
}

// The half of an adapter that is at a divided matrix's whole side is whole.
TEST(FineTuningTest, TensorParallelismDividesHalfOfAnAdapter) {
  const Trace trace = TraceOf(Gpt2(
      "tensor: 2 data: 2", "fine_tuning { lora { rank: 8 matrices: [QUERY, ATTENTION_OUTPUT] } }"));
  EXPECT_EQ(CallsOf(trace, 0, CollectiveKind::kAllReduce, "data").elements,
            12u * 8 * ((768 + 768 / 2) + (768 / 2 + 768)));
  // The whole half is of each rank's own columns or heads: its gradients are added up, with
  // sequence parallelism or without.
  EXPECT_EQ(CallsOf(trace, 0, CollectiveKind::kAllReduce, "tensor").elements -
                uint64_t{4} * (3 * 2 * 1024 + (4 * 12 + 1) * 2 * 1024 * 768),
            12u * 8 * (768 + 768));
  const Trace sequence =
      TraceOf(Gpt2("tensor: 2 sequence: true data: 2",
                   "fine_tuning { lora { rank: 8 matrices: [QUERY, ATTENTION_OUTPUT] } }"));
  EXPECT_EQ(CallsOf(sequence, 0, CollectiveKind::kAllReduce, "tensor").elements -
                uint64_t{4} * 3 * 2 * 1024,
            12u * 8 * (768 + 768));
}

// Forward all layers, backward the upper 4; the lowest of them needs no gradient of its input.
TEST(FineTuningTest, TheBackwardPassEndsAboveFrozenLayers) {
  const Trace trace = TraceOf(Gpt2("tensor: 2 data: 2", "fine_tuning { frozen_layers: 8 }"));
  EXPECT_EQ(CallsOf(trace, 0, CollectiveKind::kAllReduce, "tensor").count,
            4u * (2 * 12 + (2 * 4 - 1) + 2 + 3));
  const LoadedPlan loaded(Gpt2("data: 2", "fine_tuning { frozen_layers: 8 }"));
  uint64_t trained =
      uint64_t{2} * 768;  // the last norm; the output layer is the embedding, which is frozen
  for (const Weight& weight : LayerWeights(loaded.plan->model, 11)) trained += 4 * weight.elements;
  EXPECT_EQ(CallsOf(Synthesize(*loaded.plan), 0, CollectiveKind::kAllReduce, "data").elements,
            trained);
}

// 12 layers on 2 stages: with the lower 6 frozen nothing comes back over the boundary.
TEST(FineTuningTest, AFrozenStageGetsNoGradients) {
  for (const bool is_frozen : {true, false}) {
    const Trace trace =
        TraceOf(Gpt2("pipeline: 2 data: 2", is_frozen ? "fine_tuning { frozen_layers: 6 }"
                                                      : "fine_tuning { frozen_layers: 5 }"));
    const uint64_t sends = is_frozen ? 0 : 4;
    EXPECT_EQ(CallsOf(trace, 0, CollectiveKind::kRecv, "gradients").count, sends);
    EXPECT_EQ(CallsOf(trace, 2, CollectiveKind::kSend, "gradients").count, sends);
    EXPECT_EQ(CallsOf(trace, 2, CollectiveKind::kRecv, "activations").count, 4u);
    EXPECT_EQ(CallsOf(trace, 0, CollectiveKind::kAllReduce, "data").count, is_frozen ? 0u : 1u);
  }
}

// Given times: a forward pass is 30 us a layer, gradients of inputs and of weights as much each.
// The lowest trained layer's part is not divided further.
TEST(FineTuningTest, FrozenWeightsCostNoComputation) {
  const auto computed_us = [](const std::string& training) {
    return ComputedPs(
               TraceOf("model { layers: 4 hidden: 64 heads: 4 feed_forward: 64 vocabulary: 64 }\n"
                       "parallelism { data: 2 }\n"
                       "compute { given { attention: \"10us\" feed_forward: \"20us\" embedding: "
                       "\"5us\" output_layer: \"7us\" backward_ratio: 2 optimizer: \"1us\" } }\n"
                       "training { sequence: 16 micro_batch: 1 micro_batches: 1 " +
                       training + " }\n"),
               0) /
           1'000'000;
  };
  EXPECT_EQ(computed_us(""), 3 * 4 * 30 + 5 + 5 + 3 * 7 + 1);
  EXPECT_EQ(computed_us("fine_tuning { frozen_layers: 3 }"), 4 * 30 + 2 * 30 + 5 + 3 * 7 + 1);
  EXPECT_EQ(computed_us("fine_tuning { lora { rank: 4 } }"), 4 * 30 + 4 * 30 + 5 + 2 * 7 + 1);
  EXPECT_EQ(computed_us("fine_tuning { frozen_layers: 4 }"), 4 * 30 + 5 + 2 * 7 + 1);
}

// DistributedDataParallel: 124 million parameters of 4 bytes in buckets that a weight fills to 250
// MiB; of 2 bytes they are one.
TEST(FineTuningTest, TrainingBeginsWithBroadcasts) {
  const std::string text = Gpt2("data: 4", "iterations: 2 ddp_broadcasts: true");
  const LoadedPlan loaded(text);
  const Calls half = CallsOf(TraceOf(text), 1, CollectiveKind::kBroadcast, "data");
  EXPECT_EQ(half.count, 1u);
  EXPECT_EQ(half.elements, ParameterCount(loaded.plan->model));
  const LoadedPlan whole(text, {"model.precision=FP32"});
  const Calls full = CallsOf(Synthesize(*whole.plan), 1, CollectiveKind::kBroadcast, "data");
  EXPECT_EQ(full.count, 2u);
  EXPECT_EQ(full.elements, half.elements);
  // Frozen weights are sent as well.
  const LoadedPlan frozen(text, {"training.fine_tuning.frozen_layers=12"});
  EXPECT_EQ(CallsOf(Synthesize(*frozen.plan), 1, CollectiveKind::kBroadcast, "data").elements,
            half.elements);
  // As one ring, from the root on.
  const PlanVolume volume = VolumeOf(TraceOf(text));
  const PlanVolume without = VolumeOf(TraceOf(Gpt2("data: 4", "iterations: 2")));
  EXPECT_EQ(volume.pairs.at({GlobalRank{0}, GlobalRank{1}}) -
                without.pairs.at({GlobalRank{0}, GlobalRank{1}}),
            2 * half.elements);
  EXPECT_EQ(volume.pairs.at({GlobalRank{3}, GlobalRank{0}}),
            without.pairs.at({GlobalRank{3}, GlobalRank{0}}));
}

// Buffers: means and variances are of the parameters' type and share their bucket, counters are
// not; both go again before each iteration.
TEST(FineTuningTest, BatchNormsHaveBuffers) {
  const Trace trace = TraceOf(
      "model { preset: \"resnet-18\" }\nparallelism { data: 4 }\n"
      "compute { accelerator: \"a100-sxm4-80gb\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
      "training { micro_batch: 8 micro_batches: 2 iterations: 3 ddp_broadcasts: true }\n");
  const Calls broadcasts = CallsOf(trace, 0, CollectiveKind::kBroadcast, "data");
  EXPECT_EQ(broadcasts.count, 2u + 3 * 2);
  EXPECT_EQ(broadcasts.elements, 11'689'512u + (1 + 3) * (2 * 4'800 + 20));
}

TEST(FineTuningTest, LowerLayersOfAConvolutionalNetworkAreFrozen) {
  const std::string text =
      "model { preset: \"vgg-11\" }\nparallelism { data: 4 }\n"
      "compute { accelerator: \"a100-sxm4-80gb\" utilisation: 0.5 memory_utilisation: 0.5 }\n"
      "training { micro_batch: 8 micro_batches: 1 fine_tuning { frozen_layers: 10 } }\n";
  // Only VGG-11's last layer is left, 4,096 x 1,000 and a bias.
  EXPECT_EQ(CallsOf(TraceOf(text), 0, CollectiveKind::kAllReduce, "data").elements,
            4'096u * 1'000 + 1'000);
}

TEST(FineTuningTest, EveryFieldChangesTheOperations) {
  const std::string text = Gpt2("tensor: 2 data: 2", "fine_tuning { lora { rank: 8 } }");
  const auto expect_changes = [&](const google::protobuf::Descriptor& type,
                                  const std::string& prefix,
                                  const std::map<std::string, std::string>& values) {
    const Trace before = TraceOf(text);
    for (int i = 0; i < type.field_count(); ++i) {
      const auto value = values.find(type.field(i)->name());
      ASSERT_NE(value, values.end()) << type.field(i)->name();
      const LoadedPlan changed(text, {prefix + value->first + value->second});
      ASSERT_EQ(changed.findings, "");
      EXPECT_NE(before.operations[GlobalRank{0}],
                Synthesize(*changed.plan).operations[GlobalRank{0}])
          << value->first;
    }
  };
  expect_changes(*protos::FineTuning::descriptor(), "training.fine_tuning.",
                 {{"frozen_layers", "=3"}, {"lora", ".rank=32"}});
  expect_changes(*protos::Lora::descriptor(), "training.fine_tuning.lora.",
                 {{"rank", "=4"}, {"matrices", "=[UP]"}});
}

TEST(FineTuningTest, FindingsAreAtTheirFields) {
  const auto finding_of = [](const std::string& training, const std::string& parallelism) {
    const LoadedPlan loaded(Gpt2(parallelism, training));
    EXPECT_FALSE(loaded.plan.has_value()) << training;
    return loaded.findings;
  };
  const auto expect = [&](const std::string& training, const std::string& finding,
                          const std::string& parallelism = "data: 2") {
    EXPECT_NE(finding_of(training, parallelism).find(finding), std::string::npos)
        << finding_of(training, parallelism);
  };
  expect("fine_tuning { }",
         ":4:59: error: training.fine_tuning: freezes nothing (expected frozen_layers or lora)");
  expect("fine_tuning { frozen_layers: 13 }",
         ":4:73: error: training.fine_tuning.frozen_layers: 13 ");
  expect("fine_tuning { frozen_layers: 12 lora { rank: 4 } }",
         "error: training.fine_tuning.frozen_layers: 12 ");
  expect("fine_tuning { lora { } }", "error: training.fine_tuning.lora.rank: ");
  expect("fine_tuning { lora { rank: 4 matrices: [QUERY, GATE] } }",
         "error: training.fine_tuning.lora.matrices[1]: the feed-forward network has no gate");
  expect("fine_tuning { lora { rank: 4 matrices: [UP, UP] } }",
         "error: training.fine_tuning.lora.matrices[1]: is there twice");
  expect("ddp_broadcasts: true",
         "error: training.ddp_broadcasts: there is one replica (expected parallelism.data: 2 or "
         "more)",
         "tensor: 2");
}

}  // namespace
}  // namespace railyard
