// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/proxies/nic_failover.h"

#include <algorithm>
#include <utility>

namespace railyard {

NicFailover::NicFailover(const FabricGraph& graph, const FabricNetwork& network,
                         ConnectionTable& table, NetworkStack& stack, MessageSink& sink,
                         NicPolicy policy, Hooks hooks)
    : graph_(graph),
      network_(network),
      table_(table),
      detours_(*stack.detours()),
      sink_(sink),
      policy_(policy),
      hooks_(std::move(hooks)) {}

// As other NICs of both servers find when they probe it.
bool NicFailover::Answers(DeviceId nic) const {
  return std::ranges::any_of(graph_.WiresOfNic(nic), [this](LinkId wire) {
    return network_.IsLinkUp(wire) && network_.IsLinkUp(graph_.ReverseLink(wire));
  });
}

bool NicFailover::MayMoveSome() {
  if (look_ && look_->conditions == network_.conditions() &&
      look_->version == table_.network_version()) {
    return look_->may_move;
  }
  std::set<DeviceId> silent;
  for (const DeviceId gpu : graph_.gpus()) {
    const auto nic = graph_.NicOfGpu(gpu);
    if (nic && !Answers(*nic)) silent.insert(*nic);
  }
  bool may_move = false;
  const auto& connections = table_.connections();
  for (uint32_t id = 0; id < connections.size() && !may_move && !silent.empty(); ++id) {
    may_move = !table_.IsClosed(id) && MayMove(connections[id]) && UsesAny(connections[id], silent);
  }
  look_ = {network_.conditions(), table_.network_version(), may_move};
  return may_move;
}

bool NicFailover::OpenAround(uint32_t id) {
  const Connection& connection = table_.connection(id);
  const std::vector<NicWay> ways = WaysAround(connection, DeadNicsOf(connection));
  if (ways.empty()) return false;
  OpenDetour(id, ways);
  return true;
}

bool NicFailover::UsesAny(const Connection& connection, const std::set<DeviceId>& nics) const {
  const auto is_any = [&](uint32_t a, uint32_t b) {
    return nics.contains(NicOf(a)) || nics.contains(NicOf(b));
  };
  if (!connection.is_detoured) return is_any(connection.injecting_gpu, connection.to_gpu);
  return std::ranges::any_of(detours_.WaysOf(connection.flow), [&](const NicWay& way) {
    return is_any(way.sending_gpu, way.receiving_gpu);
  });
}

// Both ends use NICs of one rail, which are joined in every fabric. From the rail behind that of
// the NIC that failed on.
std::vector<NicWay> NicFailover::WaysAround(const Connection& connection,
                                            const std::set<DeviceId>& nics) const {
  std::vector<NicWay> ways;
  if (nics.empty() || !UsesAny(connection, nics)) return ways;
  const auto device_of = [this](uint32_t gpu) -> const Device& {
    return graph_.device(graph_.gpus()[gpu]);
  };
  const int32_t from_server = device_of(connection.injecting_gpu).server;
  const bool is_receivers = nics.contains(NicOf(connection.to_gpu));
  const auto own = static_cast<uint32_t>(
      device_of(is_receivers ? connection.to_gpu : connection.injecting_gpu).local_index);
  std::vector<uint32_t> rails;
  for (uint32_t gpu = 0; gpu < graph_.gpus().size(); ++gpu) {
    const Device& device = device_of(gpu);
    if (device.server == from_server) rails.push_back(static_cast<uint32_t>(device.local_index));
  }
  std::ranges::sort(rails);
  std::ranges::rotate(rails, std::ranges::upper_bound(rails, own));
  std::set<std::pair<DeviceId, DeviceId>> taken;  // GPUs may share a NIC
  for (const uint32_t rail : rails) {
    const std::optional<uint32_t> from = table_.FindGpuOfServer(connection.injecting_gpu, rail);
    const std::optional<uint32_t> to = table_.FindGpuOfServer(connection.to_gpu, rail);
    if (!from || !to) continue;
    const auto sending_nic = graph_.NicOfGpu(graph_.gpus()[*from]);
    const auto receiving_nic = graph_.NicOfGpu(graph_.gpus()[*to]);
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

bool NicFailover::TryToMove(uint32_t id) {
  const Connection& failed = table_.connection(id);
  if (!MayMove(failed)) return false;
  std::set<DeviceId>& dead = DeadNicsOf(failed);
  for (const DeviceId gpu : graph_.gpus()) {
    const int32_t server = graph_.device(gpu).server;
    const auto nic = graph_.NicOfGpu(gpu);
    const bool is_of_ends = server == graph_.device(graph_.gpus()[failed.injecting_gpu]).server ||
                            server == graph_.device(graph_.gpus()[failed.to_gpu]).server;
    if (nic && is_of_ends && !Answers(*nic)) dead.insert(*nic);
  }
  // Otherwise it is the fabric in between that does not work.
  if (!UsesAny(failed, dead)) return false;
  std::vector<std::pair<uint32_t, std::vector<NicWay>>> moves;
  for (const uint32_t other : table_.ConnectionsOfPart(table_.executed(failed.communicator).part)) {
    const Connection& connection = table_.connection(other);
    if (!MayMove(connection) || !UsesAny(connection, dead)) continue;
    moves.emplace_back(other, WaysAround(connection, dead));
    if (moves.back().second.empty()) return false;
  }
  std::ranges::sort(moves, {}, [](const auto& move) { return move.first; });
  for (const auto& [connection, ways] : moves) {
    hooks_.before_move(connection);
    OpenDetour(connection, ways);
    hooks_.after_move(connection);
  }
  return true;
}

void NicFailover::OpenDetour(uint32_t id, std::span<const NicWay> ways) {
  const Connection& connection = table_.connection(id);
  std::vector<uint32_t> gpus = {connection.from_gpu, connection.injecting_gpu, connection.to_gpu};
  for (const NicWay& way : ways) {
    gpus.push_back(way.sending_gpu);
    gpus.push_back(way.receiving_gpu);
  }
  hooks_.on_detour(gpus);
  const uint32_t flow = detours_.OpenOver(ways, {&sink_, id}, connection.injecting_gpu,
                                          connection.to_gpu, connection.tie);
  table_.MoveTo(id, detours_, flow);
  ++count_;
}

}  // namespace railyard
