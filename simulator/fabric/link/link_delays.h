// SPDX-License-Identifier: GPL-2.0-only
// Models links that delay each packet. Packets leave in the order of their arrival.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "simulator/fabric/tables/packet.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

using DelayFilter = std::function<int64_t(const Packet&)>;

// Holds the packets of one such link that have arrived at its end and are still delayed.
class DelayLine {
 public:
  struct LatePacket {
    PacketId packet;
    int64_t release_ps;
  };
  struct Hold {
    int64_t release_ps = 0;
    bool is_first_of_instant = false;  // one event releases all packets due then
  };

  void SetFilter(DelayFilter extra_delay_ps) { extra_delay_ps_ = std::move(extra_delay_ps); }
  // Delays a packet that has arrived completely by the filter's result, and longer if it would
  // overtake another. Returns nothing if it may continue at once.
  std::optional<Hold> Take(PacketId index, const Packet& packet, int64_t now_ps);
  // Removes and returns the first packet that is due, if there is one.
  std::optional<PacketId> PopDue(int64_t now_ps);

  const std::deque<LatePacket>& late() const { return late_; }
  // Returns whether no packet is delayed and there is no filter.
  bool is_idle() const { return !extra_delay_ps_ && late_.empty(); }

 private:
  DelayFilter extra_delay_ps_;
  std::deque<LatePacket> late_;  // in order of their release
};

class LinkDelays {
 public:
  // Returns the link's line, which is created when first used and never moves.
  DelayLine& LineOf(LinkId link) { return lines_[link]; }
  // Returns null if the link has never delayed anything.
  const DelayLine* Find(LinkId link) const {
    const auto line = lines_.find(link);
    return line == lines_.end() ? nullptr : &line->second;
  }

 private:
  std::unordered_map<LinkId, DelayLine> lines_;
};

}  // namespace railyard
