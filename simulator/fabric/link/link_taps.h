// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "simulator/fabric/tables/fabric_tables.h"
#include "simulator/fabric/tables/packet.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Is called for every packet of a link when its arrival is processed, with the reason if the link
// loses the packet. It must change nothing.
using LinkTap = std::function<void(const Packet&, std::optional<DropReason>)>;

// Observes arrivals: calls taps, and hashes the trajectory of all packets if the settings require
// it. Links without taps do no additional work.
class LinkTaps {
 public:
  // `tables` must outlive this.
  explicit LinkTaps(FabricTables& tables) : tables_(tables) {}

  // Removes all taps.
  void Reset() { taps_.clear(); }
  void Add(LinkId link, LinkTap tap);
  // Must be called for each arrival on a link with LinkRecord::kObserved.
  void Observe(const Packet& packet, std::optional<DropReason> loss);
  // Returns a hash over (time, link, kind, flow, sequence) of all arrivals, in order; 0 unless
  // FabricSettings::hashes_trajectory is set.
  uint64_t trajectory_hash() const { return trajectory_hash_; }

 private:
  FabricTables& tables_;
  std::unordered_multimap<LinkId, LinkTap> taps_;
  uint64_t trajectory_hash_ = 0;
};

}  // namespace railyard
