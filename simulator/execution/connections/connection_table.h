// SPDX-License-Identifier: GPL-2.0-only
// Owns the connections between ranks, with their routes and plain records. A connection is opened
// when it is first requested, by communicator, channel, ranks and use. Its number never changes,
// because pending events and packets contain it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/execution/connections/connection.h"
#include "simulator/transport/aggregation/aggregation_transport.h"
#include "simulator/transport/contract/network_stack.h"
#include "simulator/transport/load_store/load_store_transport.h"
#include "simulator/units/job_ids.h"
#include "workloads/collectives/schedule.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

// Describes a communicator to the executor.
struct ExecutedCommunicator {
  std::vector<GpuIndex> gpus;  // GPU number of each communicator rank
  const NcclPlanner* planner = nullptr;
  PartIndex part{};  // of the job
};

// Counts the bytes that a rank has sent to the network's switches for sums, and received from them.
struct AggregatedBytes {
  uint64_t sent = 0;
  uint64_t received = 0;

  static constexpr auto Fields() {
    return FieldTable("bytes", field::Count("sent", &AggregatedBytes::sent),
                      field::Count("received", &AggregatedBytes::received));
  }
};
// Holds these bytes by the switches' operation.
struct Aggregated {
  AggregatedBytes reduced;
  AggregatedBytes gathered;  // each block comes from one rank, and all ranks receive it

  static constexpr auto Fields() {
    return FieldTable("aggregated", field::Nested("reduced", &Aggregated::reduced),
                      field::Nested("gathered", &Aggregated::gathered));
  }
};

class ConnectionTable {
 public:
  // Names the sinks of the flows of connections, by what the flows carry.
  struct Sinks {
    MessageSink* stores = nullptr;
    MessageSink* loads = nullptr;
    MessageSink* switch_sums = nullptr;
    MessageSink* network_sums = nullptr;
    MessageSink* network = nullptr;
  };

  // All references must outlive this.
  ConnectionTable(const FabricGraph& graph, FabricNetwork& network, LoadStoreTransport& load_store,
                  NetworkStack& stack, AggregationTransport& aggregation, const Sinks& sinks);

  // --- Communicators -----------------------------------------------------------------------------
  // Adds a communicator and returns its number, dense from 0.
  CommunicatorIndex AddCommunicator(ExecutedCommunicator communicator);
  // Moves the communicator's ranks to other GPUs. Precondition: all its connections are closed.
  void Relocate(CommunicatorIndex communicator, ExecutedCommunicator relocated);
  const ExecutedCommunicator& executed(CommunicatorIndex communicator) const {
    return communicators_[communicator].executed;
  }
  GpuIndex GpuOfRank(CommunicatorIndex communicator, RankIndex rank) const {
    return communicators_[communicator].executed.gpus[rank];
  }
  // Returns the communicator's number among those that the rank's GPU belongs to.
  uint32_t LocalNumberOf(CommunicatorIndex communicator, RankIndex rank) const {
    return communicators_[communicator].local_numbers[rank];
  }
  // Returns the GPU's index in its server.
  uint32_t LocalIndexOf(GpuIndex gpu) const { return places_[gpu].local_index; }
  // Returns whether no two ranks of the communicator are on the same server.
  bool IsOnRails(CommunicatorIndex communicator) const {
    return communicators_[communicator].is_on_rails;
  }

