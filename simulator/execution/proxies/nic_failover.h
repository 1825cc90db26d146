// SPDX-License-Identifier: GPL-2.0-only
// Moves connections away from failed NICs, during a collective or before they are opened.
// Connections then take detours over other NICs of both servers.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/lane_observer.h"
#include "simulator/execution/proxies/network_proxies.h"
#include "simulator/transport/connections/nic_detours.h"
#include "simulator/units/job_ids.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

class NicFailover {
 public:
  // All references must outlive this.
  struct Parts {
    const FabricGraph& graph;
    const FabricNetwork& network;
    ConnectionTable& table;
    NetworkStack& stack;
    NetworkProxies& proxies;
    LaneObserver& observer;
    MessageSink& sink;       // for the flows of connections
    MessageSink& left_sink;  // for abandoned flows
  };
  // Precondition: the network's stack has queue pairs and detours.
  NicFailover(const Parts& parts, NicPolicy policy);

  // Opens a connection around NICs that are known to have failed. Returns false if it needs no
  // detour.
  bool OpenAround(ConnectionId connection);
  // Must be called when a connection has used up its retries. Moves it, and all other connections
  // of its part of the job that use a NIC that does not answer. Returns false if no NIC is the
  // cause, or if one of them cannot be moved.
  bool TryToMove(ConnectionId connection);
  // Returns whether a NIC of some connection does not answer, so that the connection may be moved
  // once its retries are used up.
  bool MayMoveSome();
  // Forgets the failed NICs that a part of the job knows; called when that part starts again.
  void Forget(PartIndex part) { dead_nics_.erase(part); }
  // Returns the number of connections that were moved or opened on a detour.
  uint64_t count() const { return count_; }

 private:
  bool Answers(DeviceId nic) const;
  DeviceId NicOf(GpuIndex gpu) const {
    return parts_.graph.NicOfGpu(parts_.graph.gpus()[gpu]).value();
  }
  std::set<DeviceId>& DeadNicsOf(const Connection& connection) {
    return dead_nics_[parts_.table.executed(connection.communicator).part];
  }
  // Returns whether a connection may move. Striped connections may not: they have their own
  // failover between ports.
  bool MayMove(const Connection& connection) const {
    return connection.is_on_network() &&
           (connection.is_detoured || parts_.table.IsQueuePair(connection));
  }
  bool UsesAny(const Connection& connection, const std::set<DeviceId>& nics) const;
  // Returns detours for the connection's messages that avoid these NICs, chosen by the policy.
  std::vector<NicWay> WaysAround(const Connection& connection,
                                 const std::set<DeviceId>& nics) const;
  void OpenDetour(ConnectionId connection, std::span<const NicWay> ways);
  // Ends the connection's flow without reporting it.
  void LeaveFlow(ConnectionId connection);
  void Move(ConnectionId connection, std::span<const NicWay> ways);

  Parts parts_;
  NicDetours& detours_;
  NicPolicy policy_;
  std::unordered_map<PartIndex, std::set<DeviceId>> dead_nics_;  // that a part of the job knows of
  // Holds the last result of MayMoveSome(), which is valid for these conditions and this network
  // version.
  struct Look {
    uint64_t conditions = 0;
    uint64_t version = 0;
    bool may_move = false;
  };
  std::optional<Look> look_;
  uint64_t count_ = 0;
};

}  // namespace railyard
