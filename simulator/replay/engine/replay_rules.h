// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/replay/episodes/replay_cache_mode.h"
#include "simulator/transport/stacks/network_stack_settings.h"
#include "simulator/units/job_ids.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/layout/communicator_planners.h"
#include "workloads/nccl/gpu_costs.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Holds the rules by which collectives become transfers, and the costs of GPUs and proxies.
struct ReplayRules {
  NcclSettings nccl{};
  CommunicatorPlanners planners{};  // of the job's communicators; if empty, the replay makes them
  NetworkStackSettings stack{};
  GpuCosts gpu{};
  ReplayCacheMode cache = ReplayCacheMode::kOn;
  bool lists_obstacles = true;     // makes ReplayEngine::replay_obstacles() list them
  bool partition_episodes = true;  // enables episodes of partitions
  uint64_t seed = 1;               // of the ranks' skews
  bool has_load = false;           // a fault makes GPUs send other data than operations'
  // The links and GPUs that faults may affect.
  std::vector<LinkId> faulty_links{};
  std::vector<GpuIndex> faulty_gpus{};
  // Keeps critical paths of collectives (CallLedger::paths(), waits()).
  bool keep_paths = false;
  // Keeps the start and end of each call of this rank (CallLedger::calls_kept()).
  GlobalRank kept_rank = GlobalRank::kNone;
  // The starts of these collectives are reported to the observer and, if they are planned as a
  // whole, their progress.
  std::vector<CollectiveIndex> watched{};
};

}  // namespace railyard
