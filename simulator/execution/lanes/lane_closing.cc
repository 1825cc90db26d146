// SPDX-License-Identifier: GPL-2.0-only
// Programs that are ended in the middle, and what is left of them.
#include "simulator/diagnostics/check.h"
#include "simulator/execution/lanes/lane_executor.h"

namespace railyard {

// Lanes and connections keep their numbers for good: events and packets that are under way name
// them.
std::vector<uint32_t> LaneExecutor::Close(uint32_t part) {
  std::vector<uint32_t> closed;
  for (Communicator& communicator : communicators_) {
    if (communicator.executed.part != part) continue;
    for (const auto& [key, id] : communicator.connections) closed.push_back(id);
    communicator.connections.clear();
    communicator.trees.clear();
  }
  dead_nics_.erase(part);
  for (const uint32_t id : closed) CloseConnection(id);
  // They take no part in what their GPUs do later.
  const auto is_closed = [this](uint32_t id) { return slots_[id].is_closed; };
  for (std::vector<uint32_t>& of_gpu : nvlink_connections_) std::erase_if(of_gpu, is_closed);
  for (std::vector<uint32_t>& of_gpu : network_connections_) std::erase_if(of_gpu, is_closed);
  ++network_version_;
  for (uint32_t id = 0; id < lanes_.size(); ++id) {
    const Program& program = active_channels_[lane_programs_[id].channel].program;
    if (communicators_[program.communicator].executed.part == part) lanes_[id].in_use = false;
  }
  std::erase_if(still_lanes_, [this](uint32_t id) { return !lanes_[id].in_use; });
  return closed;
}

void LaneExecutor::CloseConnection(uint32_t id) {
  const Connection& connection = connections_[id];
  slots_[id].is_closed = true;
  claimants_.erase(id);
  if (connection.is_network_sum) {
    if (connection.flow != kNone) aggregation_.Close(connection.flow);
  } else if (connection.network) {
    connection.transport->Close(connection.flow);
  }
}

void LaneExecutor::Relocate(uint32_t communicator, ExecutedCommunicator relocated) {
  SIM_CHECK(communicators_[communicator].connections.empty(),
            "a communicator moves while it has connections");
  communicators_[communicator].executed = std::move(relocated);
}

}  // namespace railyard
