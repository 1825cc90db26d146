// SPDX-License-Identifier: GPL-2.0-only
// What a replay knows of its job before it starts: communicators, calls, and which are alike.
#include <map>
#include <utility>
#include <vector>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/streams/replay_engine.h"
#include "simulator/units/mix64.h"

namespace railyard {

void ReplayEngine::BuildCommunicators() {
  for (uint32_t i = 0; i < job_.communicators.size(); ++i) {
    communicators_.push_back(BuildCommunicator(i));
  }
}

ReplayEngine::Communicator ReplayEngine::BuildCommunicator(uint32_t number) const {
  const TraceCommunicator& traced = job_.communicators[number];
  Communicator communicator;
  communicator.gpus = traced.ranks;
  communicator.planner = std::make_unique<NcclPlanner>(LayoutOf(graph_, traced), rules_.nccl);
  return communicator;
}

void ReplayEngine::BuildExecutor() {
  LaneObserver& observer = *this;
  const NetworkStackSettings stack = {
      .name = rules_.transport, .nic = nic_, .ib = rules_.net_ib, .socket = rules_.net_socket};
  executor_ =
      std::make_unique<LaneExecutor>(graph_, network_, routing_, rules_.gpu, stack, observer);
  registry_.Add(network_);
  executor_->RegisterState(registry_);
  for (uint32_t i = 0; i < communicators_.size(); ++i) {
    executor_->connection_table().AddCommunicator(
        {communicators_[i].gpus, communicators_[i].planner.get(), job_.PartOf(i)});
  }
  if (rules_.keep_paths) executor_->KeepPaths();
  if (rules_.nccl.nic_policy) executor_->FailOver(*rules_.nccl.nic_policy);
}

void ReplayEngine::CountCalls() {
  call_count_.resize(job_.collectives.size());
  first_number_.resize(job_.rank_count);
  const auto ranks = job_.called.RanksOfPrograms();
  for (uint32_t list = 0; list < ranks.size(); ++list) {
    const std::vector<uint32_t>& called = job_.called.program(list);
    for (const uint32_t collective : called) {
      call_count_[collective] += static_cast<uint32_t>(ranks[list].size());
    }
    if (called.empty()) continue;
    for (const uint32_t rank : ranks[list]) parts_[part_of_rank_[rank]].calls_left += called.size();
  }
  uint64_t numbered = 0;
  for (uint32_t rank = 0; rank < job_.rank_count; ++rank) {
    first_number_[rank] = static_cast<uint32_t>(numbered);
    numbered += job_.operations[rank].size();
  }
  SIM_CHECK(numbered < kBegins, "more calls than can be numbered");
  for (const uint32_t calls : call_count_) operations_left_ += calls;
}

void ReplayEngine::FindP2pCalls() {
  p2p_calls_.assign(job_.collectives.size(), {});
  for (uint32_t rank = 0; rank < job_.rank_count; ++rank) {
    const std::vector<JobOperation>& operations = job_.operations[rank];
    for (uint32_t index = 0; index < operations.size(); ++index) {
      if (!operations[index].is_p2p) continue;
      p2p_calls_[job_.CollectiveOf(rank, operations[index])].emplace_back(rank, index);
    }
  }
}

void ReplayEngine::DrawSkews() {
  constexpr uint64_t kSkews = 0x736b657773;  // apart from what else the seed draws
  skew_ps_.clear();
  for (const JobPart& part : job_.parts) {
    if (part.rank_skew_max_ps == 0) continue;
    skew_ps_.resize(job_.rank_count);
    const uint64_t values = static_cast<uint64_t>(part.rank_skew_max_ps) + 1;
    for (const uint32_t rank : part.global_ranks) {
      skew_ps_[rank] = static_cast<int64_t>(Mix64(Mix64(rules_.seed ^ kSkews) ^ rank) % values);
    }
  }
}

// Calls with one number make the same transfers at the same costs, of a rank or of ranks that are
// alike.
void ReplayEngine::NumberPlans() {
  if (rules_.cache == ReplayCacheMode::kOff) return;
  class_of_communicator_ = ClassesOfCommunicators();
  plan_of_collective_.clear();
  plan_of_p2p_.clear();
  std::map<std::pair<uint32_t, PlanKey>, uint32_t> of_collectives;
  uint32_t plans = 0;
  plan_of_collective_.reserve(job_.collectives.size());
  for (const JobCollective& collective : job_.collectives) {
    if (collective.is_p2p()) {
      plan_of_collective_.push_back(kNone);
      continue;
    }
    const auto [it, is_new] = of_collectives.try_emplace(
        {class_of_communicator_[collective.communicator], KeyOf(collective)}, plans);
    if (is_new) ++plans;
    plan_of_collective_.push_back(it->second);
  }
  NumberP2pLists();
  for (uint32_t rank = 0; rank < job_.rank_count; ++rank) {
    const std::vector<uint32_t>& lists = p2p_lists_[job_.operations.program_of_rank(rank)];
    for (uint32_t index = 0; index < lists.size(); ++index) {
      if (!job_.operations[rank][index].is_p2p) continue;
      if (plan_of_p2p_.try_emplace(P2pPlanKey({rank, index}), plans).second) ++plans;
    }
  }
}

// What operations send and receive, and whether in place.
void ReplayEngine::NumberP2pLists() {
  std::map<std::vector<uint64_t>, uint32_t> numbers;  // by each call's peer and signed bytes
  p2p_lists_.resize(job_.operations.program_count());
  for (uint32_t program = 0; program < p2p_lists_.size(); ++program) {
    const std::vector<JobOperation>& operations = job_.operations.program(program);
    for (uint32_t index = 0; index < operations.size(); ++index) {
      const JobOperation& operation = operations[index];
      if (!operation.is_p2p) continue;
      std::vector<uint64_t> list = {operation.in_place ? 1u : 0u};
      for (uint32_t i = 0; i < operation.p2p_count; ++i) {
        const P2pCall& call = job_.p2p_calls[operation.p2p_first + i];
        list.push_back(uint64_t{call.peer} << 1 | (call.is_send ? 1 : 0));
        list.push_back(call.bytes);
      }
      p2p_lists_[program].resize(operations.size());
      p2p_lists_[program][index] =
          numbers.try_emplace(std::move(list), static_cast<uint32_t>(numbers.size())).first->second;
    }
  }
}

uint64_t ReplayEngine::P2pPlanKey(const Call& call) const {
  const JobCollective& collective = job_.collectives[CollectiveOf(call)];
  const uint32_t list = p2p_lists_[job_.operations.program_of_rank(call.rank)][call.index];
  return uint64_t{list} << 32 | class_of_communicator_[collective.communicator];
}

uint32_t ReplayEngine::PlanNumberOf(uint32_t rank, uint32_t number) const {
  const Call call{rank, number - first_number_[rank]};
  const uint32_t plan = plan_of_collective_[CollectiveOf(call)];
  return plan != kNone ? plan : plan_of_p2p_.at(P2pPlanKey(call));
}

}  // namespace railyard
