// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/plan_numbers.h"

#include <map>
#include <utility>

namespace railyard {

void PlanNumbers::Number(const PlanCache& plans, std::vector<uint32_t> class_of_communicator) {
  const Job& job = calls_.job();
  class_of_communicator_ = std::move(class_of_communicator);
  of_collective_.clear();
  of_p2p_.clear();
  std::map<std::pair<uint32_t, PlanCache::Key>, uint32_t> numbers;
  uint32_t count = 0;
  of_collective_.reserve(job.collectives.size());
  for (CollectiveIndex id{}; id < job.collectives.size(); ++id) {
    const JobCollective& collective = job.collectives[id];
    if (collective.is_p2p()) {
      of_collective_.push_back(kP2p);
      continue;
    }
    const auto [it, is_new] = numbers.try_emplace(
        {class_of_communicator_[collective.communicator], plans.KeyOf(id)}, count);
    if (is_new) ++count;
    of_collective_.push_back(it->second);
  }
  NumberP2pLists();
  for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
    const std::vector<uint32_t>& lists = p2p_lists_[job.operations.program_of_rank(rank)];
    for (uint32_t index = 0; index < lists.size(); ++index) {
      if (!job.operations[rank][index].is_p2p) continue;
      if (of_p2p_.try_emplace(P2pKey({rank, index}), count).second) ++count;
    }
  }
}

// Numbers what operations send and receive, and whether in place.
void PlanNumbers::NumberP2pLists() {
  const Job& job = calls_.job();
  std::map<std::vector<uint64_t>, uint32_t> numbers;  // by each call's peer and signed bytes
  p2p_lists_.assign(job.operations.program_count(), {});
  for (uint32_t program = 0; program < p2p_lists_.size(); ++program) {
    const std::vector<JobOperation>& operations = job.operations.program(program);
    for (uint32_t index = 0; index < operations.size(); ++index) {
      const JobOperation& operation = operations[index];
      if (!operation.is_p2p) continue;
      std::vector<uint64_t> list = {operation.in_place ? 1u : 0u};
      for (uint32_t i = 0; i < operation.p2p_count; ++i) {
        const P2pCall& call = job.p2p_calls[operation.p2p_first + i];
        list.push_back(uint64_t{call.peer} << 1 | (call.is_send ? 1 : 0));
        list.push_back(call.bytes);
        list.push_back(uint64_t{call.expert.relayed_for} << 32 | call.expert.token_bytes);
        list.push_back(uint64_t{call.expert.server_ranks} << 24 |
                       uint64_t{call.expert.channels} << 16 |
                       uint64_t{call.expert.combines ? 1u : 0u} << 8 |
                       static_cast<uint64_t>(call.expert.kernel));
      }
      p2p_lists_[program].resize(operations.size());
      p2p_lists_[program][index] =
          numbers.try_emplace(std::move(list), static_cast<uint32_t>(numbers.size())).first->second;
    }
  }
}

uint64_t PlanNumbers::P2pKey(const Call& call) const {
  const uint32_t list = p2p_lists_[calls_.job().operations.program_of_rank(call.rank)][call.index];
  return uint64_t{list} << 32 | class_of_communicator_[calls_.CollectiveOf(call).communicator];
}

}  // namespace railyard
