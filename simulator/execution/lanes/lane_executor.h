// SPDX-License-Identifier: GPL-2.0-only
// Runs the programs of channels: a lane takes its schedule's steps slice by slice, each when its
// data has arrived, the slot to send it into is free, and the CTA is done with the one before.
//
// The CTA's copy or reduction of a slice takes bytes / channel_rate. Over NVLink its stores are the
// transfer: packets leave while it works, its warps wait where the port does not take them, and the
// slice is complete when both the last packet has arrived and the CTA is done. A slice without
// bytes is a flag behind the slice before it, and a slot becomes free by a flag the other way;
// flags are the wire's latency without a packet.
//
// Where the sender's slot is in a host's memory (NCCL's SHM), the receiving CTA loads the slice
// from there before it goes on with it.
//
// Over the network the CTA only needs a slot to stage a slice in. The proxy posts it when it has
// seen it and the receiver's clear-to-send is there (sendProxyProgress, src/transport/net.cc); over
// sockets, where there is none, when it has seen it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/execution/connections/connection_table.h"
#include "simulator/execution/lanes/critical_path.h"
#include "simulator/execution/lanes/gpu_costs.h"
#include "simulator/execution/paths/path_tracer.h"
#include "simulator/execution/proxies/nic_failover.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/transport/aggregation/aggregation_transport.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/transport/contract/network_stack.h"
#include "simulator/transport/contract/proxy_threads.h"
#include "simulator/transport/load_store/load_store_transport.h"
#include "workloads/collectives/schedule.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

// What becomes of lanes and connections, for the replay engine and the recorders.
class LaneObserver {
 public:
  virtual ~LaneObserver() = default;
  // The last lane of a channel's last batch is done at `end_ps`, now or soon; how that came about,
  // or null where paths are not kept.
  virtual void OnChannelFinished(uint32_t operation, int64_t end_ps, const CriticalPath* path) = 0;
  virtual void OnPacketLost(uint32_t connection, LinkId link) = 0;
  virtual void OnPacketRepeated(uint32_t connection, uint32_t payload_bytes) = 0;
  virtual void OnRetransmission(uint32_t connection) = 0;
  virtual void OnLossRecovered(uint32_t connection) = 0;
  virtual void OnConnectionError(uint32_t connection, bool at_sender, const std::string& why) = 0;
  // A GPU took in payload of a collective that is watched.
  virtual void OnPayloadTaken(uint32_t /*collective*/, uint64_t /*bytes*/) {}
  // A connection goes over NICs of other GPUs from now on: these, its ends and in between.
  virtual void OnDetour(std::span<const uint32_t> /*gpus*/) {}
};

class LaneExecutor final : public StateOwner {
 public:
  ~LaneExecutor();
  LaneExecutor(const LaneExecutor&) = delete;
  LaneExecutor& operator=(const LaneExecutor&) = delete;
  LaneExecutor(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
               const GpuCosts& costs, const NetworkStackSettings& settings, LaneObserver& observer);

  ConnectionTable& connection_table() { return table_; }
  const ConnectionTable& connection_table() const { return table_; }
  // Costs for programs to name: a number, the same for the same costs and lines.
  uint8_t AddCosts(const StepCosts& costs, const MessageRule& rule);
  // Keeps critical paths from now on, which take time and memory. Before the first Start().
  void KeepPaths() { paths_.emplace(engine_, table_); }

  // A connection whose queue pair has used up its retries because its NIC does not answer goes on
  // over other NICs. Before the first Start().
  void FailOver(NicPolicy policy);
  // Null: connections stay where they are.
  NicFailover* failover() { return failover_ ? &*failover_ : nullptr; }
  uint64_t nic_failovers() const { return failover_ ? failover_->count() : 0; }

  // Starts one rank's program of a collective, now, on every channel it has a part in. `operation`
  // names it to the observer. `schedule` must live until the last OnChannelFinished. Returns the
  // number of channels.
  struct Program {
    uint32_t operation = 0;
    uint32_t communicator = 0;
    uint32_t rank = 0;  // of the communicator
    uint32_t collective = 0;
    uint32_t loss_tolerance_ppm = 0;  // of what it sends over the network
    uint8_t costs = 0;                // AddCosts
    uint8_t line_costs = 0;           // the same of lanes whose messages go by lines
    const CollectiveSchedule* schedule = nullptr;
  };
  uint32_t Start(const Program& program);

  // The fabric's routes changed.
  void ResolvePaths() {
    table_.OnRoutesChanged();
    stack_->OnRoutesChanged();
    if (paths_) paths_->OnRoutesChanged();
  }

