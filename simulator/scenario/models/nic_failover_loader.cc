// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/nic_failover_loader.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/scenario/faults/fault_targets.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/transport/stacks/network_stacks.h"

namespace railyard {
namespace {

// The NICs that the patterns name, ascending. Empty after a finding.
std::vector<NicPlace> NamedNics(const ProtoCursor& cursor, const FabricGraph& fabric,
                                Diagnostics& diagnostics) {
  std::vector<NicPlace> nics;
  std::set<DeviceId> named;
  const auto& message = cursor.As<protos::NicFailover>();
  for (int i = 0; i < message.unusable_size(); ++i) {
    const std::string& pattern = message.unusable(i);
    bool fits = false;
    for (const DeviceId gpu : fabric.gpus()) {
      const auto nic = fabric.NicOfGpu(gpu);
      if (!nic || !FitsPattern(pattern, fabric.device(*nic).name)) continue;
      fits = true;
      if (!named.insert(*nic).second) continue;
      const Device& device = fabric.device(gpu);
      nics.push_back({device.server, static_cast<uint32_t>(device.local_index)});
    }
    if (!fits) {
      cursor.Error(
          diagnostics, "unusable",
          fmt::format("{} is no NIC of a GPU (expected e.g. \"server1/nic3\")", Quote(pattern)), i);
    }
  }
  return nics;
}

// Returns whether every server keeps a NIC, or with REPLAN some rail is whole on all of them.
bool LeavesEnough(const FabricGraph& fabric, const NcclSettings& nccl) {
  std::set<ServerIndex> servers;
  std::set<ServerIndex> servers_left;
  std::set<int32_t> rails;
  std::set<int32_t> rails_hit;
  for (const DeviceId gpu : fabric.gpus()) {
    const Device& device = fabric.device(gpu);
    const NicPlace place{device.server, static_cast<uint32_t>(device.local_index)};
    const auto& nics = nccl.unusable_nics;
    const bool is_usable = std::find(nics.begin(), nics.end(), place) == nics.end();
    servers.insert(device.server);
    rails.insert(device.local_index);
    if (is_usable) servers_left.insert(device.server);
    if (!is_usable) rails_hit.insert(device.local_index);
  }
  return nccl.nic_policy == NicPolicy::kReplan ? rails_hit.size() < rails.size()
                                               : servers_left.size() == servers.size();
}

// Checks that the job's rings can avoid the NICs that are unusable from the start.
void CheckRings(const ProtoCursor& cursor, const FabricGraph& fabric, const Job& job,
                const NcclSettings& nccl, Diagnostics& diagnostics) {
  const bool is_ring =
      std::all_of(job.collectives.begin(), job.collectives.end(),
                  [](const JobCollective& c) { return c.forced_algorithm == Algorithm::kRing; });
  const bool has_p2p = std::any_of(job.collectives.begin(), job.collectives.end(),
                                   [](const JobCollective& c) { return c.is_p2p(); });
  if (!is_ring || has_p2p || !nccl.own_algorithms.empty()) {
    cursor.Error(diagnostics, "policy",
                 "is of rings alone where NICs are unusable from the start (expected "
                 "workload.algorithm: RING, no Send, Recv or collective made of them, and no "
                 "custom algorithm)");
  }
  for (const TraceCommunicator& communicator : job.communicators) {
    if (communicator.ranks.size() == fabric.gpus().size() || communicator.ranks.empty()) continue;
    std::set<ServerIndex> servers;
    for (const GlobalRank rank : communicator.ranks) {
      servers.insert(fabric.device(fabric.gpus()[rank]).server);
    }
    if (servers.size() == 1) continue;
    cursor.Error(diagnostics, "policy",
                 fmt::format("does not know communicator {} of some GPUs of several servers "
                             "(expected all GPUs, or those of one server)",
                             Quote(communicator.name)));
    return;
  }
}

void LoadUnusable(const ProtoCursor& cursor, const FabricGraph& fabric, const Job& job,
                  NcclSettings& nccl, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  nccl.unusable_nics = NamedNics(cursor, fabric, diagnostics);
  if (diagnostics.error_count() > errors_before) return;
  if (!LeavesEnough(fabric, nccl)) {
    cursor.Error(diagnostics, "unusable",
                 nccl.nic_policy == NicPolicy::kReplan
                     ? "leaves no rail whole (expected one that has its NIC in every server)"
                     : "leaves a server without a NIC (expected one in each)");
  }
  CheckRings(cursor, fabric, job, nccl, diagnostics);
}

}  // namespace

void LoadNicFailover(const ProtoCursor& scenario, const FabricGraph& fabric,
                     const LoadedWorkload& workload, const NicSettings& nic,
                     const NetIbSettings& net_ib, NcclSettings& nccl, Diagnostics& diagnostics) {
  if (!scenario.Has("nic_failover")) return;
  const ProtoCursor cursor = scenario.Child("nic_failover");
  const std::string transport = scenario.Text("transport", "");
  const NetworkStackTraits* const traits = FindNetworkStackTraits(transport);
  if (!transport.empty() && traits == nullptr) return;  // reported
  if (traits != nullptr && !traits->moves_connections) {
    scenario.Error(diagnostics, "nic_failover",
                   fmt::format("has no effect on transport {}, which has no queue pairs to move "
                               "(expected transport: \"rdma\", or no nic_failover)",
                               Quote(transport)));
    return;
  }
  if (!cursor.Has("policy")) {
    cursor.Missing(diagnostics, "policy", "PXN or REPLAN");
    return;
  }
  const int errors_before = diagnostics.error_count();
  const auto& message = cursor.As<protos::NicFailover>();
  nccl.nic_policy =
      message.policy() == protos::NicFailover::REPLAN ? NicPolicy::kReplan : NicPolicy::kPxn;
  if (!nccl.UsesPxn()) {
    cursor.Error(diagnostics, "policy",
                 nccl.gpu_direct() ? "needs PXN (expected nccl.PXN_DISABLE: false)"
                                   : "needs PXN, which TCP sockets have not (expected RDMA)");
  }
  if (cursor.Size("unusable") > 0) {
    LoadUnusable(cursor, fabric, workload.job, nccl, diagnostics);
  } else if (!nic.link_aggregation || net_ib.ib_qps_per_connection > 1) {
    cursor.Error(diagnostics, "policy",
                 "moves connections of one queue pair (expected nic.link_aggregation: true and "
                 "nccl.IB_QPS_PER_CONNECTION: 1, or no nic_failover)");
  }
  // Rings are not planned around NICs that they cannot avoid.
  if (diagnostics.error_count() > errors_before) nccl.unusable_nics.clear();
}

}  // namespace railyard
