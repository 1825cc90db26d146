// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "simulator/fabric/packet.h"

namespace railyard {

// Counts what happened on one direction of a link. Bytes count when the last bit arrives.
struct LinkCounters {
  uint64_t payload_bytes = 0;        // first transmissions of data
  uint64_t header_bytes = 0;         // everything that is not payload of data
  uint64_t retransmitted_bytes = 0;  // payload sent again
  uint64_t packets = 0;
  uint64_t dropped_packets = 0;  // lost on the link
  int64_t paused_ps = 0;         // its data by pause frames, up to now, all classes added up
};

// Counts what happened in a whole network.
struct NetworkCounters {
  uint64_t packets = 0;         // data packets injected
  uint64_t packet_hops = 0;     // data packets times links crossed
  uint64_t control_hops = 0;    // the same of all other packets
  uint64_t injected_bytes = 0;  // payload of data, every transmission
  uint64_t delivered_bytes = 0;
  uint64_t replicated_bytes = 0;  // added by NVSwitches that multicast
  uint64_t reduced_bytes = 0;     // taken out by NVSwitches that combine
  std::array<uint64_t, kDropReasonCount> dropped_packets{};
  std::array<uint64_t, kDropReasonCount> dropped_bytes{};  // payload of data
  uint64_t ecn_marked = 0;                                 // marks that switches set
  uint64_t xoff_frames = 0;
  uint64_t xon_frames = 0;
  int64_t pfc_pause_ps = 0;   // sum over links of the pauses that are over
  uint64_t general_hops = 0;  // transmissions in the general form
  uint64_t draws = 0;         // by which packets were marked, lost or held back, or not

  void Add(const NetworkCounters& other) {
    packets += other.packets;
    packet_hops += other.packet_hops;
    control_hops += other.control_hops;
    injected_bytes += other.injected_bytes;
    delivered_bytes += other.delivered_bytes;
    replicated_bytes += other.replicated_bytes;
    reduced_bytes += other.reduced_bytes;
    for (size_t reason = 0; reason < dropped_packets.size(); ++reason) {
      dropped_packets[reason] += other.dropped_packets[reason];
      dropped_bytes[reason] += other.dropped_bytes[reason];
    }
    ecn_marked += other.ecn_marked;
    xoff_frames += other.xoff_frames;
    xon_frames += other.xon_frames;
    pfc_pause_ps += other.pfc_pause_ps;
    general_hops += other.general_hops;
    draws += other.draws;
  }

  uint64_t dropped_data_bytes() const {
    uint64_t sum = 0;
    for (const uint64_t bytes : dropped_bytes) sum += bytes;
    return sum;
  }
};

}  // namespace railyard