  // A part's programs are ended where they are: nothing of them begins any more, their connections
  // are closed and those queue pairs send nothing. What is on its way arrives. Programs that are
  // started later open connections of their own. Returns the connections (lane_closing.cc).
  std::vector<uint32_t> Close(uint32_t part);

  // Adds the state of connections, proxies and GPUs, and that of the transports (lane_snapshot.cc).
  void RegisterState(StateRegistry& registry);
  std::string state_name() const override { return "connections and proxies"; }
  void Visit(StateArchive& archive) override;
  // The same of what these GPUs send one another over NVLink: equal for GPUs of two servers that
  // are alike, have IdentityOfGpus() in common and did the same.
  void VisitGpus(std::span<const uint32_t> gpus, StateArchive& archive);

  NicGroup NicGroupOf(std::span<const uint32_t> gpus) const;
  // What decides what comes there, and what was counted there (lane_nics.cc): equal for groups that
  // have their identity in common and did the same.
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

  // From now on OnPayloadTaken() tells of that collective.
  void WatchPayload(uint32_t collective) { watched_.insert(collective); }

  // From now on what a GPU's CTAs do takes 1 / `speed` as long; with 0 they begin nothing. What has
  // begun ends as it would have.
  void SetGpuSpeed(uint32_t gpu, double speed);

  NetworkStack& network_stack() { return *stack_; }
  const NetworkStack& network_stack() const { return *stack_; }

  // How long a GPU takes now for what takes one at its own speed so long; the same for one that
  // stands still.
  int64_t AtSpeedOfGpuPs(uint32_t gpu, int64_t time_ps) const;
  double SpeedOfGpu(uint32_t gpu) const { return gpu_speeds_.empty() ? 1 : gpu_speeds_[gpu]; }
  bool StandsStillNow(uint32_t gpu) const { return !gpu_speeds_.empty() && gpu_speeds_[gpu] == 0; }

  const LoadStoreTransport& load_store() const { return load_store_; }
  // For explanations: what a program that has not finished waits for.
  struct Waiting {
    uint32_t operation = 0;
    uint32_t communicator = 0;
    uint32_t rank = 0;
    uint32_t peer = 0;  // communicator rank
    uint32_t channel = 0;
    bool for_data = false;  // else for a credit
    // Of a network connection.
    std::string transport;
    bool is_under_way = false;           // the queue pair has something to be acknowledged
    std::vector<std::string> obstacles;  // FlowStatus's
  };
  std::vector<Waiting> WaitingLanes() const;
  // What part of the steps of all lanes that run has been made: 0 to 1.
  double ShareOfSteps() const;  // lane_waiting.cc

 private:
  static constexpr uint32_t kNone = Connection::kNone;
  // What the executor is to the flows that connections use, by what they carry (flow_sinks.h).
  class FlowSink;
  class StoreSink;
  class LoadSink;
  class SwitchSumSink;
  class NetworkSumSink;
  class NetworkSink;
  class LeftNetworkSink;
  struct FlowSinks;

  // A channel of a program: its batches one after the other.
  struct ActiveChannel {
    Program program;
    uint32_t channel = 0;
    uint32_t batch = 0;
    uint32_t lanes_left = 0;
    int64_t end_ps = 0;
    uint32_t next_free = kNone;
  };
  // What every slice of a lane touches.
  struct alignas(64) Lane {
    int64_t free_ps = 0;  // when the CTA has moved the slice before
    uint64_t tie = 0;     // orders its events; a function of what it is
    uint32_t receive_connection = kNone;
    uint32_t send_connection = kNone;
    uint32_t send_flow = 0;    // NVLink flow of its messages' first leg
    uint32_t steps_left = 0;   // of a row of steps with equal peers and bytes, this one included
    uint32_t step_bytes = 0;   // of each
    uint32_t first_bytes = 0;  // their first slice
    uint32_t slice_bytes = 0;  // the slice at hand
    uint32_t rest_bytes = 0;   // of the step, behind the slice at hand
    uint32_t peers = kNone;    // into lane_peers_, of a lane with several in a direction
    uint8_t slices_left = 0;   // of the step, the slice at hand included
    uint8_t slices_per_chunk = 0;
    uint8_t in_flight_messages = 0;
    uint8_t costs = 0;
    uint8_t warp_parts = 1;  // WarpShare's
    uint8_t warps_of = 1;
    uint8_t steps_at_once = 1;
    bool receives = false;  // in the step at hand
    bool sends = false;
    bool sends_over_nvlink = false;  // at least the first leg
    // Else it was ended: events that are left of it say nothing.
    bool in_use : 1 = false;
    bool has_claimed : 1 = false;  // its connections
    bool loads : 1 = false;        // from a host's memory, of one of them
    bool is_loaded : 1 = false;    // what it loads of the slice at hand is there
    uint8_t loading : 4 = 0;       // connections of which it is not
    uint8_t awaits = 0;            // messages to be injected, or the switch's sum
  };
  static_assert(sizeof(Lane) == 64);
  // Which messages of a receiving side the sender has been granted, ahead of those being received.
  struct Grants {
    uint64_t step = 0;  // the first behind those looked at
    uint64_t left = 0;  // of those
  };
  // The connections of a lane that has several in a direction, and those the step at hand uses.
  struct Peers {
    LanePeers listed;
    std::vector<uint32_t> receive_connections;
    std::vector<uint32_t> send_connections;
    std::vector<Grants> grants;  // by receive connection
    std::vector<uint32_t> receives;
    std::vector<uint32_t> sends;
    std::vector<uint32_t> operands;  // of `receives`, those the switch adds up
    std::vector<uint32_t> results;   // of `sends`, those the switch copies to
    Aggregation aggregation{};       // of a step over kNetworkSum
    uint32_t own_bytes = 0;          // of those the step scatters
    uint32_t next_free = kNone;
  };
  // The rest of a lane.
  struct LaneProgram {
    const CollectiveSchedule* schedule = nullptr;
    LaneId id;
    uint64_t step_count = 0;
    uint64_t next_step = 0;  // the first behind those the lane has loaded
    Grants grants{};         // to the sender of receive_connection
    uint32_t channel = 0;    // index into active_channels_
    uint32_t next_free = kNone;
  };
  static void HandlePost(void* self, uint32_t connection);
  static void HandleChannel(void* self, uint32_t lane);

