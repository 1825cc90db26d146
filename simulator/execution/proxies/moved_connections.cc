// SPDX-License-Identifier: GPL-2.0-only
// What becomes of the messages of a connection that leaves its NIC.
#include "simulator/execution/lanes/flow_sinks.h"
#include "simulator/transport/connections/nic_detours.h"
#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

void LaneExecutor::FailOver(NicPolicy policy) {
  failover_.emplace(
      graph_, network_, table_, *stack_, sinks_->network, policy,
      NicFailover::Hooks{
          .before_move = [this](uint32_t connection) { LeaveFlow(connection); },
          .after_move = [this](uint32_t connection) { Resend(connection); },
          .on_detour = [this](std::span<const uint32_t> gpus) { observer_.OnDetour(gpus); }});
  table_.SetDetours([this](uint32_t connection) { return failover_->OpenAround(connection); });
}

void LaneExecutor::LeaveFlow(uint32_t id) {
  const Connection& connection = table_.connection(id);
  if (paths_) paths_->OnMove(id);
  if (connection.is_detoured) {
    connection.transport->Close(connection.flow);
    return;
  }
  queue_pairs().SetUser(connection.flow, {&sinks_->left_network, id});
  queue_pairs().SetError(connection.flow, true);
  queue_pairs().SetError(connection.flow, false);
}

// Both ends know what the receiver has: they tell one another out of band.
void LaneExecutor::Resend(uint32_t id) {
  const Connection& connection = table_.connection(id);
  MessageSlots& slots = table_.slots(id);
  NetworkProgress& progress = slots.progress;
  for (uint8_t i = slots.delivered; i != progress.clear_to_send; ++i) {
    connection.transport->Grant(connection.flow, false);
  }
  for (uint8_t i = progress.clear_to_send; i != progress.granted; ++i) {
    connection.transport->Grant(connection.flow, true);
  }
  for (uint8_t i = slots.delivered; i != progress.sent; ++i) {
    const uint32_t bytes = table_.staged(connection).bytes[i % kConnectionSlots];
    observer_.OnRetransmission(id);
    observer_.OnPacketRepeated(id, bytes);
    connection.transport->Post(connection.flow, {.size = SizeOf(slots.costs, bytes),
                                                 .tolerance_ppm = connection.loss_tolerance_ppm});
  }
  stack_->detours()->MarkRepeated(connection.flow);
  for (; progress.completed != slots.delivered; ++progress.completed) {
    if (paths_) paths_->OnCompleted(id, progress.completed % kConnectionSlots);
  }
  WakeSender(slots);
}

}  // namespace railyard