  // --- Opening and closing -----------------------------------------------------------------------
  // Returns the connection and opens it if necessary. `from` and `to` are ranks of the
  // communicator.
  ConnectionId Between(CommunicatorIndex communicator, uint32_t channel, RankIndex from,
                       RankIndex to, ConnectionUse use);
  // Returns ConnectionId::kNone if the connection is not open.
  ConnectionId Find(CommunicatorIndex communicator, uint32_t channel, RankIndex from, RankIndex to,
                    ConnectionUse use) const;
  // Returns whether all connections of a collective, those of all its ranks, are open.
  bool AreAllOpen(CommunicatorIndex communicator, const CollectiveSchedule& schedule) const;
  // Sets a function that is called before a network connection is opened. It returns true if it has
  // opened a detour instead.
  void SetDetours(std::function<bool(ConnectionId connection)> open_detour) {
    open_detour_ = std::move(open_detour);
  }
  // Moves the connection to another flow. Its sink stays the same.
  void MoveTo(ConnectionId connection, Transport& transport, FlowId flow);
  // Makes the connection of `gpus[place]` a member of an aggregation tree over `gpus`. There is one
  // tree per channel and first rank.
  void JoinTree(ConnectionId connection, uint32_t channel, RankIndex first_rank,
                std::span<const GpuIndex> gpus, uint32_t place);
  // Closes and returns the connections of a part of the job.
  std::vector<ConnectionId> Close(PartIndex part);
  // Returns the open connections of a part of the job.
  std::vector<ConnectionId> ConnectionsOfPart(PartIndex part) const;
  // Must be called when a program begins to use one side: its stores then start on the same plane
  // as those of a new flow.
  void StartOver(ConnectionId connection, bool is_send);
  // Must be called when the fabric's routes have changed.
  void OnRoutesChanged() { ++network_version_; }

  // --- Records -----------------------------------------------------------------------------------
  const std::vector<Connection>& connections() const { return connections_; }
  Connection& connection(ConnectionId id) { return connections_[id]; }
  const Connection& connection(ConnectionId id) const { return connections_[id]; }
  // Return the connections on which a GPU sends, within its server and over the network, in the
  // order in which they were opened.
  std::span<const ConnectionId> server_connections(GpuIndex sender) const {
    return server_connections_[sender];
  }
  std::span<const ConnectionId> network_connections(GpuIndex sender) const {
    return network_connections_[sender];
  }
  MessageSlots& slots(ConnectionId id) { return slots_[id]; }
  const MessageSlots& slots(ConnectionId id) const { return slots_[id]; }
  StagedMessages& staged(const Connection& connection) { return staged_[connection.staged]; }
  const StagedMessages& staged(const Connection& connection) const {
    return staged_[connection.staged];
  }
  std::array<Aggregation, kConnectionSlots>& aggregations(const Connection& connection) {
    return aggregations_[connection.aggregations];
  }
  Aggregated& aggregated(const Connection& connection) {
    return aggregated_[connection.aggregations];
  }
  const Aggregated& aggregated(const Connection& connection) const {
    return aggregated_[connection.aggregations];
  }
  // Returns the payload bytes that the connection's receiver has taken.
  uint64_t& taken_bytes(ConnectionId id) { return taken_bytes_[id]; }
  uint64_t taken_bytes(ConnectionId id) const { return taken_bytes_[id]; }
  // Prefetches the number of bytes that the receiver has taken.
  void FetchTaken(ConnectionId id) const { __builtin_prefetch(&taken_bytes_[id], 1); }
  // Must be called for a network connection whose sender another process simulates.
  void ForgetSizes(ConnectionId id) { slots_[id].sizes.fill(kUnknownSize); }
  // Holds the payload bytes that a connection's receiver has taken, and the last collective that
  // used the connection.
  struct TakenBytes {
    ConnectionId connection{};
    CollectiveIndex collective{};
    uint64_t bytes = 0;
  };
  // Returns these of all connections whose receivers have taken any.
  std::vector<TakenBytes> AllTaken() const;
  // Adds the bytes that receivers in another process have taken.
  void AbsorbTaken(std::span<const TakenBytes> taken);
  bool IsClosed(ConnectionId id) const { return slots_[id].is_closed; }
  // Returns the location of the slots, for the engine's prefetches.
  TimingWheel::PrefetchTable SlotTable() const {
    return {&slots_base_, sizeof(MessageSlots), offsetof(MessageSlots, time_ps)};
  }

  // --- Routes of connections ---------------------------------------------------------------------
  // Returns the links that the payload crosses on one of its paths, from first to last.
  std::vector<LinkId> LinksOf(const Connection& connection) const;
  // Returns the links of all paths, each with its share of the payload.
  std::vector<LinkShare> LinkSharesOf(const Connection& connection) const;
  // Returns the recovery times of a network connection's data or, with false, of its grants.
  RecoveryTimes RecoveryOf(ConnectionId connection, bool of_data) const;
  // Returns whether the connection consists of exactly one queue pair.
  bool IsQueuePair(const Connection& connection) const;
  // Returns a number that changes when network connections are opened or routes change.
  uint64_t network_version() const { return network_version_; }

