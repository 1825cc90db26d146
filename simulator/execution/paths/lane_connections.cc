// SPDX-License-Identifier: GPL-2.0-only
// Connections between the ranks of communicators: what they are called, and what they go over.
#include <algorithm>
#include <array>

#include "simulator/diagnostics/check.h"
#include "simulator/execution/lanes/flow_sinks.h"
#include "simulator/transport/connections/nic_detours.h"
#include "simulator/units/mix64.h"

namespace railyard {

// Of a hash that ECMP sees as a connection's entropy.
constexpr int kHashBits = 52;

uint64_t LaneExecutor::HashOf(uint64_t a, uint64_t b, uint64_t c) {
  return Mix64(Mix64(Mix64(a) ^ b) ^ c) >> (64 - kHashBits);
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
  static_assert(kConnectionsMax <= 1u << (32 - kPostPhaseBits));
  SIM_CHECK(id < kConnectionsMax, "too many connections");
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
    slots.flag_latency_ps = FlagLatencyPs(
        load_store_.Open({&sinks_->stores, id}, connection.from_gpu, connection.to_gpu));
    return;
  }
  connection.network = slots.network = route.network;
  if (!route.network) {
    nvlink_connections_[connection.from_gpu].push_back(id);
    if (route.over_host_memory) {
      connection.flow =
          load_store_.OpenHostStore({&sinks_->stores, id}, connection.from_gpu, connection.to_gpu);
      connection.load_flow = load_store_.OpenHostLoad({&sinks_->loads, id}, connection.to_gpu);
      slots.flag_latency_ps = FlagLatencyPs(connection.flow) + FlagLatencyPs(connection.load_flow);
      return;
    }
    connection.flow =
        load_store_.Open({&sinks_->stores, id}, connection.from_gpu, connection.to_gpu);
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
        load_store_.Open({&sinks_->stores, id}, connection.from_gpu, connection.injecting_gpu);
    slots.flag_latency_ps = FlagLatencyPs(connection.relay_flow);
  }
  if (nic_policy_) [[unlikely]] {
    const std::vector<NicWay> ways = WaysAround(connection, DeadNicsOf(connection));
    if (!ways.empty()) {
      OpenDetour(id, ways);
      return;
    }
  }
  connection.transport = &stack_->Between(connection.injecting_gpu, connection.to_gpu);
  connection.is_buffered = connection.transport->BuffersMessages();
  connection.flow = connection.transport->Open({&sinks_->network, id}, connection.injecting_gpu,
                                               connection.to_gpu, entropy);
}

uint64_t LaneExecutor::LocalTieOf(const SinkRef& user) const {
  const std::array<const MessageSink*, 3> own = {&sinks_->stores, &sinks_->loads,
                                                 &sinks_->switch_sums};
  const auto found = std::ranges::find(own, user.sink);
  const auto role = static_cast<uint64_t>(found - own.begin());
  // A detour's flow has an equal in no other server.
  if (found == own.end()) return Mix64(reinterpret_cast<uintptr_t>(user.sink)) ^ user.number;
  return (connections_[user.number].tie & kLocalTieMask) | role << kLocalTieBits;
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

int64_t LaneExecutor::FlagLatencyPs(uint32_t flow) const {
  return network_.PathLatencyPs(load_store_.PathsOf(flow).front().path, 0);
}

uint32_t LaneExecutor::GpuOfServer(uint32_t gpu, uint32_t local_index) const {
  return gpu_at_.at(ServerAndIndex(graph_.device(graph_.gpus()[gpu]).server, local_index));
}

std::vector<LinkId> LaneExecutor::LinksOf(const Connection& connection) const {
  std::vector<LinkId> links;
  const auto append = [&links](const std::vector<LinkId>& more) {
    links.insert(links.end(), more.begin(), more.end());
  };
  if (connection.is_switch_operand || connection.is_switch_result) return links;
  if (connection.is_network_sum) {
    return connection.flow == kNone ? links : aggregation_.LinksOf(connection.flow);
  }
  if (!connection.network) append(load_store_.LinksOf(connection.flow));
  if (connection.load_flow != kNone) append(load_store_.LinksOf(connection.load_flow));
  if (connection.is_relayed) append(load_store_.LinksOf(connection.relay_flow));
  if (connection.network) append(connection.transport->LinksOf(connection.flow));
  return links;
}

std::vector<LinkShare> LaneExecutor::LinkSharesOf(const Connection& connection) const {
  std::vector<LinkShare> shares;
  const auto append = [&shares](const std::vector<LinkShare>& more) {
    shares.insert(shares.end(), more.begin(), more.end());
  };
  if (connection.is_switch_operand || connection.is_switch_result) return shares;
  if (connection.is_network_sum) {
    for (const LinkId link : LinksOf(connection)) shares.push_back({link, 1});
    return shares;
  }
  if (!connection.network) append(load_store_.LinkSharesOf(connection.flow));
  if (connection.load_flow != kNone) append(load_store_.LinkSharesOf(connection.load_flow));
  if (connection.is_relayed) append(load_store_.LinkSharesOf(connection.relay_flow));
  if (connection.network) append(connection.transport->LinkSharesOf(connection.flow));
  return shares;
}

}  // namespace railyard
