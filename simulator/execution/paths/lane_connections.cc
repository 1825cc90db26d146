// SPDX-License-Identifier: GPL-2.0-only
// Connections between the ranks of communicators: what they are called, and what they go over.
#include "simulator/diagnostics/check.h"
#include "simulator/execution/lanes/lane_executor.h"
#include "simulator/units/mix64.h"

namespace railyard {

uint64_t LaneExecutor::HashOf(uint64_t a, uint64_t b, uint64_t c) {
  return Mix64(Mix64(Mix64(a) ^ b) ^ c) >> (64 - FabricSimulatorImpl::kIdBits);
}

// Ties among events of one class and picosecond are broken by what they are of, never by when it
// was made: a run with a fault and one without number their connections differently. Within a
// server they are broken by what like servers have in common, so that these do the same, then by
// the GPU.
uint64_t LaneExecutor::TieOf(const GpuPlace& place, uint64_t a, uint64_t b, uint64_t c) {
  constexpr uint64_t kServers = uint64_t{1} << (FabricSimulatorImpl::kIdBits - kLocalTieBits);
  return place.server % kServers << kLocalTieBits |
         (HashOf(a, b, c) & kLocalTieMask & ~kGpuTieMask) | (place.local_index & kGpuTieMask);
}

uint64_t LaneExecutor::KeyOf(uint32_t channel, uint32_t from, uint32_t to, ConnectionUse use) {
  return static_cast<uint64_t>(use) << 61 | uint64_t{channel} << 48 | uint64_t{from} << 24 | to;
}

uint32_t LaneExecutor::ConnectionBetween(const Program& program, uint32_t channel, uint32_t from,
                                         uint32_t to, ConnectionUse use) {
  const auto [it, is_new] = communicators_[program.communicator].connections.try_emplace(
      KeyOf(channel, from, to, use), 0);
  if (is_new) it->second = OpenConnection(program, channel, from, to, use);
  return it->second;
}

uint32_t LaneExecutor::OpenConnection(const Program& program, uint32_t channel, uint32_t from,
                                      uint32_t to, ConnectionUse use) {
  const ExecutedCommunicator& executed = communicators_[program.communicator].executed;
  const auto id = static_cast<uint32_t>(connections_.size());
  SIM_CHECK(id < 1u << (32 - kPostPhaseBits) && id < kDetoured, "too many connections");
  Connection connection;
  connection.communicator = program.communicator;
  connection.from_gpu = executed.gpus[from];
  connection.to_gpu = executed.gpus[to];
  connection.injecting_gpu = connection.from_gpu;
  connection.tie = TieOfConnection(program.communicator, channel, from, to, use);
  connection.is_switch_operand = use == ConnectionUse::kSwitchOperand;
  connection.is_switch_result = use == ConnectionUse::kSwitchResult;
  connection.is_network_sum = use == ConnectionUse::kNetworkSum;
  connections_.push_back(connection);
  slots_.emplace_back();
  taken_bytes_.push_back(0);
  slots_base_ = reinterpret_cast<const char*>(slots_.data());
  if (connection.is_network_sum) {
    connections_[id].flow = kNone;
    connections_[id].staged = static_cast<uint32_t>(staged_.size());
    staged_.emplace_back();
    connections_[id].aggregations = static_cast<uint32_t>(aggregations_.size());
    aggregations_.emplace_back();
    aggregated_.emplace_back();
  } else {
    const uint64_t entropy =
        HashOf(uint64_t{program.communicator} << 8 | channel,
               uint64_t{connection.from_gpu} << 32 | connection.to_gpu, static_cast<uint64_t>(use));
    OpenRoute(id, executed.planner->RouteOf(channel, from, to, use), entropy);
  }
  return id;
}

void LaneExecutor::OpenRoute(uint32_t id, const ConnectionRoute& route, uint64_t entropy) {
  Connection& connection = connections_[id];
  MessageSlots& slots = slots_[id];
  if (connection.is_switch_operand || connection.is_switch_result) {
    nvlink_connections_[connection.from_gpu].push_back(id);
    connection.flow = kNone;
    if (connection.from_gpu == connection.to_gpu) return;
    // For a flag's latency.
    slots.flag_latency_ps =
        FlagLatencyPs(load_store_.Open(id, connection.from_gpu, connection.to_gpu));
    return;
  }
  connection.network = slots.network = route.network;
  if (!route.network) {
    nvlink_connections_[connection.from_gpu].push_back(id);
    if (route.over_host_memory) {
      connection.flow = load_store_.OpenHostStore(id, connection.from_gpu, connection.to_gpu);
      connection.load_flow = load_store_.OpenHostLoad(id | kLoadLeg, connection.to_gpu);
      slots.flag_latency_ps = FlagLatencyPs(connection.flow) + FlagLatencyPs(connection.load_flow);
      return;
    }
    connection.flow = load_store_.Open(id, connection.from_gpu, connection.to_gpu);
    slots.flag_latency_ps = FlagLatencyPs(connection.flow);
    return;
  }
  network_connections_[connection.from_gpu].push_back(id);
  ++network_version_;
  connection.staged = static_cast<uint32_t>(staged_.size());
  staged_.emplace_back();
  const Device& sender = graph_.device(graph_.gpus()[connection.from_gpu]);
  if (route.sending_local_index != static_cast<uint32_t>(sender.local_index)) {
    connection.is_relayed = true;
    connection.injecting_gpu = GpuOfServer(connection.from_gpu, route.sending_local_index);
    connection.relay_flow =
        load_store_.Open(id | kRelayLeg, connection.from_gpu, connection.injecting_gpu);
    slots.flag_latency_ps = FlagLatencyPs(connection.relay_flow);
  }
  if (is_socket_) {
    connection.flow = sockets_.Open(id, connection.injecting_gpu, connection.to_gpu, entropy);
    return;
  }
  if (nic_policy_) [[unlikely]] {
    const std::vector<NicDetours::Way> ways = WaysAround(connection, DeadNicsOf(connection));
    if (!ways.empty()) {
      OpenDetour(id, ways);
      return;
    }
  }
  connection.is_striped = striped_.AreSeveral(connection.injecting_gpu, connection.to_gpu);
  connection.flow = connection.is_striped
                        ? striped_.Open(id, connection.injecting_gpu, connection.to_gpu, entropy)
                        : rdma_.Open(id, connection.injecting_gpu, connection.to_gpu, entropy);
}

uint64_t LaneExecutor::LocalTieOf(uint32_t id) const {
  constexpr uint32_t kLegs = kRelayLeg | kSwitchSum;
  if ((id & ~kLegs) >= kFirstDetour) return id;  // no other server has the same
  return (connections_[ConnectionOf(id)].tie & kLocalTieMask) | uint64_t{id & kLegs} << 32;
}

uint64_t LaneExecutor::TieOfConnection(uint32_t communicator, uint32_t channel, uint32_t from,
                                       uint32_t to, ConnectionUse use) const {
  const Communicator& owner = communicators_[communicator];
  const GpuPlace& sender = places_[owner.executed.gpus[from]];
  const GpuPlace& receiver = places_[owner.executed.gpus[to]];
  // On like rails the same: nothing of which GPU of its server the sender is.
  const bool is_local = sender.server == receiver.server;
  const uint64_t ends =
      is_local ? uint64_t{sender.local_index} << 48 | receiver.local_index : uint64_t{1} << 32 | to;
  return TieOf(sender, uint64_t{owner.local_numbers[from]} << 8 | channel, ends,
               static_cast<uint64_t>(use));
}

std::vector<uint32_t> LaneExecutor::QueuePairsOf(const Connection& connection) const {
  if (is_socket_) return sockets_.StreamsOf(connection.flow);
  if (connection.is_striped) return striped_.QueuePairsOf(connection.flow);
  if (connection.is_detoured) return detours_.QueuePairsOf(connection.flow);
  return {connection.flow};
}

RecoveryTimes LaneExecutor::RecoveryOf(const Connection& connection, bool of_data) const {
  if (is_socket_) return of_data ? sockets_.RecoveryOf(connection.flow) : RecoveryTimes{};
  if (connection.is_striped) return striped_.RecoveryOf(connection.flow, of_data);
  if (connection.is_detoured) return detours_.RecoveryOf(connection.flow, of_data);
  return rdma_.RecoveryOf(connection.flow, of_data);
}

int64_t LaneExecutor::FlagLatencyPs(uint32_t flow) const {
  return network_.PathLatencyPs(load_store_.PathsOf(flow).front().path, 0);
}

uint32_t LaneExecutor::GpuOfServer(uint32_t gpu, uint32_t local_index) const {
  return gpu_at_.at(ServerAndIndex(graph_.device(graph_.gpus()[gpu]).server, local_index));
}

std::vector<LinkId> LaneExecutor::LinksOf(const Connection& connection) const {
  std::vector<LinkId> links;
  const auto append = [&](PathRef path) {
    for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
      links.push_back(network_.LinkOfPath(path, hop));
    }
  };
  if (connection.is_switch_operand || connection.is_switch_result) return links;
  if (connection.is_network_sum) {
    return connection.flow == kNone ? links : aggregation_.LinksOf(connection.flow);
  }
  if (!connection.network) append(load_store_.PathsOf(connection.flow).front().path);
  if (connection.load_flow != kNone) append(load_store_.PathsOf(connection.load_flow).front().path);
  if (connection.is_relayed) append(load_store_.PathsOf(connection.relay_flow).front().path);
  if (connection.is_detoured) {
    const NicDetours::Legs legs = detours_.LegsOf(connection.flow).front();
    if (legs.to_sender != kNone) append(load_store_.PathsOf(legs.to_sender).front().path);
    append(rdma_.DataPath(legs.queue_pair));
    if (legs.from_receiver != kNone) append(load_store_.PathsOf(legs.from_receiver).front().path);
  } else if (connection.network) {
    append(rdma_.DataPath(QueuePairsOf(connection).front()));
  }
  return links;
}

