// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/inference_plan.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "workloads/plans/layer_work.h"
#include "workloads/plans/rank_groups.h"
#include "workloads/plans/trace_builder.h"

namespace railyard {
namespace {

// One pass through the model.
struct InferenceStep {
  uint64_t sequences = 0;
  uint64_t tokens_each = 0;
  uint64_t tokens_before = 0;  // of each sequence, in the cache
};

class InferenceSynthesis {
 public:
  explicit InferenceSynthesis(const Plan& plan)
      : plan_(plan),
        model_(plan.model),
        inference_(std::get<Inference>(plan.job)),
        tensor_(plan.parallelism.tensor()),
        element_(DatatypeOf(model_.precision)),
        dense_(model_, 0, tensor_),
        last_(model_, model_.layers - 1, tensor_) {}

  std::vector<TraceOperation> Program() {
    operations_.reserve(InferenceOperationCount(plan_));
    for (uint32_t first = 0; first < inference_.queries; first += inference_.batch) {
      AddStep({.sequences = inference_.batch, .tokens_each = inference_.prompt_tokens});
      for (uint32_t token = 1; token < inference_.output_tokens; ++token) {
        AddStep({.sequences = inference_.batch,
                 .tokens_each = 1,
                 .tokens_before = uint64_t{inference_.prompt_tokens} + token - 1});
      }
    }
    return std::move(operations_);
  }

 private:
  void AddStep(const InferenceStep& step) {
    const uint64_t tokens = step.sequences * step.tokens_each;
    const GivenTimes* const given = plan_.compute.given ? &*plan_.compute.given : nullptr;
    const AttentionInput input = InputOf(step);
    const int64_t attention_ps =
        given != nullptr ? given->attention_ps : TimePs(last_.Attention(input));
    // Of layers without experts, and with them.
    const std::array<int64_t, 2> feed_forward_ps = {
        given != nullptr ? given->feed_forward_ps : TimePs(dense_.FeedForward(tokens)),
        given != nullptr ? given->feed_forward_ps : TimePs(last_.FeedForward(tokens))};

    AddAllReduce(tokens,
                 given != nullptr ? given->embedding_ps : TimePs(EmbeddingWork(model_, tokens)));
    for (uint32_t layer = 0; layer < model_.layers; ++layer) {
      AddAllReduce(tokens, attention_ps);
      const bool has_experts = model_.HasExperts(layer);
      AddAllReduce(tokens, feed_forward_ps[has_experts ? 1 : 0]);
      if (has_experts && inference_.separate_shared_reduction) AddAllReduce(tokens, 0);
    }
    Add({.kind = CollectiveKind::kAllGather,
         .count = step.sequences * VocabularyShare(model_, tensor_),
         .datatype = element_,
         .compute_before_ps = given != nullptr
                                  ? given->output_layer_ps
                                  : TimePs(OutputWork(model_, step.sequences, tensor_))});
  }

  AttentionInput InputOf(const InferenceStep& step) const {
    const uint64_t tokens = step.sequences * step.tokens_each;
    if (step.tokens_before == 0) {
      return {.tokens = tokens,
              .attended_pairs = AttendedPairs(model_, step.sequences, step.tokens_each)};
    }
    // One new token each: it attends to itself and all before it.
    const uint64_t attended = step.sequences * (step.tokens_before + 1);
    return {.tokens = tokens,
            .attended_pairs = static_cast<double>(attended),
            .cached_tokens = attended};
  }

  int64_t TimePs(const Work& work) const {
    return ComputeTimePs(plan_.compute, model_.precision, work);
  }

  void AddAllReduce(uint64_t tokens, int64_t compute_before_ps) {
    Add({.kind = CollectiveKind::kAllReduce,
         .count = tokens * model_.hidden,
         .datatype = element_,
         .compute_before_ps = compute_before_ps});
  }

  void Add(const TraceOperation& operation) { operations_.push_back(operation); }

  const Plan& plan_;
  const ModelConfig& model_;
  const Inference& inference_;
  const uint32_t tensor_;
  const Datatype element_;
  const LayerWork dense_;  // of the first layer
  const LayerWork last_;   // of the last layer, which has experts if any has
  std::vector<TraceOperation> operations_;
};

}  // namespace

uint64_t InferenceOperationCount(const Plan& plan) {
  const auto& inference = std::get<Inference>(plan.job);
  const ModelConfig& model = plan.model;
  const uint64_t expert_layers = model.experts ? model.layers - model.experts->dense_layers : 0;
  const uint64_t per_step = 1 + 2 * uint64_t{model.layers} +
                            (inference.separate_shared_reduction ? expert_layers : 0) + 1;
  return inference.queries / inference.batch * uint64_t{inference.output_tokens} * per_step;
}

Trace SynthesizeInference(const Plan& plan) {
  const RankGroups groups(plan.parallelism);
  TraceBuilder builder(groups.rank_count());
  const std::vector<uint32_t> ranks = groups.GroupOf(PlanPlace{}, Dimension::kTensor);
  builder.AddCommunicator("tensor", ranks);
  builder.SetProgram(ranks, InferenceSynthesis(plan).Program());
  return builder.Take("plan");
}

}  // namespace railyard
