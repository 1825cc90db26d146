// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/inference/inference_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "simulator/units/divide_up.h"
#include "workloads/plans/inference/inference_schedule.h"
#include "workloads/plans/inference/inference_stage.h"
#include "workloads/plans/parallelism/expert_calls.h"
#include "workloads/plans/parallelism/rank_groups.h"
#include "workloads/plans/trace_builder.h"

namespace railyard {
namespace {

class PlanBuilder {
 public:
  explicit PlanBuilder(const Plan& plan)
      : plan_(plan),
        parts_(plan.parallelism),
        inference_(std::get<Inference>(plan.job)),
        groups_(plan.parallelism),
        schedule_(ScheduleInference(plan)),
        builder_(parts_.RankCount() + inference_.prefill_tensor) {}

  Trace Build() {
    for (uint32_t stage = 0; stage < parts_.pipeline(); ++stage) {
      for (uint32_t group = 0; group < parts_.ExpertGroups(); ++group) BuildGroup(stage, group);
    }
    for (uint32_t place = 0; place < inference_.prefill_tensor; ++place) BuildPrefill(place);
    return builder_.Take("plan");
  }

 private:
  static PlanPlace PlaceOf(const InferenceRank& rank) {
    PlanPlace place{};
    place[static_cast<size_t>(Dimension::kTensor)] = rank.tensor;
    place[static_cast<size_t>(Dimension::kData)] = rank.replica;
    place[static_cast<size_t>(Dimension::kPipeline)] = rank.stage;
    return place;
  }

  // The ranks of an expert-parallel group; without, one each.
  void BuildGroup(uint32_t stage, uint32_t group) {
    std::unique_ptr<InferenceExchanges> exchanges;
    if (parts_.expert > 1) {
      exchanges = std::make_unique<InferenceExchanges>(plan_, schedule_, stage, group);
    }
    for (uint32_t place = 0; place < parts_.expert; ++place) {
      const uint32_t index = group * parts_.expert + place;
      const InferenceRank rank{.stage = stage,
                               .replica = index / parts_.tensor(),
                               .tensor = index % parts_.tensor(),
                               .expert_place = place};
      // Ranks of a tensor group that exchange data with no others do the same.
      if (IsTensorOnly() && rank.tensor > 0) continue;
      const InferenceCommunicators communicators = CommunicatorsOf(rank);
      std::vector<TraceOperation> program =
          InferenceProgram(plan_, schedule_, rank, communicators, exchanges.get());
      const PlanPlace at = PlaceOf(rank);
      if (IsTensorOnly()) {
        builder_.SetProgram(groups_.GroupOf(at, Dimension::kTensor), std::move(program));
      } else {
        builder_.SetProgram(groups_.RankAt(at), std::move(program));
      }
    }
  }

  bool IsTensorOnly() const {
    return parts_.pipeline() == 1 && parts_.expert == 1 && inference_.prefill_tensor == 0;
  }

  InferenceCommunicators CommunicatorsOf(const InferenceRank& rank) {
    InferenceCommunicators of;
    const PlanPlace place = PlaceOf(rank);
    const auto at = [&](uint32_t stage) {
      InferenceRank other = rank;
      other.stage = stage;
      return groups_.RankAt(PlaceOf(other));
    };
    // Lists a group's ranks once, not once for each of them.
    const auto [tensor, is_new_tensor] = tensor_groups_.try_emplace({rank.stage, rank.replica}, 0);
    if (is_new_tensor) {
      tensor->second =
          builder_.FindCommunicator("tensor", groups_.GroupOf(place, Dimension::kTensor));
    }
    of.tensor = tensor->second;
    if (parts_.expert > 1) {
      const auto [expert, is_new_expert] =
          expert_groups_.try_emplace({rank.stage, groups_.ExpertPlaceOf(place).group}, 0);
      if (is_new_expert) {
        expert->second = builder_.FindCommunicator("expert", groups_.ExpertGroupOf(place));
      }
      of.expert = expert->second;
    }
    const uint32_t last = parts_.pipeline() - 1;
    if (rank.stage > 0) {
      of.activation_in =
          builder_.FindCommunicator("activations", {at(rank.stage - 1), at(rank.stage)});
    }
    if (rank.stage < last) {
      of.activation_out =
          builder_.FindCommunicator("activations", {at(rank.stage), at(rank.stage + 1)});
    }
    if (last > 0 && (rank.stage == 0 || rank.stage == last)) {
      of.tokens = builder_.FindCommunicator("tokens", {at(last), at(0)});
    }
    if (inference_.prefill_tensor == 0) return of;
    of.caches.resize(1);
    for (uint32_t prefill = 0; prefill < inference_.prefill_tensor; ++prefill) {
      const uint64_t elements = CacheElements(rank, prefill);
      if (elements > 0) {
        of.caches[0].emplace_back(
            builder_.FindCommunicator("cache", {PrefillRank(prefill), at(rank.stage)}), elements);
      }
    }
    return of;
  }

