// SPDX-License-Identifier: GPL-2.0-only
// Arbitration of the send queues on a NIC's port.
#include <algorithm>

#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

void QueueTransport::Activate(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  if (queue.Is(SendQueue::kActive) || !MaySend(queue)) return;
  queue.Set(SendQueue::kActive);
  network_.paths().Fetch(queue.first_link);
  NicPort& port = ports_[queue.port];
  if (MustWait(queue, queue_id)) [[unlikely]] {
    NicPorts::AddPaced(port,
                       {.time_ps = pacers_[QueuePairOf(queue_id)].next_send_ps, .queue = queue_id});
  } else {
    NicPorts::Append(port, queue_id, send_queues_);
  }
  ports_.ScheduleNextTurn(queue.port);
}

void QueueTransport::HandlePort(void* self, uint32_t port) {
  static_cast<QueueTransport*>(self)->Serve(port);
}

void QueueTransport::HandleTimer(void* self, uint32_t queue) {
  static_cast<QueueTransport*>(self)->OnTimer(QueueId{queue});
}

void QueueTransport::Serve(uint32_t port_id) {
  NicPort& port = ports_[port_id];
  const int64_t now_ps = network_.engine().NowPs();
  if (port.event_ps != now_ps) return;  // an earlier turn took its place
  // ACKs use the wire as well, so the packets that were read ahead must drain first.
  const int64_t backlog_ps = network_.BacklogPs(port.wire);
  if (backlog_ps > port.backlog_max_ps) {
    port.event_ps = kNeverPs;
    if (network_.IsHeld(port.wire)) return;  // until OnLinkReleased()
    port.free_ps = now_ps + backlog_ps - port.backlog_max_ps;
    ports_.ScheduleNextTurn(port_id);
    return;
  }
  if (port.next_paced_ps <= now_ps) [[unlikely]]
    ports_.TakePaced(port, send_queues_);
  const QueueId queue_id = NicPorts::TakeFirst(port, send_queues_);
  SendQueue& queue = send_queues_[queue_id];
  // While a queue waited for its turn, it may have lost its permission to send or moved to another
  // port.
  const bool is_here = queue.port == port_id;
  for (uint32_t left = port.burst_packets;
       left > 0 && is_here && MaySend(queue) && !MustWait(queue, queue_id); --left) {
    port.free_ps = std::max(port.free_ps, now_ps) + SendPacket(queue_id);
  }
  if (is_here && MaySend(queue) && !queue.Is(SendQueue::kPaced)) [[likely]] {
    NicPorts::Append(port, queue_id, send_queues_);
  } else {
    queue.Clear(SendQueue::kActive);
    Activate(queue_id);
  }
  port.event_ps = kNeverPs;
  ports_.ScheduleNextTurn(port_id);
}

}  // namespace railyard
