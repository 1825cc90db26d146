// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/connections/connection_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/execution/connections/ties.h"
#include "simulator/transport/nic/queue_transport.h"
#include "simulator/units/mix64.h"

namespace railyard {
namespace {

// Number of bits of the hash that ECMP uses as a connection's entropy.
constexpr int kHashBits = 52;

}  // namespace

ConnectionTable::ConnectionTable(const FabricGraph& graph, FabricNetwork& network,
                                 LoadStoreTransport& load_store, NetworkStack& stack,
                                 AggregationTransport& aggregation, const Sinks& sinks)
    : graph_(graph),
      network_(network),
      load_store_(load_store),
      stack_(stack),
      aggregation_(aggregation),
      sinks_(sinks),
      server_connections_(graph.gpus().size()),
      network_connections_(graph.gpus().size()),
      communicator_counts_(graph.gpus().size()) {
  for (GpuIndex gpu{0}; gpu < graph.gpus().size(); ++gpu) {
    const Device& device = graph.device(graph.gpus()[gpu]);
    const GpuPlace place = {device.server, static_cast<uint32_t>(device.local_index)};
    places_.push_back(place);
  }
}

// --- Communicators -------------------------------------------------------------------------------

CommunicatorIndex ConnectionTable::AddCommunicator(ExecutedCommunicator communicator) {
  SIM_CHECK(communicator.gpus.size() < 1u << 24, "more ranks than a connection's key has room for");
  std::vector<uint32_t> local_numbers;
  for (const GpuIndex gpu : communicator.gpus) {
    local_numbers.push_back(communicator_counts_[gpu]++);
  }
  const bool is_on_rails = graph_.AreOnSeparateServers(communicator.gpus);
  communicators_.push_back({.executed = std::move(communicator),
                            .local_numbers = std::move(local_numbers),
                            .is_on_rails = is_on_rails,
                            .connections = {}});
  return CommunicatorIndex{communicators_.size() - 1};
}

void ConnectionTable::Relocate(CommunicatorIndex communicator, ExecutedCommunicator relocated) {
  SIM_CHECK(communicators_[communicator].connections.empty(),
            "a communicator moves while it has connections");
  communicators_[communicator].executed = std::move(relocated);
}

// --- Order among events --------------------------------------------------------------------------

uint64_t ConnectionTable::HashOf(uint64_t a, uint64_t b, uint64_t c) {
  return Mix64(Mix64(Mix64(a) ^ b) ^ c) >> (64 - kHashBits);
}

// Ties among events of one class and picosecond are broken by what the events belong to, never by
// the order of creation, because runs with and without a fault number their connections
// differently. Within a server, ties are broken by values that corresponding servers have in
// common, so that these servers behave alike, and then by the GPU.
uint64_t ConnectionTable::TieOf(GpuIndex gpu, uint64_t a, uint64_t b, uint64_t c) const {
  const GpuPlace& place = places_[gpu];
  constexpr uint64_t kServers = uint64_t{1} << (FabricSimulatorImpl::kIdBits - kLocalTieBits);
  return place.server % kServers << kLocalTieBits |
         (HashOf(a, b, c) & kLocalTieMask & ~kGpuTieMask) | (place.local_index & kGpuTieMask);
}

uint64_t ConnectionTable::KeyOf(uint32_t channel, RankIndex from, RankIndex to, ConnectionUse use) {
  static_assert(static_cast<uint64_t>(ConnectionUse::kRemoteWrite) < 1u << 3, "a use has 3 bits");
  return static_cast<uint64_t>(use) << 61 | uint64_t{channel} << 48 | uint64_t{from} << 24 | to;
}

// --- Opening and closing -------------------------------------------------------------------------

ConnectionId ConnectionTable::Between(CommunicatorIndex communicator, uint32_t channel,
                                      RankIndex from, RankIndex to, ConnectionUse use) {
  const auto [it, is_new] =
      communicators_[communicator].connections.try_emplace(KeyOf(channel, from, to, use));
  if (is_new) it->second = Open(communicator, channel, from, to, use);
  return it->second;
}

ConnectionId ConnectionTable::Find(CommunicatorIndex communicator, uint32_t channel, RankIndex from,
                                   RankIndex to, ConnectionUse use) const {
  const auto& connections = communicators_[communicator].connections;
  const auto found = connections.find(KeyOf(channel, from, to, use));
  return found == connections.end() ? ConnectionId::kNone : found->second;
}

bool ConnectionTable::AreAllOpen(CommunicatorIndex communicator,
                                 const CollectiveSchedule& schedule) const {
  bool are_open = true;
  for (RankIndex rank{0}; rank < schedule.rank_count() && are_open; ++rank) {
    ForEachLaneOf(schedule, rank, [&](const LaneId& lane) {
      if (!are_open || schedule.StepCount(lane) == 0) return;
      const auto is_open = [&](RankIndex from, RankIndex to, ConnectionUse use) {
        return Find(communicator, lane.channel, from, to, use) != ConnectionId::kNone;
      };
      const LanePeers peers = schedule.PeersOf(lane);
      for (const LanePeer& peer : peers.recv_from) {
        are_open = are_open && is_open(peer.rank, rank, peer.use);
      }
      for (const LanePeer& peer : peers.send_to) {
        are_open = are_open && is_open(rank, peer.rank, peer.use);
      }
    });
  }
  return are_open;
}

ConnectionId ConnectionTable::Open(CommunicatorIndex communicator, uint32_t channel, RankIndex from,
                                   RankIndex to, ConnectionUse use) {
  const ExecutedCommunicator& executed = communicators_[communicator].executed;
  const ConnectionId id{connections_.size()};
  SIM_CHECK(id < kConnectionsMax, "too many connections");
  Connection connection;
  connection.communicator = communicator;
  connection.from_gpu = executed.gpus[from];
  connection.to_gpu = executed.gpus[to];
  connection.injecting_gpu = connection.from_gpu;
  connection.tie = TieOfConnection(communicator, channel, from, to, use);
  connection.use = use;
  connections_.push_back(connection);
  slots_.emplace_back();
  taken_bytes_.push_back(0);
  slots_base_ = reinterpret_cast<const char*>(slots_.data());
  if (connection.is_network_sum()) {
    OpenSum(id);
    return id;
  }
  if (connection.is_switch_operand() || connection.is_switch_result()) {
    OpenInSwitches(id);
    return id;
  }
  const ConnectionRoute route = executed.planner->RouteOf(channel, from, to, use);
  if (!route.network) {
    OpenInServer(id, route);
    return id;
  }
  const uint64_t entropy =
      HashOf(uint64_t{communicator} << 8 | channel,
             uint64_t{connection.from_gpu} << 32 | connection.to_gpu, static_cast<uint64_t>(use));
  OpenOnNetwork(id, route, entropy);
  return id;
}

void ConnectionTable::OpenSum(ConnectionId id) {
  Connection& connection = connections_[id];
  connection.carrier = ConnectionCarrier::kAggregation;
  connection.flow = FlowId::kNone;
  connection.staged = static_cast<uint32_t>(staged_.size());
  staged_.emplace_back();
  connection.aggregations = static_cast<uint32_t>(aggregations_.size());
  aggregations_.emplace_back();
  aggregated_.emplace_back();
}

void ConnectionTable::OpenInSwitches(ConnectionId id) {
  Connection& connection = connections_[id];
  connection.carrier = ConnectionCarrier::kNvSwitches;
  connection.flow = FlowId::kNone;
  server_connections_[connection.from_gpu].push_back(id);
  if (connection.from_gpu == connection.to_gpu) return;
  // For a flag's latency.
  slots_[id].flag_latency_ps =
      FlagLatencyPs(load_store_.Open({sinks_.stores, id}, connection.from_gpu, connection.to_gpu));
}

void ConnectionTable::OpenInServer(ConnectionId id, const ConnectionRoute& route) {
  Connection& connection = connections_[id];
  MessageSlots& slots = slots_[id];
  server_connections_[connection.from_gpu].push_back(id);
  if (route.over_host_memory) {
    connection.carrier = ConnectionCarrier::kHostMemory;
    connection.flow =
        load_store_.OpenHostStore({sinks_.stores, id}, connection.from_gpu, connection.to_gpu);
    connection.load_flow = load_store_.OpenHostLoad({sinks_.loads, id}, connection.to_gpu);
    slots.flag_latency_ps = FlagLatencyPs(connection.flow) + FlagLatencyPs(connection.load_flow);
    return;
  }
  connection.carrier = ConnectionCarrier::kStores;
  connection.flow = load_store_.Open({sinks_.stores, id}, connection.from_gpu, connection.to_gpu);
  slots.flag_latency_ps = FlagLatencyPs(connection.flow);
}

void ConnectionTable::OpenOnNetwork(ConnectionId id, const ConnectionRoute& route,
                                    uint64_t entropy) {
  Connection& connection = connections_[id];
  MessageSlots& slots = slots_[id];
  connection.carrier = ConnectionCarrier::kTransport;
  slots.network = true;
  network_connections_[connection.from_gpu].push_back(id);
  ++network_version_;
  connection.staged = static_cast<uint32_t>(staged_.size());
  staged_.emplace_back();
  const Device& sender = graph_.device(graph_.gpus()[connection.from_gpu]);
  if (route.sending_local_index != static_cast<uint32_t>(sender.local_index)) {
    connection.injecting_gpu = graph_.GpuOfServer(connection.from_gpu, route.sending_local_index);
    connection.relay_flow =
        load_store_.Open({sinks_.stores, id}, connection.from_gpu, connection.injecting_gpu);
    slots.flag_latency_ps = FlagLatencyPs(connection.relay_flow);
  }
  if (open_detour_ && open_detour_(id)) [[unlikely]]
    return;
  connection.transport = &stack_.Between(connection.injecting_gpu, connection.to_gpu);
  connection.is_buffered = connection.transport->BuffersMessages();
  connection.flow = connection.transport->Open({sinks_.network, id}, connection.injecting_gpu,
                                               connection.to_gpu, entropy);
}

FlowOwner& ConnectionTable::OwnerOf(const Connection& connection) const {
  switch (connection.carrier) {
    case ConnectionCarrier::kStores:
    case ConnectionCarrier::kHostMemory:
      return load_store_;
    case ConnectionCarrier::kAggregation:
      return aggregation_;
    case ConnectionCarrier::kTransport:
      return *connection.transport;
    case ConnectionCarrier::kNvSwitches:
      break;
  }
  SIM_CHECK(false, "a group of several connections belongs to none of them");
  __builtin_unreachable();
}

bool ConnectionTable::IsQueuePair(const Connection& connection) const {
  return connection.transport != nullptr && connection.transport == stack_.queue_pairs();
}

uint64_t ConnectionTable::LocalTieOf(FlowId flow) const {
  const SinkRef user = load_store_.FirstUserOf(flow);
  const std::array<const MessageSink*, 3> own = {sinks_.stores, sinks_.loads, sinks_.switch_sums};
  const auto found = std::ranges::find(own, user.sink);
  // A detour's flow has no counterpart in other servers.
  if (found == own.end()) return Mix64(flow);
  const auto role = static_cast<uint64_t>(found - own.begin());
  return (connections_[user.number].tie & kLocalTieMask) | role << kLocalTieBits;
}

uint64_t ConnectionTable::TieOfConnection(CommunicatorIndex communicator, uint32_t channel,
                                          RankIndex from, RankIndex to, ConnectionUse use) const {
  const Communicator& owner = communicators_[communicator];
  const GpuPlace& sender = places_[owner.executed.gpus[from]];
  const GpuPlace& receiver = places_[owner.executed.gpus[to]];
  // The tie is the same on corresponding rails: it does not contain the sender's index in its
  // server.
  const bool is_local = sender.server == receiver.server;
  const uint64_t ends =
      is_local ? uint64_t{sender.local_index} << 48 | receiver.local_index : uint64_t{1} << 32 | to;
  return TieOf(owner.executed.gpus[from], uint64_t{owner.local_numbers[from]} << 8 | channel, ends,
               static_cast<uint64_t>(use));
}

int64_t ConnectionTable::FlagLatencyPs(FlowId flow) const {
  return network_.PathLatencyPs(load_store_.PathsOf(flow).front().path, 0);
}

std::vector<ConnectionId> ConnectionTable::Close(PartIndex part) {
  std::vector<ConnectionId> closed;
  for (Communicator& communicator : communicators_) {
    if (communicator.executed.part != part) continue;
    for (const auto& [key, id] : communicator.connections) closed.push_back(id);
    communicator.connections.clear();
    communicator.trees.clear();
  }
  for (const ConnectionId id : closed) CloseConnection(id);
  // Closed connections no longer affect their GPUs.
  const auto is_closed = [this](ConnectionId id) { return slots_[id].is_closed; };
  for (std::vector<ConnectionId>& of_gpu : server_connections_) std::erase_if(of_gpu, is_closed);
  for (std::vector<ConnectionId>& of_gpu : network_connections_) std::erase_if(of_gpu, is_closed);
  ++network_version_;
  return closed;
}

void ConnectionTable::CloseConnection(ConnectionId id) {
  slots_[id].is_closed = true;
  ForEachFlow(connections_[id], [](FlowOwner& owner, FlowId flow) { owner.Close(flow); });
}

std::vector<ConnectionId> ConnectionTable::ConnectionsOfPart(PartIndex part) const {
  std::vector<ConnectionId> of_part;
  for (const Communicator& communicator : communicators_) {
    if (communicator.executed.part != part) continue;
    for (const auto& [key, id] : communicator.connections) of_part.push_back(id);
  }
  return of_part;
}

void ConnectionTable::MoveTo(ConnectionId id, Transport& transport, FlowId flow) {
  ++network_version_;
  connections_[id].transport = &transport;
  connections_[id].flow = flow;
  connections_[id].is_detoured = true;
}

void ConnectionTable::JoinTree(ConnectionId id, uint32_t channel, RankIndex first_rank,
                               std::span<const GpuIndex> gpus, uint32_t place) {
  Communicator& communicator = communicators_[connections_[id].communicator];
  const uint64_t key = uint64_t{channel} << 32 | first_rank;
  const auto [at, is_new] = communicator.trees.try_emplace(key);
  // All members use one route, so the fabric's hashes use the first member's entropy.
  const uint64_t entropy = HashOf(channel, gpus.front(), gpus.size());
  if (is_new) at->second = aggregation_.OpenTree(gpus, entropy);
  connections_[id].flow = FlowId{at->second + place};
  aggregation_.Join(connections_[id].flow, {sinks_.network_sums, id});
}

void ConnectionTable::StartOver(ConnectionId id, bool is_send) {
  const Connection& connection = connections_[id];
  if (connection.carrier == ConnectionCarrier::kNvSwitches) {
    // A sum is requested by its receiver.
    const bool is_users = is_send == connection.is_switch_result();
    if (is_users && connection.flow != FlowId::kNone) {
      load_store_.groups().StartOver(connection.flow);
    }
    return;
  }
  if (!is_send) return;
  if (connection.flow != FlowId::kNone) OwnerOf(connection).StartOver(connection.flow);
  if (connection.is_relayed()) load_store_.StartOver(connection.relay_flow);
}

// --- Routes of connections -----------------------------------------------------------------------

template <typename Visitor>
void ConnectionTable::ForEachFlow(const Connection& connection, Visitor visit) const {
  if (connection.carrier == ConnectionCarrier::kNvSwitches) return;
  if (connection.is_relayed()) visit(load_store_, connection.relay_flow);
  if (connection.flow != FlowId::kNone) visit(OwnerOf(connection), connection.flow);
  if (connection.load_flow != FlowId::kNone) visit(load_store_, connection.load_flow);
}

std::vector<LinkId> ConnectionTable::LinksOf(const Connection& connection) const {
  std::vector<LinkId> links;
  ForEachFlow(connection, [&links](const FlowOwner& owner, FlowId flow) {
    for (const LinkId link : owner.LinksOf(flow)) links.push_back(link);
  });
  return links;
}

std::vector<LinkShare> ConnectionTable::LinkSharesOf(const Connection& connection) const {
  std::vector<LinkShare> shares;
  ForEachFlow(connection, [&shares](const FlowOwner& owner, FlowId flow) {
    for (const LinkShare& share : owner.LinkSharesOf(flow)) shares.push_back(share);
  });
  return shares;
}

RecoveryTimes ConnectionTable::RecoveryOf(ConnectionId id, bool of_data) const {
  const Connection& connection = connections_[id];
  return connection.transport->RecoveryOf(connection.flow, of_data);
}

// --- Runs that several processes simulate --------------------------------------------------------

std::vector<ConnectionTable::TakenBytes> ConnectionTable::AllTaken() const {
  std::vector<TakenBytes> taken;
  for (ConnectionId id; id < connections_.size(); ++id) {
    if (taken_bytes_[id] == 0) continue;
    taken.push_back(
        {.connection = id, .collective = connections_[id].collective, .bytes = taken_bytes_[id]});
  }
  return taken;
}

void ConnectionTable::AbsorbTaken(std::span<const TakenBytes> taken) {
  for (const TakenBytes& row : taken) {
    connections_[row.connection].collective = row.collective;
    taken_bytes_[row.connection] += row.bytes;
  }
}

// --- Snapshots -----------------------------------------------------------------------------------

void ConnectionTable::Visit(StateArchive& archive) {
  archive.Named("connections").Constant(connections_.size());
  archive.Section();
  for (ConnectionId id; id < connections_.size(); ++id) VisitConnection(id, archive);
}

void ConnectionTable::VisitSentBy(std::span<const GpuIndex> gpus, StateArchive& archive) {
  for (const GpuIndex gpu : gpus) {
    for (const ConnectionId id : server_connections_[gpu]) VisitConnection(id, archive);
  }
}

void ConnectionTable::VisitConnection(ConnectionId id, StateArchive& archive) {
  static_assert(NamesEveryMember<NetworkProgress>());
  Connection& connection = connections_[id];
  MessageSlots& slots = slots_[id];
  if (slots.is_closed) return;
  VisitFields(slots, id, archive);
  if (connection.is_on_network()) {
    const NetworkProgress& progress = slots.progress;
    archive.Require(progress.staged == slots.posted && progress.sent == slots.posted &&
                    progress.completed == slots.posted && progress.granted == slots.posted &&
                    progress.clear_to_send == slots.posted && progress.queued == slots.posted &&
                    (!connection.is_relayed() || progress.relayed == slots.posted));
  } else {
    // Visits when the sender sees each slot free, from the oldest on.
    for (uint32_t i = 0; i < kConnectionSlots; ++i) {
      archive.Named("time_ps").Instant(slots.time_ps[(slots.posted + i) % kConnectionSlots]);
    }
  }
  VisitFields(connection, id, archive);
  // Groups are opened when first used.
  archive.Named("flow is none").Constant(connection.flow == FlowId::kNone ? 1 : 0);
  archive.Named("taken_bytes").Count(taken_bytes_[id]);
  if (connection.is_network_sum()) VisitFields(aggregated_[connection.aggregations], id, archive);
}

}  // namespace railyard
