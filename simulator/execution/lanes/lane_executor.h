// SPDX-License-Identifier: GPL-2.0-only
// The execution of collectives: lanes that move slices, the connections they use, the proxies and
// switches that work for them. It puts the parts together; each has its contract in its own header:
//
//   CtaClock        how long a CTA takes
//   LaneTable       which slice of which lane is at hand
//   LaneClaims      which lane has which connection
//   LaneRunner      when a slice may begin
//   SliceMessages   what a slice does to its connections
//   NetworkProxies  what CPU proxies do for network connections
//   SwitchSums, NetworkSums   what switches add up
//   NicFailover     connections that leave a NIC
//   PathTracer      critical paths
//   ConnectionTable what joins two ranks
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/cta_clock.h"
#include "simulator/execution/lanes/lane_claims.h"
#include "simulator/execution/lanes/lane_observer.h"
#include "simulator/execution/lanes/lane_runner.h"
#include "simulator/execution/lanes/lane_table.h"
#include "simulator/execution/lanes/lane_wakes.h"
#include "simulator/execution/lanes/slice_messages.h"
#include "simulator/execution/lanes/waiting_lanes.h"
#include "simulator/execution/paths/path_tracer.h"
#include "simulator/execution/proxies/network_proxies.h"
#include "simulator/execution/proxies/nic_failover.h"
#include "simulator/execution/sums/network_sums.h"
#include "simulator/execution/sums/switch_sums.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/transport/aggregation/aggregation_transport.h"
#include "simulator/transport/contract/network_stack.h"
#include "simulator/transport/contract/proxy_threads.h"
#include "simulator/transport/load_store/load_store_transport.h"

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
  // CtaClock's answers about the speeds of GPUs.
  double SpeedOfGpu(uint32_t gpu) const { return clock_.SpeedOf(gpu); }
  bool StandsStillNow(uint32_t gpu) const { return clock_.StandsStill(gpu); }
  int64_t AtSpeedOfGpuPs(uint32_t gpu, int64_t time_ps) const {
    return clock_.AtSpeedOfPs(gpu, time_ps);
  }

  // --- Before the first Start() ------------------------------------------------------------------
  // Keeps critical paths from now on, which take time and memory.
  void KeepPaths();
  // A connection whose queue pair has used up its retries because its NIC does not answer goes on
  // over other NICs.
  void FailOver(NicPolicy policy);
  // Null: connections stay where they are.
  NicFailover* failover() { return failover_ ? &*failover_ : nullptr; }
  uint64_t nic_failovers() const { return failover_ ? failover_->count() : 0; }

  // --- Programs ----------------------------------------------------------------------------------
  // CtaClock::AddCosts.
  uint8_t AddCosts(const StepCosts& costs, const MessageRule& rule) {
    return clock_.AddCosts(costs, rule);
  }
  // Starts one rank's program of a collective, now, on every channel it has a part in. Returns the
  // number of channels.
  using Program = RankProgram;
  uint32_t Start(const Program& program) { return runner_.Start(program); }
  // A part's programs are ended where they are: nothing of them begins any more, their connections
  // are closed and those queue pairs send nothing. What is on its way arrives. Programs that are
  // started later open connections of their own. Returns the connections.
  std::vector<ConnectionId> Close(uint32_t part);
  // From now on what a GPU's CTAs do takes 1 / `speed` as long; with 0 they begin nothing. What has
  // begun ends as it would have.
  void SetGpuSpeed(uint32_t gpu, double speed);
  // The fabric's routes changed.
  void ResolvePaths();
  // From now on LaneObserver::OnPayloadTaken() tells of that collective.
  void WatchPayload(uint32_t collective) { messages_.WatchPayload(collective); }

  // For explanations: what programs that have not finished wait for, and how far they are.
  using Waiting = WaitingLane;
  std::vector<Waiting> WaitingLanes() const { return railyard::WaitingLanes(lanes_, table_); }
  double ShareOfSteps() const { return railyard::ShareOfSteps(lanes_); }

  // --- State at rest (lane_snapshot.cc) ----------------------------------------------------------
  // Adds the state of connections, proxies and GPUs, and that of the transports.
  void RegisterState(StateRegistry& registry);
  std::string state_name() const override { return "connections and proxies"; }
  void Visit(StateArchive& archive) override;
  // The same of what these GPUs send one another over NVLink: equal for GPUs of two servers that
  // are alike, have IdentityOfGpus() in common and did the same.
  void VisitGpus(std::span<const uint32_t> gpus, StateArchive& archive);

  NicGroup NicGroupOf(std::span<const uint32_t> gpus) const;
  // Visits the state that decides what comes at a group's NICs, and what was counted there. Both
  // are equal for groups that have their identity in common and did the same.
  void VisitNics(const NicGroup& group, StateArchive& archive);
  // What the network and all NICs counted: what these have a part in.
  void VisitCountersOfNics(StateArchive& archive);
  // Their queue pairs' ACK timers are not on the wheel, until they are again (RdmaTransport).
  std::vector<uint8_t> TakeTimers(const NicGroup& group);
  void PutTimers(const NicGroup& group, const std::vector<uint8_t>& timers);

  // What is kept of paths while these GPUs send one another nothing, where paths are kept at all.
  std::vector<PathTracer::Kept> PathsAmong(std::span<const uint32_t> gpus) {
    return paths_->Keep(table_.AllAmong(gpus));
  }
  void PutPathsAmong(std::span<const uint32_t> gpus, const std::vector<PathTracer::Kept>& paths) {
    paths_->PutBack(table_.AllAmong(gpus), paths);
  }

 private:
  struct FlowSinks;

  // Precondition: the run's network has queue pairs.
  QueueTransport& queue_pairs() const { return *stack_->queue_pairs(); }
  DeviceId NicOf(uint32_t gpu) const { return graph_.NicOfGpu(graph_.gpus()[gpu]).value(); }

  const FabricGraph& graph_;
  FabricNetwork& network_;
  LaneObserver& observer_;
  ProxyThreads proxy_threads_;
  LoadStoreTransport load_store_;
  std::unique_ptr<NetworkStack> stack_;  // of network connections
  AggregationTransport aggregation_;
  std::unique_ptr<FlowSinks> sinks_;
  ConnectionTable table_;
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