  // --- Order among events ------------------------------------------------------------------------
  // Returns the tie of an event at a GPU; the numbers `a`, `b` and `c` identify the event. The
  // lower kLocalTieBits bits are the same on corresponding servers.
  uint64_t TieOf(GpuIndex gpu, uint64_t a, uint64_t b, uint64_t c) const;

  // Returns a number of a flow in a server that is the same for corresponding flows of other
  // servers.
  uint64_t LocalTieOf(FlowId flow) const;

  // --- Snapshots ---------------------------------------------------------------------------------
  // Visits the counters and the state that decides the future when no program is running.
  void Visit(StateArchive& archive);
  void VisitConnection(ConnectionId connection, StateArchive& archive);
  // Visits the connections on which these GPUs send within their servers.
  void VisitSentBy(std::span<const GpuIndex> gpus, StateArchive& archive);

 private:
  struct GpuPlace {
    ServerIndex server{};
    uint32_t local_index = 0;
  };
  struct Communicator {
    ExecutedCommunicator executed;
    // The number of earlier communicators that contain a rank's GPU, by rank.
    std::vector<uint32_t> local_numbers;
    bool is_on_rails = false;
    // The first member's flow of each aggregation tree, by channel and the tree's first rank.
    std::unordered_map<uint64_t, FlowId> trees{};
    std::unordered_map<uint64_t, ConnectionId> connections{};  // by channel, ranks and use
  };

  static uint64_t KeyOf(uint32_t channel, RankIndex from, RankIndex to, ConnectionUse use);
  static uint64_t HashOf(uint64_t a, uint64_t b, uint64_t c);
  ConnectionId Open(CommunicatorIndex communicator, uint32_t channel, RankIndex from, RankIndex to,
                    ConnectionUse use);
  // These open a connection by its carrier. `entropy` is the input of the ECMP hash of its queue
  // pairs.
  void OpenSum(ConnectionId id);
  void OpenInSwitches(ConnectionId id);
  void OpenInServer(ConnectionId id, const ConnectionRoute& route);
  void OpenOnNetwork(ConnectionId id, const ConnectionRoute& route, uint64_t entropy);
  // Returns the owner of the connection's `flow`. Precondition: the carrier is not kNvSwitches.
  FlowOwner& OwnerOf(const Connection& connection) const;
  uint64_t TieOfConnection(CommunicatorIndex communicator, uint32_t channel, RankIndex from,
                           RankIndex to, ConnectionUse use) const;
  int64_t FlagLatencyPs(FlowId flow) const;
  void CloseConnection(ConnectionId id);
  // Calls visit(owner, flow) for each flow that only this connection uses, in the payload's order.
  template <typename Visitor>
  void ForEachFlow(const Connection& connection, Visitor visit) const;

  const FabricGraph& graph_;
  FabricNetwork& network_;
  LoadStoreTransport& load_store_;
  NetworkStack& stack_;
  AggregationTransport& aggregation_;
  Sinks sinks_;
  std::function<bool(ConnectionId)> open_detour_;
  std::vector<Communicator> communicators_;
  std::vector<Connection> connections_;
  std::vector<MessageSlots> slots_;    // by connection
  std::vector<uint64_t> taken_bytes_;  // by connection
  const char* slots_base_ = nullptr;   // of slots_, for the engine's prefetches
  std::vector<StagedMessages> staged_;
  std::vector<std::array<Aggregation, kConnectionSlots>> aggregations_;
  std::vector<Aggregated> aggregated_;                          // the same connections
  std::vector<std::vector<ConnectionId>> server_connections_;   // by sending GPU, in its server
  std::vector<std::vector<ConnectionId>> network_connections_;  // by sending GPU
  uint64_t network_version_ = 0;
  std::vector<GpuPlace> places_;               // by GPU
  std::vector<uint32_t> communicator_counts_;  // by GPU: those it is in
};

}  // namespace railyard
