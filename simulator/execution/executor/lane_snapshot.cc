// SPDX-License-Identifier: GPL-2.0-only
// Visits the state of connections between programs. Messages are numbered modulo 256 and only
// differences matter, so slots are visited from the oldest on.
#include "simulator/execution/executor/lane_executor.h"
#include "simulator/transport/nic/queue_transport.h"
#include "simulator/units/mix64.h"

namespace railyard {

void LaneExecutor::Visit(StateArchive& archive) {
  table_.Visit(archive);
  archive.Section();
  proxy_threads_.Visit(archive);
  clock_.Visit(archive);
}

void LaneExecutor::RegisterState(StateRegistry& registry) {
  registry.Add(*this);
  if (flows_) registry.Add(*flows_);
  registry.Add(load_store_);
  for (const auto& [name, transport] : stack_->transports()) {
    if (StateOwner* const owner = transport->state()) {
      registry.Add(*owner);
    } else {
      registry.AddUnknown(name);
    }
  }
  registry.Add(aggregation_);
}

void LaneExecutor::VisitGpus(std::span<const GpuIndex> gpus, StateArchive& archive) {
  table_.VisitSentBy(gpus, archive);
  for (const GpuIndex gpu : gpus) clock_.VisitGpu(gpu, archive);
  load_store_.VisitGpus(gpus, archive);
}

bool LaneExecutor::IsQueuePairAtRest(ConnectionId id) {
  const Connection& connection = table_.connection(id);
  if (!table_.IsQueuePair(connection) || connection.is_buffered || connection.is_relayed()) {
    return false;
  }
  StateArchive archive = StateArchive::OfState(network_.engine().NowPs());
  queue_pairs().VisitQueuePair(connection.flow, archive);
  return archive.is_quiescent();
}

// Visits connections by queue pairs. Those of other transports have no state here.
void LaneExecutor::VisitConnections(std::span<const ConnectionId> connections,
                                    StateArchive& archive) {
  for (const ConnectionId id : connections) {
    const Connection& connection = table_.connection(id);
    table_.VisitConnection(id, archive);
    if (table_.IsQueuePair(connection)) queue_pairs().VisitQueuePair(connection.flow, archive);
  }
}

void LaneExecutor::VisitNics(const NicGroup& group, StateArchive& archive) {
  archive.Require(group.at.has_value());
  if (!group.at) return;
  if (archive.takes()) {
    // It suffices that these are at rest.
    StateArchive others = StateArchive::OfState(network_.engine().NowPs());
    VisitConnections(group.others, others);
    archive.Require(others.is_quiescent());
  }
  VisitConnections(group.connections, archive);
  for (const GpuIndex gpu : group.gpus) {
    proxy_threads_.Visit(gpu, archive);
    clock_.VisitGpu(gpu, archive);
    queue_pairs().nic_ports().VisitNic(NicOf(gpu), archive);
  }
  network_.state().VisitNicLinks(group.links, archive);
}

void LaneExecutor::VisitCountersOfNics(StateArchive& archive) {
  network_.state().VisitCounters(archive);
  queue_pairs().VisitCounters(archive);
}

std::vector<uint8_t> LaneExecutor::TakeTimers(const NicGroup& group) {
  std::vector<uint8_t> timers;
  for (const ConnectionId id : group.connections) {
    timers.push_back(queue_pairs().TakeTimers(table_.connection(id).flow));
  }
  return timers;
}

void LaneExecutor::PutTimers(const NicGroup& group, const std::vector<uint8_t>& timers) {
  for (size_t i = 0; i < timers.size(); ++i) {
    queue_pairs().PutTimers(table_.connection(group.connections[i]).flow, timers[i]);
  }
}

NicGroup LaneExecutor::NicGroupOf(std::span<const GpuIndex> gpus,
                                  std::span<const CommunicatorIndex> communicators) const {
  return nic_groups_.GroupOf(gpus, communicators, [this](GpuIndex gpu) {
    const ProxyCosts& costs = proxies_.CostsOf(gpu);
    return Mix64(Mix64(static_cast<uint64_t>(costs.post_ps)) ^
                 static_cast<uint64_t>(costs.arrival_ps)) ^
           static_cast<uint64_t>(costs.completion_ps);
  });
}

}  // namespace railyard
