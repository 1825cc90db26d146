// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "simulator/fabric/tables/packet.h"
#include "simulator/state/field_table.h"

namespace railyard {

// Counts what happened on one direction of a link. Bytes count when the last bit arrives.
struct LinkCounters {
  uint64_t payload_bytes = 0;        // first transmissions of data
  uint64_t header_bytes = 0;         // everything that is not payload of data
  uint64_t retransmitted_bytes = 0;  // payload sent again
  uint64_t packets = 0;
  uint64_t dropped_packets = 0;  // lost on the link
  int64_t paused_ps = 0;         // pauses of its data up to now, summed over all classes
};

// Counts what happened in a whole network.
struct NetworkCounters {
  uint64_t packets = 0;         // data packets injected
  uint64_t packet_hops = 0;     // data packets times links crossed
  uint64_t control_hops = 0;    // the same for all other packets
  uint64_t injected_bytes = 0;  // payload of data, every transmission
  uint64_t delivered_bytes = 0;
  uint64_t replicated_bytes = 0;  // payload added by switches that copy packets
  uint64_t reduced_bytes = 0;     // payload taken out by switches that combine packets
  std::array<uint64_t, kDropReasonCount> dropped_packets{};
  std::array<uint64_t, kDropReasonCount> dropped_bytes{};  // payload of data
  uint64_t ecn_marked = 0;                                 // marks that switches set
  uint64_t xoff_frames = 0;
  uint64_t xon_frames = 0;
  int64_t pfc_pause_ps = 0;   // sum over links of the pauses that are over
  uint64_t general_hops = 0;  // transmissions in the general form
  uint64_t draws = 0;         // decisions whether to mark, lose or delay a packet

  static constexpr auto Fields() {
    using N = NetworkCounters;
    return FieldTable(
        "counters", field::Count("packets", &N::packets),
        field::Count("packet_hops", &N::packet_hops),
        field::Count("control_hops", &N::control_hops),
        field::Count("injected_bytes", &N::injected_bytes),
        field::Count("delivered_bytes", &N::delivered_bytes),
        field::Count("replicated_bytes", &N::replicated_bytes),
        field::Count("reduced_bytes", &N::reduced_bytes),
        field::Unrepeatable("dropped_packets", &N::dropped_packets),
        field::Fixed("dropped_bytes", &N::dropped_bytes),
        field::Count("ecn_marked", &N::ecn_marked), field::Count("xoff_frames", &N::xoff_frames),
        field::Count("xon_frames", &N::xon_frames), field::Count("pfc_pause_ps", &N::pfc_pause_ps),
        field::Count("general_hops", &N::general_hops), field::Unrepeatable("draws", &N::draws));
  }

  void Add(const NetworkCounters& other) { CombineFields(*this, other, std::plus<>()); }

  uint64_t dropped_data_bytes() const {
    uint64_t sum = 0;
    for (const uint64_t bytes : dropped_bytes) sum += bytes;
    return sum;
  }
};

}  // namespace railyard
