// SPDX-License-Identifier: GPL-2.0-only
// Executes collectives. It connects the following parts; the header of each describes it:
//
//   CtaClock        the time that a CTA takes
//   LaneTable       the current slice of each lane
//   LaneClaims      the owners of connections
//   LaneRunner      the start of slices
//   SliceMessages   the effect of a slice on its connections
//   NetworkProxies  the work of CPU proxies for network connections
//   SwitchSums, NetworkSums   sums computed by switches
//   NicFailover     connections that leave a NIC
//   PathTracer      critical paths
//   ConnectionTable connections between ranks
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/connections/nic_groups.h"
#include "simulator/execution/lanes/cta_clock.h"
#include "simulator/execution/lanes/lane_observer.h"
#include "simulator/execution/lanes/lane_table.h"
#include "simulator/execution/lanes/lane_wakes.h"
#include "simulator/execution/paths/path_tracer.h"
#include "simulator/execution/proxies/network_proxies.h"
#include "simulator/execution/proxies/nic_failover.h"
#include "simulator/execution/slices/lane_claims.h"
#include "simulator/execution/slices/lane_runner.h"
#include "simulator/execution/slices/slice_messages.h"
#include "simulator/execution/slices/waiting_lanes.h"
#include "simulator/execution/sums/network_sums.h"
#include "simulator/execution/sums/switch_sums.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/flow/flow_network.h"
#include "simulator/transport/aggregation/aggregation_transport.h"
#include "simulator/transport/contract/network_stack.h"
#include "simulator/transport/contract/proxy_threads.h"
#include "simulator/transport/load_store/load_store_transport.h"
#include "simulator/units/job_ids.h"

namespace railyard {

class LaneExecutor final : public StateOwner {
 public:
  // All references must outlive this.
  LaneExecutor(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
               const GpuCosts& costs, const NetworkStackSettings& settings, LaneObserver& observer);
  ~LaneExecutor();
  LaneExecutor(const LaneExecutor&) = delete;
  LaneExecutor& operator=(const LaneExecutor&) = delete;

  ConnectionTable& connection_table() { return table_; }
  const ConnectionTable& connection_table() const { return table_; }
  NetworkStack& network_stack() { return *stack_; }
  const NetworkStack& network_stack() const { return *stack_; }
  // Returns the clock of the CTAs, with the costs of programs and the speeds of GPUs.
  CtaClock& clock() { return clock_; }
  const CtaClock& clock() const { return clock_; }

  // --- Before the first Start() ------------------------------------------------------------------
  // Keeps critical paths from now on. This takes time and memory.
  void KeepPaths();
  // Precondition: paths are kept.
  PathTracer& paths() { return *paths_; }
  NetworkProxies& proxies() { return proxies_; }
  // Enables failover: a connection whose queue pair has used up its retries because its NIC does
  // not answer continues over other NICs.
  void FailOver(NicPolicy policy);
  // Returns the failover, or null if connections stay where they are.
  NicFailover* failover() { return failover_ ? &*failover_ : nullptr; }
  uint64_t nic_failovers() const { return failover_ ? failover_->count() : 0; }

  // --- Programs ----------------------------------------------------------------------------------
  // Starts one rank's program of a collective now, on every channel in which it takes part. Returns
  // the number of channels.
  using Program = RankProgram;
  uint32_t Start(const Program& program) { return runner_.Start(program); }
  // Ends the programs of a part of the job wherever they are. They begin nothing more. Their
  // connections are closed, and the connections' queue pairs send nothing more; packets in flight
  // still arrive. Programs that are started later open new connections. Returns the closed ones.
  std::vector<ConnectionId> Close(PartIndex part);
  // Sets the speed of a GPU from now on: its CTAs take 1 / `speed` times as long; with 0 they begin
  // nothing. Work that has begun ends at its original time.
  void SetGpuSpeed(GpuIndex gpu, double speed);
  // Must be called when the fabric's routes have changed.
  void ResolvePaths();
  // Enables LaneObserver::OnPayloadTaken() for the collective from now on.
  void WatchPayload(CollectiveIndex collective) { messages_.WatchPayload(collective); }