  // What the sinks hear, by connection (lane_messages.cc).
  void OnNetworkArrival(uint32_t connection);
  void OnInjected(uint32_t connection, int64_t left_ps);
  void OnCompleted(uint32_t connection);
  void OnGranted(uint32_t connection);
  void OnNetworkFailed(uint32_t connection, bool at_sender, const std::string& why);

  // Precondition: the run's network has queue pairs.
  QueueTransport& queue_pairs() const { return *stack_->queue_pairs(); }
  DeviceId NicOf(uint32_t gpu) const { return graph_.NicOfGpu(graph_.gpus()[gpu]).value(); }
  // A connection is moved from a NIC that does not answer (moved_connections.cc).
  void LeaveFlow(uint32_t connection);
  void Resend(uint32_t connection);
  // Starts the channel's current batch, or ends the channel after its last.
  void StartBatch(uint32_t active_channel);
  void StartLane(uint32_t active_channel, uint32_t lane_index);
  // Makes the lane the owner of the sides of connections it uses; false: another lane has one
  // still.
  bool ClaimConnections(uint32_t lane);
  bool Claim(uint32_t lane, uint32_t connection, bool is_send);
  void TakePeers(uint32_t lane, const LanePeers& peers);
  // Which connections the step at hand receives from and sends to, of a lane with several.
  void SetStepPeers(uint32_t lane);
  void GrantMessages(uint32_t lane, uint32_t connection);
  void FinishLane(uint32_t lane);
  // What a kPost event is for; in the low bits of its target.
  enum class PostPhase : uint8_t { kStaged, kPosted, kGranted };
  static constexpr uint32_t kPostPhaseBits = 2;

