// SPDX-License-Identifier: GPL-2.0-only
// Describes the border of the part of a network that this process simulates, while other processes
// simulate the rest of it.
//
// A packet on an outgoing link keeps its record until it arrives, because the device that it came
// from may still count it in a buffer. A copy is sent to the process that simulates the link's end
// once the packet's transmission has begun. From then on the packet's arrival is certain, and it is
// later than the start of the transmission by at least the link's delay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/fabric/packet.h"
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

struct Border {
  std::vector<LinkId> outgoing;       // links whose target is elsewhere
  std::vector<uint8_t> kind_of_link;  // by link; empty: there is no border
  std::vector<Crossing> frames;       // sent, not yet collected
  uint64_t arrivals_elsewhere = 0;    // events by which outgoing packets left their records
  std::string obstacle;               // an event that a part alone cannot simulate
  // These fields add up the parts that were absorbed.
  bool has_absorbed = false;
  uint64_t absorbed_in_flight_bytes = 0;
  std::vector<uint32_t> absorbed_on_link;

  static constexpr uint8_t kOutgoing = 1;
  static constexpr uint8_t kIncoming = 2;

  bool exists() const { return !kind_of_link.empty(); }
  bool Has(LinkId link) const { return exists() && kind_of_link[link] != 0; }
  bool ComesFromElsewhere(LinkId link) const { return exists() && kind_of_link[link] == kIncoming; }
  // Notes that a packet was lost. A part alone cannot simulate that, because the packet's sender
  // may be elsewhere; packets that the receiver discards are no obstacle.
  void NoteDrop(DropReason reason) {
    if (reason == DropReason::kOutOfSequence || reason == DropReason::kDuplicate) return;
    obstacle = std::string("packets are lost (") + DropReasonName(reason) + ")";
  }
};

}  // namespace railyard
