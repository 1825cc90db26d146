// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/training/training_plan.h"

#include <array>
#include <initializer_list>
#include <map>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "workloads/plans/parallelism/rank_groups.h"
#include "workloads/plans/parallelism/stage_group.h"
#include "workloads/plans/trace_builder.h"
#include "workloads/plans/training/stage_exchanges.h"
#include "workloads/plans/training/stage_program.h"

namespace railyard {
namespace {

class TrainingSynthesis {
 public:
  explicit TrainingSynthesis(const Plan& plan)
      : plan_(plan), groups_(plan.parallelism), builder_(groups_.rank_count()) {}

  Trace Build() {
    const uint32_t stages = plan_.parallelism.pipeline();
    for (uint32_t stage = 0; stage < stages; ++stage) {
      if (plan_.parallelism.expert > 1) {
        SetExpertPrograms(stage);
        continue;
      }
      std::vector<TraceOperation> program = StageProgram(plan_, stage);
      const std::vector<StageGroup> groups = NumberGroups(program);
      std::vector<GlobalRank> ranks;
      for (GlobalRank rank{0}; rank < groups_.rank_count(); ++rank) {
        if (StageOf(groups_.PlaceOf(rank)) != stage) continue;
        ranks.push_back(rank);
        SetCommunicators(rank, groups);
      }
      builder_.SetProgram(ranks, std::move(program));
    }
    return builder_.Take("plan");
  }

 private:
  // Ranks of an expert-parallel group hold different experts, and get different tokens.
  void SetExpertPrograms(uint32_t stage) {
    for (uint32_t group = 0; group < plan_.parallelism.ExpertGroups(); ++group) {
      const StageExchanges exchanges(plan_, stage, group);
      for (GlobalRank rank{0}; rank < groups_.rank_count(); ++rank) {
        const PlanPlace& place = groups_.PlaceOf(rank);
        const RankGroups::ExpertPlace expert = groups_.ExpertPlaceOf(place);
        if (StageOf(place) != stage || expert.group != group) continue;
        std::vector<TraceOperation> program = StageProgram(plan_, stage, &exchanges, expert.place);
        SetCommunicators(rank, NumberGroups(program));
        builder_.SetProgram(rank, std::move(program));
      }
    }
  }

  // Numbers the groups of a stage's program in the order of their first calls.
  static std::vector<StageGroup> NumberGroups(std::vector<TraceOperation>& program) {
    std::vector<StageGroup> groups;
    std::array<uint32_t, kStageGroupCount> number;
    number.fill(kUnknown);
    for (TraceOperation& operation : program) {
      if (operation.kind == CollectiveKind::kCompute) continue;
      uint32_t& of_group = number[operation.communicator];
      if (of_group == kUnknown) {
        of_group = static_cast<uint32_t>(groups.size());
        groups.push_back(static_cast<StageGroup>(operation.communicator));
      }
      operation.communicator = of_group;
    }
    return groups;
  }

  void SetCommunicators(GlobalRank rank, const std::vector<StageGroup>& groups) {
    std::vector<uint32_t> communicators;
    for (const StageGroup group : groups) {
      communicators.push_back(KnownCommunicatorOf(group, groups_.PlaceOf(rank)));
    }
    builder_.SetCommunicators(rank, std::move(communicators));
  }

  // Lists a group's ranks once, not once for each of them.
  uint32_t KnownCommunicatorOf(StageGroup group, const PlanPlace& place) {
    const auto [it, is_new] = known_.try_emplace({group, WhatMembersShare(group, place)}, 0);
    if (is_new) it->second = CommunicatorOf(group, place);
    return it->second;
  }

  // Equal for the members of a group, different for other groups of its kind.
  PlanPlace WhatMembersShare(StageGroup group, PlanPlace place) const {
    const auto without = [&](std::initializer_list<Dimension> dimensions) {
      for (const Dimension dimension : dimensions) place[static_cast<size_t>(dimension)] = 0;
    };
    const RankGroups::ExpertPlace expert = groups_.ExpertPlaceOf(place);
    switch (group) {
      case StageGroup::kTensor:
        without({Dimension::kTensor});
        break;
      case StageGroup::kContext:
        without({Dimension::kContext});
        break;
      case StageGroup::kData:
        without({Dimension::kContext, Dimension::kData});
        break;
      case StageGroup::kExpert:
      case StageGroup::kExpertData:
        without({Dimension::kTensor, Dimension::kContext});
        place[static_cast<size_t>(Dimension::kData)] =
            group == StageGroup::kExpert ? expert.group : expert.place;
        break;
      case StageGroup::kNorm:
        if (NormIsOverAllRanks()) return {};
        without({Dimension::kTensor, Dimension::kPipeline});
        break;
      case StageGroup::kAll:
        return {};
      default:  // two ranks, found as quickly
        break;
    }
    return place;
  }