  void NextSlice(uint32_t lane);
  // Loads the next row of steps; leaves steps_left 0 behind the last.
  void LoadSteps(uint32_t lane);
  void BeginStep(Lane& lane);
  // When the slice may start; kNeverPs: something it needs has not happened.
  int64_t EarliestStartPs(const Lane& lane);
  int64_t ReceivablePs(const Lane& lane, uint32_t connection);
  int64_t SendablePs(const Lane& lane, uint32_t connection);
  // The slice at hand, which the CTA has moved at `done_ps`.
  void RunSlice(Lane& lane, int64_t done_ps);
  // Has the switch add up the operands of the slice at hand; OnSwitchSum runs it.
  void RequestSum(Lane& lane, int64_t done_ps);
  void OnSwitchSum(uint32_t connection);
  // Loads the slice at hand from where its senders left it in host memory; false: nothing to load.
  bool PostLoads(Lane& lane);
  // The same while the slice before is being sent, if the lane has seen all of it.
  void PostLoadsAhead(Lane& lane);
  void OnLoaded(uint32_t connection);
  void SendBySwitch(const Lane& lane, const std::vector<uint32_t>& results, int64_t done_ps);
  // The network's switches are to add up the slice at hand; OnNetworkSum hears of the sum.
  void SendToTree(const Lane& lane, uint32_t connection, int64_t done_ps);
  void JoinTree(const Lane& lane, Connection& connection, uint32_t id);
  // What the step at hand has the network's switches do.
  void SetAggregation(Peers& peers, uint32_t rank, const Step& step);
  // What the network's switches do with the slice at hand counts here.
  AggregatedBytes& AggregatedIn(const Lane& lane, uint32_t connection);
  // Counts, and returns, what a lane with several peers gets of the slice at hand.
  uint32_t CountTaken(const Lane& lane, uint32_t connection);
  void OnNetworkSum(uint32_t connection);
  void Consume(const Lane& lane, uint32_t connection, int64_t done_ps);
  void Send(Lane& lane, uint32_t connection, int64_t done_ps);
  MessageSize SizeOf(uint8_t costs, uint64_t data_bytes) const;
  // Puts a lane on the list of those to be looked at before the event ends.
  void Wake(uint32_t lane) { woken_.push_back(lane); }
  void RunWoken();
  void WakeReceiver(MessageSlots& slots, int64_t seen_ps);
  void WakeSender(MessageSlots& slots);
  void Advance(uint32_t lane);
  void OnStoreArrival(uint32_t connection);
  // Hands to the proxy what is staged and granted.
  void QueueAtProxy(uint32_t connection);
  void SchedulePost(int64_t time_ps, uint32_t connection, PostPhase phase);
  void OnPost(uint32_t connection, PostPhase phase);
  // What the CTA takes to move the slice at hand, and what it spends between two slices.
  int64_t SlicePs(const Lane& lane);
  int64_t OverheadPs(const Lane& lane) const {
    return AtSpeedPs(lane, costs_[lane.costs].costs.slice_overhead_ps / lane.steps_at_once);
  }
  // What takes a GPU at its own speed so long.
  int64_t AtSpeedPs(const Lane& lane, int64_t time_ps) const {
    return gpu_speeds_.empty() ? time_ps : SlowedPs(lane, time_ps);
  }
  int64_t SlowedPs(const Lane& lane, int64_t time_ps) const;
  uint32_t GpuOf(const Lane& lane) const;
  // The GPU stands still: the lane is woken when it goes on.
  bool StandsStill(uint32_t lane);
  // Tells the tracer of the slice at hand, before its messages are taken and sent.
  void Trace(const Lane& lane, int64_t start_ps, int64_t done_ps);
  uint32_t IdOf(const Lane& lane) const { return static_cast<uint32_t>(&lane - lanes_.data()); }
  // When the GPU's proxy has posted one message more, or has seen one more arrive.
  int64_t ProxyPostedPs(uint32_t gpu) {
    return proxies_.Occupy(gpu, engine_.NowPs(), proxy_costs_[gpu].post_ps);
  }
  int64_t ProxySeenPs(uint32_t gpu) {
    return proxies_.Occupy(gpu, engine_.NowPs(), proxy_costs_[gpu].arrival_ps);
  }

  const FabricGraph& graph_;
  FabricNetwork& network_;
  FabricSimulatorImpl& engine_;
  // By number.
  struct CostClass {
    StepCosts costs;
    uint32_t line_payload_bytes = 1;
    uint32_t line_wire_bytes = 1;
    bool operator==(const CostClass&) const = default;
  };
  std::vector<CostClass> costs_;
  std::vector<ProxyCosts> proxy_costs_;  // by GPU
  LaneObserver& observer_;
  ProxyThreads proxies_;
  LoadStoreTransport load_store_;
  std::unique_ptr<NetworkStack> stack_;  // of network connections
  AggregationTransport aggregation_;
  std::unique_ptr<FlowSinks> sinks_;
  ConnectionTable table_;
  std::optional<NicFailover> failover_;
  std::vector<ActiveChannel> active_channels_;
  std::vector<Lane> lanes_;
  const char* lanes_base_ = nullptr;        // of lanes_, for the engine's prefetches
  std::vector<LaneProgram> lane_programs_;  // by lane
  std::vector<Peers> lane_peers_;
  uint32_t free_peers_ = kNone;
  std::vector<uint32_t> woken_;
  // Lanes that found a connection's side taken, by connection.
  std::unordered_map<uint32_t, std::vector<uint32_t>> claimants_;
  uint64_t last_slice_key_ = 0;  // of last_slice_ps_: what it depends on
  int64_t last_slice_ps_ = 0;
  std::vector<double> gpu_speeds_;     // by GPU; empty: all at their own
  std::vector<uint32_t> still_lanes_;  // of GPUs that stand still
  std::set<uint32_t> watched_;         // collectives
  std::optional<PathTracer> paths_;    // where paths are kept
  uint32_t free_channel_ = kNone;
  uint32_t free_lane_ = kNone;
  bool running_woken_ = false;
};

}  // namespace railyard
