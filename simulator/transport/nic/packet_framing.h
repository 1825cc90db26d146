// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <algorithm>
#include <cstdint>

#include "simulator/transport/nic/nic_settings.h"
#include "simulator/units/divide_up.h"

namespace railyard {

// Describes the format of a protocol's packets, and the device that answers them.
struct PacketFraming {
  uint32_t header_bytes = 0;
  uint32_t first_packet_bytes = 0;  // of a message's first packet, besides the header
  uint32_t ack_bytes = 0;           // of an ACK, besides the header
  // If true, the host behind the NIC acknowledges data, from memory to memory.
  bool is_answered_by_host = false;
  // If true, OnSegmentSent() and OnLimits() of QueueTransport are called.
  bool follows_segments = false;

  // Returns the bytes on the wire of a message of `payload_bytes`.
  uint64_t WireBytes(uint64_t payload_bytes, uint32_t mtu_bytes) const {
    const uint64_t packets = PacketsOf(payload_bytes, mtu_bytes);
    return payload_bytes + packets * header_bytes + first_packet_bytes;
  }
  // Returns the number of packets of a message; one without payload has one.
  static uint32_t PacketsOf(uint64_t payload_bytes, uint32_t mtu_bytes) {
    return static_cast<uint32_t>(std::max<uint64_t>(1, DivideUp(payload_bytes, mtu_bytes)));
  }
};

// Returns the framing of RDMA writes.
inline PacketFraming RdmaFraming(const NicSettings& settings) {
  return {.header_bytes = settings.HeaderBytes(),
          .first_packet_bytes = kRethBytes,
          .ack_bytes = kAethBytes};
}

}  // namespace railyard
