// SPDX-License-Identifier: GPL-2.0-only
// Shortest-path ECMP over the fabric between NICs, from Boost.Graph's breadth-first search.
// Distances are kept per destination attachment (the switch a NIC hangs on), so 1,024 NICs on 8
// leaves cost 8 searches.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/fabric_graph.h"

namespace railyard {

// The links a packet takes, first to last; empty if the destination cannot be reached.
using Path = std::vector<LinkId>;

class EcmpRouting {
 public:
  // `graph` must outlive this. `seed` enters every switch's hash.
  EcmpRouting(const FabricGraph& graph, uint64_t seed);

  // From one device to another over NICs and switches (never through a GPU, an NVSwitch or a third
  // NIC), at each hop choosing among the equal-cost next links that are up by a hash of (seed,
  // switch, entropy).
  Path Resolve(DeviceId from, DeviceId to, uint64_t entropy) const;
  // Number of equal-cost shortest paths, 0 if unreachable.
  uint64_t CountShortestPaths(DeviceId from, DeviceId to) const;

  // A link's state as routing knows it (after detection and convergence). Distances are
  // recomputed when next asked for.
  void SetLinkUp(LinkId link, bool up);

 private:
  // next-hop distances to one destination; cleared by SetLinkUp
};

}  // namespace railyard
