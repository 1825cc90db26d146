// SPDX-License-Identifier: GPL-2.0-only
// The state of connections between programs. Messages are numbered modulo 256 and only differences
// count, so slots are walked from the oldest on.
#include <bit>

#include "simulator/execution/lanes/lane_executor.h"
#include "simulator/units/mix64.h"

namespace railyard {

void LaneExecutor::Visit(StateArchive& archive) {
  archive.Constant(connections_.size());
  archive.Section();
  for (uint32_t id = 0; id < connections_.size(); ++id) VisitConnection(id, archive);
  archive.Section();
  proxies_.Visit(archive);
  archive.Constant(gpu_speeds_.size());
  for (const double speed : gpu_speeds_) archive.Constant(std::bit_cast<uint64_t>(speed));
  load_store_.Visit(archive);
  stack_->Visit(archive);
  aggregation_.Visit(archive);
}

void LaneExecutor::VisitGpus(std::span<const uint32_t> gpus, StateArchive& archive) {
  for (const uint32_t gpu : gpus) {
    for (const uint32_t id : nvlink_connections_[gpu]) VisitConnection(id, archive);
    archive.Constant(std::bit_cast<uint64_t>(SpeedOfGpu(gpu)));
  }
  load_store_.VisitGpus(gpus, archive);
}

uint64_t LaneExecutor::IdentityOfGpus(std::span<const uint32_t> gpus) const {
  uint64_t identity = 0;
  const auto add = [&](uint64_t value) { identity = Mix64(identity ^ value); };
  for (const uint32_t gpu : gpus) {
    add(nvlink_connections_[gpu].size());
    for (const uint32_t id : nvlink_connections_[gpu]) add(connections_[id].tie & kLocalTieMask);
    for (const uint32_t flow : load_store_.FlowsOf(gpu)) {
      add(LocalTieOf(load_store_.FirstUserOf(flow)));
    }
  }
  return identity;
}

void LaneExecutor::VisitConnection(uint32_t id, StateArchive& archive) {
  const Connection& connection = connections_[id];
  MessageSlots& slots = slots_[id];
  if (slots.is_closed) return;
  const NetworkProgress& progress = slots.progress;
  archive.Require(slots.sender == kNone && slots.receiver == kNone &&
                  slots.delivered == slots.posted && slots.consumed == slots.posted);
  if (connection.network) {
    archive.Require(progress.staged == slots.posted && progress.sent == slots.posted &&
                    progress.completed == slots.posted && progress.granted == slots.posted &&
                    progress.clear_to_send == slots.posted && progress.queued == slots.posted);
  } else {
    // When the sender sees each slot free.
    for (uint32_t i = 0; i < kConnectionSlots; ++i) {
      archive.Instant(slots.time_ps[(slots.posted + i) % kConnectionSlots]);
    }
  }
  archive.Constant(connection.is_detoured ? 1 : 0);
  archive.Constant(connection.flow == kNone ? 1 : 0);  // groups are opened when first used
  archive.Count(taken_bytes_[id]);
  if (!connection.is_network_sum) return;
  Aggregated& aggregated = aggregated_[connection.aggregations];
  for (AggregatedBytes* const bytes : {&aggregated.reduced, &aggregated.gathered}) {
    archive.Count(bytes->sent);
    archive.Count(bytes->received);
  }
}

}  // namespace railyard
