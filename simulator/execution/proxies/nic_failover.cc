// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/proxies/nic_failover.h"

#include <algorithm>
#include <utility>

#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

NicFailover::NicFailover(const Parts& parts, NicPolicy policy)
    : parts_(parts), detours_(*parts.stack.detours()), policy_(policy) {}

// Returns what a probe of other NICs on both servers would find.
bool NicFailover::Answers(DeviceId nic) const {
  return std::ranges::any_of(parts_.graph.WiresOfNic(nic), [this](LinkId wire) {
    return parts_.network.IsLinkUp(wire) && parts_.network.IsLinkUp(parts_.graph.ReverseLink(wire));
  });
}

bool NicFailover::MayMoveSome() {
  if (look_ && look_->conditions == parts_.network.state().conditions() &&
      look_->version == parts_.table.network_version()) {
    return look_->may_move;
  }
  std::set<DeviceId> silent;
  for (const DeviceId gpu : parts_.graph.gpus()) {
    const auto nic = parts_.graph.NicOfGpu(gpu);
    if (nic && !Answers(*nic)) silent.insert(*nic);
  }
  bool may_move = false;
  const auto& connections = parts_.table.connections();
  for (ConnectionId id; id < connections.size() && !may_move && !silent.empty(); ++id) {
    may_move =
        !parts_.table.IsClosed(id) && MayMove(connections[id]) && UsesAny(connections[id], silent);
  }
  look_ = {parts_.network.state().conditions(), parts_.table.network_version(), may_move};
  return may_move;
}

bool NicFailover::OpenAround(ConnectionId id) {
  const Connection& connection = parts_.table.connection(id);
  const std::vector<NicWay> ways = WaysAround(connection, DeadNicsOf(connection));
  if (ways.empty()) return false;
  OpenDetour(id, ways);
  return true;
}

bool NicFailover::UsesAny(const Connection& connection, const std::set<DeviceId>& nics) const {
  const auto is_any = [&](GpuIndex a, GpuIndex b) {
    return nics.contains(NicOf(a)) || nics.contains(NicOf(b));
  };
  if (!connection.is_detoured) return is_any(connection.injecting_gpu, connection.to_gpu);
  return std::ranges::any_of(detours_.WaysOf(connection.flow), [&](const NicWay& way) {
    return is_any(way.sending_gpu, way.receiving_gpu);
  });
}

// Both ends use NICs of one rail, which are connected in every fabric. The search starts at the
// rail after that of the failed NIC.
std::vector<NicWay> NicFailover::WaysAround(const Connection& connection,
                                            const std::set<DeviceId>& nics) const {
  std::vector<NicWay> ways;
  if (nics.empty() || !UsesAny(connection, nics)) return ways;
  const auto device_of = [this](GpuIndex gpu) -> const Device& {
    return parts_.graph.device(parts_.graph.gpus()[gpu]);
  };
  const ServerIndex from_server = device_of(connection.injecting_gpu).server;
  const bool is_receivers = nics.contains(NicOf(connection.to_gpu));
  const auto own = static_cast<uint32_t>(
      device_of(is_receivers ? connection.to_gpu : connection.injecting_gpu).local_index);
  std::vector<uint32_t> rails;
  for (GpuIndex gpu{0}; gpu < parts_.graph.gpus().size(); ++gpu) {
    const Device& device = device_of(gpu);
    if (device.server == from_server) rails.push_back(static_cast<uint32_t>(device.local_index));
  }
  std::ranges::sort(rails);
  std::rotate(rails.begin(), std::ranges::upper_bound(rails, own), rails.end());
  std::set<std::pair<DeviceId, DeviceId>> taken;  // GPUs may share a NIC
  for (const uint32_t rail : rails) {
    const std::optional<GpuIndex> from =
        parts_.graph.FindGpuOfServer(connection.injecting_gpu, rail);
    const std::optional<GpuIndex> to = parts_.graph.FindGpuOfServer(connection.to_gpu, rail);
    if (!from || !to) continue;
    const auto sending_nic = parts_.graph.NicOfGpu(parts_.graph.gpus()[*from]);
    const auto receiving_nic = parts_.graph.NicOfGpu(parts_.graph.gpus()[*to]);
    if (!sending_nic || !receiving_nic) continue;
    const std::pair<DeviceId, DeviceId> ends = {*sending_nic, *receiving_nic};
    const NicWay way = {.sending_gpu = *from, .receiving_gpu = *to};
    if (nics.contains(ends.first) || nics.contains(ends.second) ||
        !detours_.CanTake(connection.injecting_gpu, connection.to_gpu, way) ||
        !taken.insert(ends).second) {
      continue;
    }
    ways.push_back(way);
    if (policy_ == NicPolicy::kPxn) break;
  }
  return ways;
}

