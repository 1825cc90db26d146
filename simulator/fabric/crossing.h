// SPDX-License-Identifier: GPL-2.0-only
// Defines what the processes that simulate the parts of a network exchange.
#pragma once

#include <cstdint>

#include "simulator/fabric/tables/packet.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Carries a packet with the time of its arrival, or a pause frame with the time when it is obeyed.
struct Crossing {
  Packet packet;

  // Returns the crossing of a pause frame. `link` is the one whose sender pauses or resumes,
  // `event` PauseFrame::event_id().
  static Crossing OfPauseFrame(int64_t time_ps, LinkId link, uint32_t event) {
    Crossing crossing;
    crossing.packet.arrival_ps = time_ps;
    crossing.packet.link = link;
    crossing.packet.flow = event;
    return crossing;
  }
  bool is_pause_frame() const { return packet.hop_count == 0; }
  int64_t time_ps() const { return packet.arrival_ps; }
};
static_assert(sizeof(Crossing) == 64);

// Counts the packets of a link in one part of the network. The part with the link's source counts
// `sent` and `on_link`, and the part with its target counts the rest.
struct LinkTotals {
  LinkId link{};
  uint32_t sent = 0;
  uint32_t on_link = 0;
  uint64_t payload_bytes = 0;
  uint64_t wire_bytes = 0;
  uint64_t packets = 0;
};

}  // namespace railyard
