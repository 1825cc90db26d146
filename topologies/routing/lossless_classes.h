// SPDX-License-Identifier: GPL-2.0-only
// Determines the lossless class of a packet on each link between switches, such that pauses or
// credits do not wait for each other in a cycle (DeadlockAvoidance). Links to and from NICs are in
// class 0, because packets there never wait for a link that leads back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {

class LosslessClasses {
 public:
  // PFC has 8 priorities (IEEE 802.1Qbb). InfiniBand has up to 15 virtual lanes for data.
  static constexpr uint32_t kMax = 8;

  // `graph` must outlive this.
  explicit LosslessClasses(const FabricGraph& graph);

  // Returns how many classes the fabric's routes need with every link up, at most kMax; 1 if they
  // are lossy.
  uint32_t count() const { return count_; }

  // Returns the class on `link`, which leaves a switch, of a packet that arrived by `before` in
  // `class_before`. Failures can make routes longer than there are classes; the rest of such a
  // route is in the last class.
  uint8_t Next(LinkId before, uint8_t class_before, LinkId link) const;
  // Returns the class on every link of a path. `detour_hop` is the position of the first link
  // behind Valiant's detour; the second part of the path has separate classes.
  std::vector<uint8_t> OfPath(const Path& path, std::optional<uint32_t> detour_hop) const;

 private:
  bool JoinsSwitches(LinkId link) const;

  uint32_t PlaceIn(std::optional<LinkId> before, uint32_t place, LinkId link) const;

  const FabricGraph& graph_;
  uint32_t count_ = 1;
  uint32_t classes_per_part_ = 1;  // of Valiant's routes, without hop classes
};

// Returns true if a packet on `link` between switches has crossed the wrap-around cable of the ring
// to which the link belongs. `before` is the previous link between switches, if any, and
// `was_behind` the result for that link.
bool IsBehindDateline(const FabricGraph& graph, std::optional<LinkId> before, bool was_behind,
                      LinkId link);

}  // namespace railyard
