// SPDX-License-Identifier: GPL-2.0-only
// Connects the part of a network that this process simulates with the parts that other processes
// simulate.
//
// A packet on an outgoing link keeps its record until it arrives, because the device that it came
// from may still count it in a buffer. A copy is sent to the process that simulates the link's end
// once the packet's transmission has begun. From then on the packet's arrival is certain, and it is
// later than the start of the transmission by at least the link's delay.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simulator/fabric/buffer/pause_frames.h"
#include "simulator/fabric/crossing.h"
#include "simulator/fabric/link/link_delays.h"
#include "simulator/fabric/tables/fabric_tables.h"
#include "simulator/fabric/tables/network_counters.h"
#include "simulator/fabric/tables/packet.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class FabricPart {
 public:
  // Both must outlive this. Without SetBorder() the part is the whole network.
  FabricPart(FabricTables& tables, const LinkDelays& delays) : tables_(tables), delays_(delays) {}

  // --- The border
  // Precondition: no packet was injected. From now on the network must neither lose nor repeat
  // packets (obstacle() says if it did), and the links of the border must have no credits.
  void SetBorder(const std::vector<LinkId>& outgoing, const std::vector<LinkId>& incoming);
  bool has_border() const { return !kind_of_link_.empty(); }
  bool IsOnBorder(LinkId link) const { return has_border() && kind_of_link_[link] != 0; }
  bool ComesFromElsewhere(LinkId link) const {
    return has_border() && kind_of_link_[link] == kIncoming;
  }

  // --- Crossings
  // Appends the crossings that were not collected before: pause frames, and packets whose
  // transmission begins before `before_ps`. Returns the earliest start among the timed packets
  // that begin later, or INT64_MAX if there is none.
  int64_t Collect(int64_t before_ps, std::vector<Crossing>& crossings);
  // Takes a crossing from another process. Precondition: its time is not before now.
  void Take(const Crossing& crossing);
  // Frees a packet that has arrived over an outgoing link, and subtracts it from the counters of
  // arrivals, because the process at the link's end counts it.
  void Leave(PacketId index);
  // Keeps a pause frame that is obeyed in another process until Collect() is called.
  void LeaveFrame(PauseFrame frame, int64_t obeyed_ps);
  // Returns how many events have called Leave().
  uint64_t arrivals_elsewhere() const { return arrivals_elsewhere_; }

  // --- Obstacles: events that a part alone cannot simulate
  // Notes that a packet was lost. Its sender may be elsewhere; packets that the receiver discards
  // are no obstacle.
  void NoteDrop(DropReason reason);
  // Returns the last obstacle, or an empty string if there was none.
  const std::string& obstacle() const { return obstacle_; }

  // --- Counters of this part, at the end of the run, for Absorb() in another process
  std::vector<LinkTotals> Totals() const;
  // Returns the payload in flight whose arrival this process simulates.
  uint64_t InFlightBytes() const;

  // --- The whole network, from its parts
  // Adds the counters of a part that another process has simulated.
  void Absorb(std::span<const LinkTotals> links, const NetworkCounters& counters,
              uint64_t in_flight_bytes);
  bool has_absorbed() const { return has_absorbed_; }
  uint64_t absorbed_in_flight_bytes() const { return absorbed_in_flight_bytes_; }
  // Ends the program unless the absorbed parts conserve packets on every link.
  void CheckAbsorbed() const;

 private:
  static constexpr uint8_t kOutgoing = 1;
  static constexpr uint8_t kIncoming = 2;

  FabricTables& tables_;
  const LinkDelays& delays_;
  std::vector<LinkId> outgoing_;       // links whose target is elsewhere
  std::vector<uint8_t> kind_of_link_;  // by link; empty: there is no border
  std::vector<Crossing> frames_;       // sent, not yet collected
  uint64_t arrivals_elsewhere_ = 0;
  std::string obstacle_;
  // These members add up the parts that were absorbed.
  bool has_absorbed_ = false;
  uint64_t absorbed_in_flight_bytes_ = 0;
  std::vector<uint32_t> absorbed_on_link_;
};

}  // namespace railyard
