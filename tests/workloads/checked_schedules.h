// SPDX-License-Identifier: GPL-2.0-only
// Schedules of NCCL's that tests of CheckSchedule() look at.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workloads/collectives/schedule_check.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard::testing {

inline JobCollective Collective(CollectiveKind kind, uint64_t bytes, RankIndex root = {}) {
  JobCollective collective;
  collective.kind = kind;
  collective.count = bytes;
  collective.datatype = Datatype::kInt8;
  collective.root = root;
  return collective;
}

// Checks all ranks' point-to-point schedules of one operation.
inline std::string CheckP2p(const NcclPlanner& planner, const ScheduleSubject& subject,
                            const std::vector<std::vector<P2pCall>>& calls) {
  std::vector<std::shared_ptr<const CollectiveSchedule>> schedules;
  for (RankIndex rank{0}; rank < calls.size(); ++rank) {
    schedules.push_back(
        planner.PlanP2p(rank, calls[rank].data(), static_cast<uint32_t>(calls[rank].size())));
  }
  return CheckSchedule(
      subject, static_cast<uint32_t>(calls.size()),
      [&](uint32_t rank) -> const CollectiveSchedule& { return *schedules[rank]; });
}

}  // namespace railyard::testing