bool NicFailover::TryToMove(ConnectionId id) {
  const Connection& failed = parts_.table.connection(id);
  if (!MayMove(failed)) return false;
  std::set<DeviceId>& dead = DeadNicsOf(failed);
  for (const DeviceId gpu : parts_.graph.gpus()) {
    const ServerIndex server = parts_.graph.device(gpu).server;
    const auto nic = parts_.graph.NicOfGpu(gpu);
    const bool is_of_ends =
        server == parts_.graph.device(parts_.graph.gpus()[failed.injecting_gpu]).server ||
        server == parts_.graph.device(parts_.graph.gpus()[failed.to_gpu]).server;
    if (nic && is_of_ends && !Answers(*nic)) dead.insert(*nic);
  }
  // If the connection uses no failed NIC, the fabric in between has failed.
  if (!UsesAny(failed, dead)) return false;
  std::vector<std::pair<ConnectionId, std::vector<NicWay>>> moves;
  for (const ConnectionId other :
       parts_.table.ConnectionsOfPart(parts_.table.executed(failed.communicator).part)) {
    const Connection& connection = parts_.table.connection(other);
    if (!MayMove(connection) || !UsesAny(connection, dead)) continue;
    moves.emplace_back(other, WaysAround(connection, dead));
    if (moves.back().second.empty()) return false;
  }
  std::ranges::sort(moves, {}, [](const auto& move) { return move.first; });
  for (const auto& [connection, ways] : moves) {
    Move(connection, ways);
  }
  return true;
}

void NicFailover::Move(ConnectionId id, std::span<const NicWay> ways) {
  const Connection& left = parts_.table.connection(id);
  if (!left.is_detoured) parts_.stack.queue_pairs()->ClockTimeouts(left.flow);
  parts_.proxies.OnLeave(id);
  LeaveFlow(id);
  OpenDetour(id, ways);
  parts_.proxies.Resend(id, parts_.observer);
  detours_.MarkRepeated(parts_.table.connection(id).flow);
}

void NicFailover::LeaveFlow(ConnectionId id) {
  const Connection& connection = parts_.table.connection(id);
  if (connection.is_detoured) {
    connection.transport->Close(connection.flow);
    return;
  }
  QueueTransport& queue_pairs = *parts_.stack.queue_pairs();
  queue_pairs.SetUser(connection.flow, {&parts_.left_sink, id});
  queue_pairs.SetError(connection.flow, true);
  queue_pairs.SetError(connection.flow, false);
}

void NicFailover::OpenDetour(ConnectionId id, std::span<const NicWay> ways) {
  const Connection& connection = parts_.table.connection(id);
  std::vector<GpuIndex> gpus = {connection.from_gpu, connection.injecting_gpu, connection.to_gpu};
  for (const NicWay& way : ways) {
    gpus.push_back(way.sending_gpu);
    gpus.push_back(way.receiving_gpu);
  }
  parts_.observer.OnDetour(gpus);
  const FlowId flow = detours_.OpenOver(ways, {&parts_.sink, id}, connection.injecting_gpu,
                                        connection.to_gpu, connection.tie);
  parts_.table.MoveTo(id, detours_, flow);
  ++count_;
}

}  // namespace railyard
