// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/nic/queue_state.h"
#include "simulator/units/units.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Holds the time of a paced queue's next turn.
struct PacedTurn {
  int64_t time_ps;
  QueueId queue;
  // Orders heaps so that the earliest turn is on top. Ties are broken by queue number, so the order
  // of insertion does not matter.
  bool operator<(const PacedTurn& other) const {
    return time_ps != other.time_ps ? time_ps > other.time_ps : queue > other.queue;
  }
};

// Describes a NIC's port to the fabric: one wire, and the send queues that wait for their turn on
// it, in order.
struct NicPort {
  LinkId wire{0};
  QueueId first_active = QueueId::kNone;
  QueueId last_active = QueueId::kNone;
  int64_t event_ps = kNeverPs;       // of its next event; others are ignored
  int64_t next_paced_ps = kNeverPs;  // of the first of `paced`
  int64_t free_ps = 0;               // end of the last packet read, if the wire were idle
  // Packets that take this much wire time may be read ahead from memory, enough to cover the path
  // from there.
  int64_t backlog_max_ps = 0;
  int64_t full_packet_ps = 0;    // of a packet of the MTU that does not begin a message
  uint32_t burst_packets = 1;    // that a queue sends in its turn
  std::vector<PacedTurn> paced;  // heap of queues that may send, but not yet

  static constexpr auto Fields() {
    return FieldTable("NIC port", field::Fixed("wire", &NicPort::wire),
                      field::Quiescent("first_active", &NicPort::first_active, QueueId::kNone),
                      field::NoState("last_active", &NicPort::last_active,
                                     "the next queue that joins the empty ring sets it"),
                      field::Quiescent("event_ps", &NicPort::event_ps, kNeverPs),
                      field::Idle("next_paced_ps", &NicPort::next_paced_ps, kNeverPs),
                      field::Instant("free_ps", &NicPort::free_ps),
                      field::Fixed("backlog_max_ps", &NicPort::backlog_max_ps),
                      field::Fixed("full_packet_ps", &NicPort::full_packet_ps),
                      field::Fixed("burst_packets", &NicPort::burst_packets),
                      field::Quiescent("paced", &NicPort::paced));
  }
};

// Returns the wire time of the packets that a NIC may read from memory ahead of one of its wires:
// enough to cover the path from memory, plus two packets of `full_wire_bytes`.
int64_t ReadAheadPs(const FabricGraph& graph, const FabricNetwork& network, LinkId wire,
                    uint32_t full_wire_bytes);

}  // namespace railyard
