// SPDX-License-Identifier: GPL-2.0-only
// Identifies the operations of a job by a rank and a place in its program, or by a number among the
// operations of all ranks. The numbers order events, so an operation keeps its number even if its
// rank moves to another GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/diagnostics/check.h"
#include "simulator/replay/streams/operation_event.h"
#include "topologies/graph/graph_ids.h"
#include "workloads/job/job.h"
#include "workloads/layout/gpu_of_rank.h"

namespace railyard {

// Identifies an operation of a rank by its place in the rank's program.
struct Call {
  GlobalRank rank{};
  uint32_t index = 0;  // into Job::operations[rank]

  GpuIndex gpu() const { return GpuOf(rank); }
  bool operator==(const Call&) const = default;
};

class CallTable {
 public:
  // `job` must outlive this.
  explicit CallTable(const Job& job) : job_(job), part_of_rank_(job.PartsOfRanks()) {
    uint64_t numbered = 0;
    for (GlobalRank rank{0}; rank < job.rank_count; ++rank) {
      first_number_.push_back(static_cast<uint32_t>(numbered));
      numbered += job.operations[rank].size();
    }
    SIM_CHECK(numbered < OperationEvent::kNumberEnd, "more calls than can be numbered");
    count_ = static_cast<uint32_t>(numbered);
  }

  const Job& job() const { return job_; }
  uint32_t count() const { return count_; }
  CallNumber NumberOf(const Call& call) const {
    return CallNumber{first_number_[call.rank] + call.index};
  }
  Call CallOf(GlobalRank rank, CallNumber number) const {
    return {rank, number - first_number_[rank]};
  }
  const JobOperation& OperationOf(const Call& call) const {
    return job_.operations[call.rank][call.index];
  }
  // Returns the number of the call's collective. Precondition, here and below: the call is not
  // computation.
  CollectiveIndex CollectiveNumberOf(const Call& call) const {
    return job_.CollectiveOf(call.rank, OperationOf(call));
  }
  const JobCollective& CollectiveOf(const Call& call) const {
    return job_.collectives[CollectiveNumberOf(call)];
  }
  // Returns the part of the job to which a rank belongs; PartIndex::kNone if none.
  PartIndex PartOf(GlobalRank rank) const { return part_of_rank_[rank]; }
  // Returns the number of ranks, i.e. of GPUs, of a part.
  uint32_t RankCountOf(PartIndex part) const {
    return static_cast<uint32_t>(std::ranges::count(part_of_rank_, part));
  }

  // Must be called after these ranks have been swapped in the job, one pair after the other; their
  // operations keep their numbers.
  void Relocate(std::span<const std::pair<GlobalRank, GlobalRank>> swapped) {
    for (const auto& [a, b] : swapped) std::swap(first_number_[a], first_number_[b]);
    part_of_rank_ = job_.PartsOfRanks();
  }

 private:
  const Job& job_;
  std::vector<uint32_t> first_number_;  // by rank
  std::vector<PartIndex> part_of_rank_;
  uint32_t count_ = 0;
};

}  // namespace railyard
