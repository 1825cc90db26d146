// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/transport/rdma_queue.h"
#include "topologies/fabric_graph.h"

namespace railyard {

// A NIC's way out to the fabric: one wire, and the send queues whose turn on it comes, in order.
struct NicPort {
  LinkId wire = 0;
  uint32_t first_active = SendQueue::kNone;
  uint32_t last_active = SendQueue::kNone;
  bool event_pending = false;
  int64_t free_ps = 0;  // when what was last read has been sent, were the wire idle
  // How much of the wire's time may be waiting for it: what covers the path from memory.
  int64_t backlog_max_ps = 0;
  int64_t full_packet_ps = 0;  // of a packet of the MTU that does not begin a message
};

}  // namespace railyard