  // These functions explain a run. They return the lanes of unfinished programs with the causes of
  // their waiting, and the share of the programs' steps that is done.
  using Waiting = WaitingLane;
  std::vector<Waiting> WaitingLanes() const { return railyard::WaitingLanes(lanes_, table_); }
  double ShareOfSteps() const { return railyard::ShareOfSteps(lanes_); }

  // --- Snapshots (lane_snapshot.cc) --------------------------------------------------------------
  // Registers the state of connections, proxies and GPUs, and that of the transports.
  void RegisterState(StateRegistry& registry);
  std::string state_name() const override { return "connections and proxies"; }
  void Visit(StateArchive& archive) override;
  // Visits only the traffic of these GPUs over NVLink. The state is equal for the GPUs of two
  // servers of the same kind that have the same NicGroups::IdentityOfGpus() and the same history.
  void VisitGpus(std::span<const GpuIndex> gpus, StateArchive& archive);

  // Returns true if the network connection has a queue pair of its sender's NIC, on which nothing
  // is under way.
  bool IsQueuePairAtRest(ConnectionId id);
  const NicGroups& nic_groups() const { return nic_groups_; }
  // Returns the NIC group of these GPUs and communicators, whose identity includes the costs of
  // their proxies.
  NicGroup NicGroupOf(std::span<const GpuIndex> gpus,
                      std::span<const CommunicatorIndex> communicators) const;
  // Visits the state and the counters that affect a group's NICs in the future. They are equal for
  // groups with the same identity and the same history.
  void VisitNics(const NicGroup& group, StateArchive& archive);
  // Visits the counters of the network and of all NICs, to which a group contributes.
  void VisitCountersOfNics(StateArchive& archive);
  // Ignores the pending ACK timers of the group's queue pairs until PutTimers() (see
  // QueueTransport).
  std::vector<uint8_t> TakeTimers(const NicGroup& group);
  void PutTimers(const NicGroup& group, const std::vector<uint8_t>& timers);

  // Returns the critical paths that persist while the GPUs have no traffic among one another; the
  // next function puts them back. Precondition of both: critical paths are kept.
  std::vector<PathTracer::Kept> PathsAmong(std::span<const GpuIndex> gpus) {
    return paths_->Keep(nic_groups_.AllAmong(gpus));
  }
  void PutPathsAmong(std::span<const GpuIndex> gpus, const std::vector<PathTracer::Kept>& paths) {
    paths_->PutBack(nic_groups_.AllAmong(gpus), paths);
  }

 private:
  struct FlowSinks;

  void VisitConnections(std::span<const ConnectionId> connections, StateArchive& archive);

  // Precondition: the run's network has queue pairs.
  QueueTransport& queue_pairs() const { return *stack_->queue_pairs(); }
  DeviceId NicOf(GpuIndex gpu) const { return graph_.NicOfGpu(graph_.gpus()[gpu]).value(); }

  const FabricGraph& graph_;
  FabricNetwork& network_;
  LaneObserver& observer_;
  ProxyThreads proxy_threads_;
  std::unique_ptr<FlowNetwork> flows_;  // null: messages are packets
  LoadStoreTransport load_store_;
  std::unique_ptr<NetworkStack> stack_;  // of network connections
  AggregationTransport aggregation_;
  std::unique_ptr<FlowSinks> sinks_;
  ConnectionTable table_;
  NicGroups nic_groups_;
  CtaClock clock_;
  LaneTable lanes_;
  LaneWakes wakes_;
  NetworkSums network_sums_;
  SwitchSums switch_sums_;
  NetworkProxies proxies_;
  LaneClaims claims_;
  SliceMessages messages_;
  LaneRunner runner_;
  std::optional<NicFailover> failover_;
  std::optional<PathTracer> paths_;  // where paths are kept
};

}  // namespace railyard
