// SPDX-License-Identifier: GPL-2.0-only
// Connections that leave NICs that have failed, in the middle of a collective: what the receiver
// does not have yet is sent again over other NICs of both servers.
#include <algorithm>
#include <utility>

#include "simulator/execution/lanes/flow_sinks.h"
#include "simulator/transport/connections/nic_detours.h"
#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

bool LaneExecutor::IsDetoured(uint32_t communicator, uint32_t channel, uint32_t from, uint32_t to,
                              ConnectionUse use) const {
  const auto& connections = communicators_[communicator].connections;
  const auto it = connections.find(KeyOf(channel, from, to, use));
  return it != connections.end() && connections_[it->second].is_detoured;
}

// As other NICs of both servers find when they probe it.
bool LaneExecutor::Answers(DeviceId nic) const {
  return std::ranges::any_of(graph_.WiresOfNic(nic), [this](LinkId wire) {
    return network_.IsLinkUp(wire) && network_.IsLinkUp(graph_.ReverseLink(wire));
  });
}

bool LaneExecutor::MayFailOver() {
  if (!nic_policy_) return false;
  if (failover_look_ && failover_look_->conditions == network_.conditions() &&
      failover_look_->version == network_version_) {
    return failover_look_->may_fail_over;
  }
  std::set<DeviceId> silent;
  for (const DeviceId gpu : graph_.gpus()) {
    const auto nic = graph_.NicOfGpu(gpu);
    if (nic && !Answers(*nic)) silent.insert(*nic);
  }
  const auto may_be_moved = [&](uint32_t id) {
    return MayMove(connections_[id]) && UsesAny(connections_[id], silent);
  };
  const bool may_fail_over =
      !silent.empty() && std::ranges::any_of(network_connections_, [&](const auto& of_gpu) {
        return std::ranges::any_of(of_gpu, may_be_moved);
      });
  failover_look_ = {network_.conditions(), network_version_, may_fail_over};
  return may_fail_over;
}

std::set<DeviceId>& LaneExecutor::DeadNicsOf(const Connection& connection) {
  return dead_nics_[communicators_[connection.communicator].executed.part];
}

bool LaneExecutor::UsesAny(const Connection& connection, const std::set<DeviceId>& nics) const {
  const auto is_any = [&](uint32_t a, uint32_t b) {
    return nics.contains(NicOf(a)) || nics.contains(NicOf(b));
  };
  if (!connection.is_detoured) return is_any(connection.injecting_gpu, connection.to_gpu);
  return std::ranges::any_of(stack_->detours()->WaysOf(connection.flow), [&](const NicWay& way) {
    return is_any(way.sending_gpu, way.receiving_gpu);
  });
}

// Both ends use NICs of one rail, which are joined in every fabric. From the rail behind that of
// the NIC that failed on.
std::vector<NicWay> LaneExecutor::WaysAround(const Connection& connection,
                                             const std::set<DeviceId>& nics) const {
  std::vector<NicWay> ways;
  if (nics.empty() || !UsesAny(connection, nics)) return ways;
  const auto device_of = [this](uint32_t gpu) -> const Device& {
    return graph_.device(graph_.gpus()[gpu]);
  };
  const int32_t from_server = device_of(connection.injecting_gpu).server;
  const int32_t to_server = device_of(connection.to_gpu).server;
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
    const auto from = gpu_at_.find(uint64_t{static_cast<uint32_t>(from_server)} << 32 | rail);
    const auto to = gpu_at_.find(uint64_t{static_cast<uint32_t>(to_server)} << 32 | rail);
    if (from == gpu_at_.end() || to == gpu_at_.end()) continue;
    const auto sending_nic = graph_.NicOfGpu(graph_.gpus()[from->second]);
    const auto receiving_nic = graph_.NicOfGpu(graph_.gpus()[to->second]);
    if (!sending_nic || !receiving_nic) continue;
    const std::pair<DeviceId, DeviceId> ends = {*sending_nic, *receiving_nic};
    const NicWay way = {.sending_gpu = from->second, .receiving_gpu = to->second};
    if (nics.contains(ends.first) || nics.contains(ends.second) ||
        !stack_->detours()->CanTake(connection.injecting_gpu, connection.to_gpu, way) ||
        !taken.insert(ends).second) {
      continue;
    }
    ways.push_back(way);
    if (nic_policy_ == NicPolicy::kPxn) break;
  }
  return ways;
}

bool LaneExecutor::TryToFailOver(uint32_t id) {
  const Connection& failed = connections_[id];
  if (!failed.network || !MayMove(failed)) return false;
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
  const uint32_t part = communicators_[failed.communicator].executed.part;
  std::vector<std::pair<uint32_t, std::vector<NicWay>>> moves;
  for (const Communicator& communicator : communicators_) {
    if (communicator.executed.part != part) continue;
    for (const auto& [key, other] : communicator.connections) {
      const Connection& connection = connections_[other];
      if (!connection.network || !MayMove(connection) || !UsesAny(connection, dead)) continue;
      moves.emplace_back(other, WaysAround(connection, dead));
      if (moves.back().second.empty()) return false;
    }
  }
  std::ranges::sort(moves, {}, [](const auto& move) { return move.first; });
  for (const auto& [connection, ways] : moves) Move(connection, ways);
  RunWoken();
  return true;
}

void LaneExecutor::OpenDetour(uint32_t id, std::span<const NicWay> ways) {
  Connection& connection = connections_[id];
  std::vector<uint32_t> gpus = {connection.from_gpu, connection.injecting_gpu, connection.to_gpu};
  for (const NicWay& way : ways) {
    gpus.push_back(way.sending_gpu);
    gpus.push_back(way.receiving_gpu);
  }
  observer_.OnDetour(gpus);
  ++network_version_;
  connection.transport = stack_->detours();
  connection.flow = stack_->detours()->OpenOver(
      ways, {&sinks_->network, id}, connection.injecting_gpu, connection.to_gpu, connection.tie);
  connection.is_detoured = true;
  ++nic_failovers_;
}

// Both ends know what the receiver has: they tell one another out of band.
void LaneExecutor::Move(uint32_t id, std::span<const NicWay> ways) {
  Connection& connection = connections_[id];
  MessageSlots& slots = slots_[id];
  NetworkProgress& progress = slots.progress;
  if (paths_) TraceMove(id);
  if (connection.is_detoured) {
    stack_->detours()->Close(connection.flow);
  } else {
    queue_pairs().SetUser(connection.flow, {&sinks_->left_network, id});
    queue_pairs().SetError(connection.flow, true);
    queue_pairs().SetError(connection.flow, false);
  }
  OpenDetour(id, ways);
  for (uint8_t i = slots.delivered; i != progress.clear_to_send; ++i) {
    connection.transport->Grant(connection.flow, false);
  }
  for (uint8_t i = progress.clear_to_send; i != progress.granted; ++i) {
    connection.transport->Grant(connection.flow, true);
  }
  for (uint8_t i = slots.delivered; i != progress.sent; ++i) {
    const uint32_t bytes = staged_[connection.staged].bytes[i % kConnectionSlots];
    observer_.OnRetransmission(id);
    observer_.OnPacketRepeated(id, bytes);
    connection.transport->Post(connection.flow, {.size = SizeOf(slots.costs, bytes),
                                                 .tolerance_ppm = connection.loss_tolerance_ppm});
  }
  stack_->detours()->MarkRepeated(connection.flow);
  for (; progress.completed != slots.delivered; ++progress.completed) {
    if (paths_) TraceCompletion(id, progress.completed % kConnectionSlots);
  }
  WakeSender(slots);
}

}  // namespace railyard