  uint32_t CommunicatorOf(StageGroup group, const PlanPlace& place) {
    switch (group) {
      case StageGroup::kTensor:
        return builder_.FindCommunicator("tensor", groups_.GroupOf(place, Dimension::kTensor));
      case StageGroup::kContext:
        return builder_.FindCommunicator("context", groups_.GroupOf(place, Dimension::kContext));
      case StageGroup::kData:
        return builder_.FindCommunicator(
            "data", groups_.GroupOf(place, Dimension::kContext, Dimension::kData));
      case StageGroup::kEmbedding:
        return builder_.FindCommunicator("embedding",
                                         {AtStage(place, 0), AtStage(place, stages() - 1)});
      case StageGroup::kActivationIn:
        return builder_.FindCommunicator(
            "activations", {AtStage(place, StageOf(place) + stages() - 1), groups_.RankAt(place)});
      case StageGroup::kActivationOut:
        return builder_.FindCommunicator(
            "activations", {groups_.RankAt(place), AtStage(place, StageOf(place) + 1)});
      case StageGroup::kGradientIn:
        return builder_.FindCommunicator(
            "gradients", {AtStage(place, StageOf(place) + 1), groups_.RankAt(place)});
      case StageGroup::kExpert:
        return builder_.FindCommunicator("expert", groups_.ExpertGroupOf(place));
      case StageGroup::kExpertData:
        return builder_.FindCommunicator("expert-data", groups_.ExpertDataGroupOf(place));
      case StageGroup::kNorm:
        return builder_.FindCommunicator("norm", NormGroupOf(place));
      case StageGroup::kAll:
        return builder_.FindCommunicator("all", AllRanks());
      case StageGroup::kGradientOut:
        break;
    }
    return builder_.FindCommunicator(
        "gradients", {groups_.RankAt(place), AtStage(place, StageOf(place) + stages() - 1)});
  }

  // The ranks that hold a replica's gradients between them, as Megatron-LM's model-parallel group;
  // all ranks where replicas hold different ones (its distributed optimizer, FSDP, experts).
  std::vector<GlobalRank> NormGroupOf(const PlanPlace& place) const {
    if (NormIsOverAllRanks()) return AllRanks();
    return groups_.GroupOf(place, Dimension::kTensor, Dimension::kPipeline);
  }
  bool NormIsOverAllRanks() const {
    return std::get<Training>(plan_.job).zero != 0 || plan_.parallelism.expert > 1;
  }
  std::vector<GlobalRank> AllRanks() const {
    std::vector<GlobalRank> all(groups_.rank_count());
    std::iota(all.begin(), all.end(), GlobalRank{0});
    return all;
  }

  uint32_t stages() const { return plan_.parallelism.pipeline(); }
  static uint32_t StageOf(const PlanPlace& place) {
    return place[static_cast<size_t>(Dimension::kPipeline)];
  }
  GlobalRank AtStage(PlanPlace place, uint32_t stage) const {
    place[static_cast<size_t>(Dimension::kPipeline)] = stage % stages();
    return groups_.RankAt(place);
  }

  static constexpr uint32_t kUnknown = UINT32_MAX;

  const Plan& plan_;
  const RankGroups groups_;
  TraceBuilder builder_;
  std::map<std::pair<StageGroup, PlanPlace>, uint32_t> known_;  // communicators
};

}  // namespace

uint64_t TrainingOperationCount(const Plan& plan) {
  const uint32_t stages = plan.parallelism.pipeline();
  const uint64_t bound = StageOperationsBound(plan) * stages;
  if (bound > kPlanOperationsMax) return bound;
  if (plan.parallelism.expert > 1) return bound * plan.parallelism.StageRanks();
  uint64_t count = 0;
  for (uint32_t stage = 0; stage < stages; ++stage) count += StageProgram(plan, stage).size();
  return count * (plan.parallelism.RankCount() / stages);
}

Trace SynthesizeTraining(const Plan& plan) { return TrainingSynthesis(plan).Build(); }

}  // namespace railyard
