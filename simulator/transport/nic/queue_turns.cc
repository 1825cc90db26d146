// SPDX-License-Identifier: GPL-2.0-only
// Arbitration of the send queues on a NIC's port.
#include <algorithm>

#include "simulator/event_order/event_order.h"
#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

void QueueTransport::Activate(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  if (queue.Is(SendQueue::kActive) || !MaySend(queue)) return;
  queue.Set(SendQueue::kActive);
  network_.paths().Fetch(queue.first_link);
  NicPort& port = ports_[queue.port];
  if (MustWait(queue, queue_id)) [[unlikely]] {
    port.paced.push_back({pacers_[QueuePairOf(queue_id)].next_send_ps, queue_id});
    std::push_heap(port.paced.begin(), port.paced.end());
    port.next_paced_ps = port.paced.front().time_ps;
  } else {
    Append(port, queue_id);
  }
  ScheduleNextTurn(queue.port);
}

void QueueTransport::Append(NicPort& port, QueueId queue_id) {
  send_queues_[queue_id].next_active = QueueId::kNone;
  if (port.first_active == QueueId::kNone) {
    port.first_active = queue_id;
  } else {
    send_queues_[port.last_active].next_active = queue_id;
  }
  port.last_active = queue_id;
}

// Moves the queues that are due to the ring.
void QueueTransport::TakePaced(NicPort& port) {
  const int64_t now_ps = network_.engine().NowPs();
  while (!port.paced.empty() && port.paced.front().time_ps <= now_ps) {
    Append(port, port.paced.front().queue);
    std::pop_heap(port.paced.begin(), port.paced.end());
    port.paced.pop_back();
  }
  port.next_paced_ps = port.paced.empty() ? kNeverPs : port.paced.front().time_ps;
}

inline void QueueTransport::ScheduleServe(uint32_t port_id, int64_t time_ps) {
  NicPort& port = ports_[port_id];
  time_ps = std::max(time_ps, network_.engine().NowPs());
  if (port.event_ps <= time_ps) return;
  port.event_ps = time_ps;
  network_.engine().ScheduleFabric(time_ps, event_order::kQueuePort, port_id, port_id);
}

inline void QueueTransport::ScheduleNextTurn(uint32_t port_id) {
  const NicPort& port = ports_[port_id];
  if (port.first_active != QueueId::kNone) [[likely]] {
    ScheduleServe(port_id, port.free_ps);
  } else if (port.next_paced_ps != kNeverPs) {
    ScheduleServe(port_id, std::max(port.free_ps, port.next_paced_ps));
  }
}

void QueueTransport::OnLinkReleased(LinkId link) {
  if (port_of_link_[link] != SendQueue::kNone) ScheduleNextTurn(port_of_link_[link]);
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
    ScheduleNextTurn(port_id);
    return;
  }
  if (port.next_paced_ps <= now_ps) [[unlikely]]
    TakePaced(port);
  const QueueId queue_id = port.first_active;
  SendQueue& queue = send_queues_[queue_id];
  port.first_active = queue.next_active;
  // While a queue waited for its turn, it may have lost its permission to send or moved to another
  // port.
  const bool is_here = queue.port == port_id;
  for (uint32_t left = port.burst_packets;
       left > 0 && is_here && MaySend(queue) && !MustWait(queue, queue_id); --left) {
    port.free_ps = std::max(port.free_ps, now_ps) + SendPacket(queue_id);
  }
  if (is_here && MaySend(queue) && !queue.Is(SendQueue::kPaced)) [[likely]] {
    Append(port, queue_id);
  } else {
    queue.Clear(SendQueue::kActive);
    Activate(queue_id);
  }
  port.event_ps = kNeverPs;
  ScheduleNextTurn(port_id);
}

}  // namespace railyard
