// SPDX-License-Identifier: GPL-2.0-only
// Communicator layouts for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard::testing {

// A communicator over `gpus` GPUs of each node in turn, from local index 0.
inline CommunicatorLayout Nodes(const std::vector<uint32_t>& gpus, uint32_t gpus_per_server = 8) {
  CommunicatorLayout layout;
  layout.gpus_per_server = gpus_per_server;
  for (uint32_t node = 0; node < gpus.size(); ++node) {
    for (uint32_t local = 0; local < gpus[node]; ++local) layout.ranks.push_back({node, local});
  }
  return layout;
}

inline CommunicatorLayout Nodes(uint32_t node_count, uint32_t gpus, uint32_t gpus_per_server = 8) {
  return Nodes(std::vector<uint32_t>(node_count, gpus), gpus_per_server);
}

// `rank_count` ranks that fill servers of eight one after the other.
inline CommunicatorLayout Filled(uint32_t rank_count) {
  CommunicatorLayout layout;
  for (uint32_t rank = 0; rank < rank_count; ++rank) layout.ranks.push_back({rank / 8, rank % 8});
  return layout;
}

inline std::shared_ptr<const CollectiveSchedule> PlanRing(const NcclPlanner& planner,
                                                          const JobCollective& collective) {
  return planner.Plan(collective, {Algorithm::kRing, Protocol::kSimple});
}

}  // namespace railyard::testing