std::vector<LinkShare> LaneExecutor::LinkSharesOf(const Connection& connection) const {
  std::vector<LinkShare> shares;
  const auto append = [&](PathRef path, double share) {
    for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
      shares.push_back({network_.LinkOfPath(path, hop), share});
    }
  };
  const auto append_planes = [&](uint32_t flow, double share) {
    const auto paths = load_store_.PathsOf(flow);
    double weights = 0;
    for (const auto& plane : paths) weights += plane.weight;
    for (const auto& plane : paths) append(plane.path, share * plane.weight / weights);
  };
  if (connection.is_switch_operand || connection.is_switch_result) return shares;
  if (connection.is_network_sum) {
    for (const LinkId link : LinksOf(connection)) shares.push_back({link, 1});
    return shares;
  }
  if (!connection.network) append_planes(connection.flow, 1);
  if (connection.load_flow != kNone) append_planes(connection.load_flow, 1);
  if (connection.is_relayed) append_planes(connection.relay_flow, 1);
  if (!connection.network) return shares;
  const std::vector<uint32_t> queue_pairs = QueuePairsOf(connection);
  const double share = 1.0 / static_cast<double>(queue_pairs.size());
  for (const uint32_t queue_pair : queue_pairs) append(rdma_.DataPath(queue_pair), share);
  if (!connection.is_detoured) return shares;
  for (const NicDetours::Legs& legs : detours_.LegsOf(connection.flow)) {
    if (legs.to_sender != kNone) append_planes(legs.to_sender, share);
    if (legs.from_receiver != kNone) append_planes(legs.from_receiver, share);
  }
  return shares;
}

}  // namespace railyard
