// SPDX-License-Identifier: GPL-2.0-only
// Links that hold each packet back for an extra delay, in order.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>

#include "simulator/fabric/packet.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

using DelayFilter = std::function<int64_t(const Packet&)>;

// One such link: packets that came to its end and are not let go of yet.
class DelayLine {
 public:
  struct LatePacket {
    uint32_t packet;
    int64_t release_ps;
  };
  struct Hold {
    int64_t release_ps = 0;
    bool is_first_of_instant = false;  // one event lets go of all that are due with it
  };

  void SetFilter(DelayFilter extra_delay_ps) { extra_delay_ps_ = std::move(extra_delay_ps); }
  // Holds a packet that has arrived whole for as long as the filter answers, and longer where it
  // would overtake another; nullopt: it may go on at once.
  std::optional<Hold> Take(uint32_t index, const Packet& packet, int64_t now_ps);
  // Lets go of the first packet that is due; nullopt where none is.
  std::optional<uint32_t> PopDue(int64_t now_ps);

  const std::deque<LatePacket>& late() const { return late_; }
  // No packet is held, nor can be.
  bool is_idle() const { return !extra_delay_ps_ && late_.empty(); }

 private:
  DelayFilter extra_delay_ps_;
  std::deque<LatePacket> late_;  // in order
};

class LinkDelays {
 public:
  // Made with its first use; stays where it is as more are made.
  DelayLine& LineOf(LinkId link) { return lines_[link]; }
  // Null: the link never held anything back.
  const DelayLine* Find(LinkId link) const {
    const auto line = lines_.find(link);
    return line == lines_.end() ? nullptr : &line->second;
  }

 private:
  std::unordered_map<LinkId, DelayLine> lines_;
};

}  // namespace railyard