  GlobalRank PrefillRank(uint32_t place) const { return GlobalRank{parts_.RankCount() + place}; }

  // Returns the elements, per token and for a stage's layers, that a decoding rank gets from a
  // prefill rank; 0: nothing. Keys and values are divided over a tensor group by heads; compressed
  // ones are on all its ranks.
  uint64_t CacheElements(const InferenceRank& rank, uint32_t prefill) const {
    const uint32_t senders = inference_.prefill_tensor;
    const uint32_t receivers = parts_.tensor();
    const bool is_whole = plan_.model.latent_attention.has_value();
    // One divides the other.
    const uint32_t per_receiver = is_whole ? 1 : std::max(1u, senders / receivers);
    const uint32_t first = rank.tensor * senders / receivers;
    if (prefill < first || prefill >= first + per_receiver) return 0;
    const auto [first_layer, end_layer] = InferenceLayersOf(plan_, rank.stage);
    const uint64_t elements = CacheElementsPerToken(plan_.model) * (end_layer - first_layer);
    const uint64_t parts =
        is_whole ? 1 : uint64_t{std::min(receivers, plan_.model.kv_heads)} * per_receiver;
    return DivideUp(elements, parts);
  }

  void BuildPrefill(uint32_t place) {
    std::vector<GlobalRank> ranks(inference_.prefill_tensor);
    std::iota(ranks.begin(), ranks.end(), PrefillRank(0));
    InferenceCommunicators of;
    of.tensor = builder_.FindCommunicator("prefill", ranks);
    of.caches.resize(parts_.data());
    for (uint32_t replica = 0; replica < parts_.data(); ++replica) {
      for (uint32_t stage = 0; stage < parts_.pipeline(); ++stage) {
        for (uint32_t tensor = 0; tensor < parts_.tensor(); ++tensor) {
          const InferenceRank rank{.stage = stage, .replica = replica, .tensor = tensor};
          const uint64_t elements = CacheElements(rank, place);
          if (elements == 0) continue;
          of.caches[replica].emplace_back(
              builder_.FindCommunicator("cache",
                                        {PrefillRank(place), groups_.RankAt(PlaceOf(rank))}),
              elements);
        }
      }
    }
    builder_.SetProgram(PrefillRank(place), PrefillProgram(plan_, schedule_, of));
  }

  const Plan& plan_;
  const Parallelism& parts_;
  const Inference& inference_;
  const RankGroups groups_;
  const InferenceSchedule schedule_;
  TraceBuilder builder_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> tensor_groups_;  // by stage and replica
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> expert_groups_;  // by stage and group
};

}  // namespace

uint64_t InferenceOperationCount(const Plan& plan) {
  const auto& inference = std::get<Inference>(plan.job);
  const ModelConfig& model = plan.model;
  const Parallelism& parts = plan.parallelism;
  const uint64_t expert_layers = model.experts ? model.layers - model.experts->dense_layers : 0;
  const uint64_t steps = InferenceStepsBound(inference);
  const uint64_t per_step = 1 + 2 * uint64_t{model.layers} +
                            (inference.separate_shared_reduction ? expert_layers : 0) + 1;
  if (parts.RankCount() == parts.tensor() && parts.expert == 1 && inference.prefill_tensor == 0 &&
      !inference.continuous) {
    return steps * per_step;
  }
  // Bounds the rest: sends and receives, arrivals and waiting for them, a layer's AllToAllvs and
  // the gathers of sequence parallelism.
  constexpr uint64_t kPerStep = 16;
  const uint64_t per_layer = parts.expert > 1 ? 8 + 4 * ExpertPeersBound(plan) : 0;
  const uint64_t caches =
      inference.prefill_tensor > 0
          ? 2 * inference.requests.size() * std::max(parts.RankCount(), inference.prefill_tensor)
          : 0;
  // Every replica takes part in as many steps as the one that has most.
  return (parts.RankCount() + inference.prefill_tensor) *
         (steps * (per_step + kPerStep + model.layers * per_layer) + caches +
          2 * inference.requests.size());
}

Trace SynthesizeInference(const Plan& plan) { return PlanBuilder(plan).Build(); }

}  // namespace railyard
