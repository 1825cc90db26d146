// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/fabric/packet.h"
#include "simulator/fabric/packet_pool.h"

namespace railyard {

// Packets in order, through Packet::next.
struct PacketQueue {
  uint32_t first = Packet::kNone;
  uint32_t last = Packet::kNone;

  bool empty() const { return first == Packet::kNone; }
  void Append(PacketPool& packets, uint32_t index) {
    packets[index].next = Packet::kNone;
    if (empty()) {
      first = index;
    } else {
      packets[last].next = index;
    }
    last = index;
  }
  uint32_t Pop(PacketPool& packets) {
    const uint32_t index = first;
    first = packets[index].next;
    return index;
  }
};

// A port in the general form, and what is remembered of one that was: two classes wait, one packet
// is in service. The packet in service is the last of its link's timed ones.
struct Port {
  PacketQueue control;
  PacketQueue data;
  int64_t waiting_ps = 0;  // to send all that waits
  uint64_t waiting_data_bytes = 0;
  uint32_t waiting_packets = 0;
  bool is_serving = false;  // its departure is on the wheel
  bool is_paused = false;   // by pause frames or a storm
  bool is_paused_by_frame = false;
  bool is_in_storm = false;
  bool lacks_credit = false;  // for the data packet that is first
  bool check_pending = false;
  int64_t held_since_ps = 0;
  int64_t paused_ps = 0;  // in pauses that are over

  bool is_idle() const { return !is_serving && waiting_packets == 0; }
};

}  // namespace railyard
