// SPDX-License-Identifier: GPL-2.0-only
// The lossless class that a packet is in on each link between switches, so that pauses, or credits,
// do not wait for each other in a circle (DeadlockAvoidance). Links to and from NICs are in class
// 0: nothing there waits for a link that leads back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {

class LosslessClasses {
 public:
  // Priorities of PFC (IEEE 802.1Qbb). InfiniBand has up to 15 virtual lanes for data.
  static constexpr uint32_t kMax = 8;

  // `graph` must outlive this.
  explicit LosslessClasses(const FabricGraph& graph);

  // That the fabric's routes need with every link up, at most kMax. 1 for lossy ones.
  uint32_t count() const { return count_; }

  // On `link` out of a switch, of a packet that came there by `before` in the class `class_before`.
  // On routes that failures made longer than there are classes the rest is in the last one.
  uint8_t Next(LinkId before, uint8_t class_before, LinkId link) const;
  // On every link of a path. `detour_hop`: position in it of the first link behind Valiant's
  // detour, from where on its second part has classes of its own.
  std::vector<uint8_t> OfPath(const Path& path, std::optional<uint32_t> detour_hop) const;

 private:
  bool JoinsSwitches(LinkId link) const;

  uint32_t PlaceIn(std::optional<LinkId> before, uint32_t place, LinkId link) const;

  const FabricGraph& graph_;
  uint32_t count_ = 1;
  uint32_t classes_per_part_ = 1;  // of Valiant's routes, without hop classes
};

// Whether a packet on `link` between switches has crossed the wrap-around cable of the ring that
// the link is part of. `before`: the link between switches that it came by, if any, and whether it
// had crossed that one's ring's there.
bool IsBehindDateline(const FabricGraph& graph, std::optional<LinkId> before, bool was_behind,
                      LinkId link);

}  // namespace railyard
