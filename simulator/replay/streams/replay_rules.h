// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/execution/lanes/gpu_costs.h"
#include "simulator/execution/paths/communicator_planners.h"
#include "simulator/replay/episodes/replay_cache_mode.h"
#include "simulator/transport/contract/network_stack.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// The rules by which collectives become transfers, and the costs of the GPUs' side of them.
struct ReplayRules {
  NcclSettings nccl;
  CommunicatorPlanners planners{};  // of the job's communicators; empty: the replay makes them
  std::vector<NicVariant> nic_variants{};  // NICs that are set up otherwise than the rest
  NetIbSettings net_ib;
  NetSocketSettings net_socket;
  std::string transport = "rdma";  // name of a network stack
  bool uses_flows = false;         // flow mode
  GpuCosts gpu;
  ReplayCacheMode cache = ReplayCacheMode::kOn;
  bool lists_obstacles = true;     // to replaying: ReplayEngine::replay_obstacles()
  bool partition_episodes = true;  // enables episodes of partitions
  uint64_t seed = 1;               // of the ranks' skews
  bool has_load = false;           // some fault has GPUs send what is no operation's
  // Links and GPUs that some fault may affect.
  std::vector<LinkId> faulty_links{};
  std::vector<GpuIndex> faulty_gpus{};
  // Keeps critical paths of collectives (paths(), waits()).
  bool keep_paths = false;
};

}  // namespace railyard
