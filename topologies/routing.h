// SPDX-License-Identifier: GPL-2.0-only
// Shortest-path ECMP over the fabric between NICs, from Boost.Graph's breadth-first search, in the
// order of dimensions where the fabric says so.
// Distances are kept per destination attachment (the switch a NIC hangs on), so 1,024 NICs on 8
// leaves cost 8 searches.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include "topologies/fabric_graph.h"

namespace railyard {

// The links a packet takes, first to last; empty if the destination cannot be reached.
using Path = std::vector<LinkId>;

// Where a packet may go next: equal-cost links, in the order of creation, and how many links it
// then has crossed at the end, these included.
struct NextHops {
  std::vector<LinkId> links;
  uint32_t hops = 0;
};

// Any shortest path is legal, also one that goes up and down twice where links are cut; networks
// that forbid it are not modelled. Resolve() makes one choice per switch and flow, as a switch's
// hash over a packet's header does; NextHopsTo() leaves the choice to the switch. When the number
// of equal-cost links changes, flows through that switch are dealt anew (no resilient hashing). Not
// for use by two threads at once.
//
// Every switch and NIC has its own view of which links are up: news of a link reaches those nearer
// to it sooner. While views differ, the switches of a path may send a packet in a circle; such a
// destination counts as one that cannot be reached.
class EcmpRouting {
 public:
  // `graph` must outlive this. `seed` enters every switch's hash.
  EcmpRouting(const FabricGraph& graph, uint64_t seed);

  // From one GPU or NIC to another over NICs and switches (never through a GPU, an NVSwitch or a
  // third NIC), at each hop choosing among the equal-cost next links that are up by a hash of
  // (seed, switch, entropy). A GPU uses NicOfGpu and the HOST link to it. Also empty if from == to.
  Path Resolve(DeviceId from, DeviceId to, uint64_t entropy) const;
  // Number of equal-cost shortest paths, 0 if unreachable or from == to; parallel links count each.
  uint64_t CountShortestPaths(DeviceId from, DeviceId to) const;

  // From a switch to a NIC over links that are up; no links if it cannot be reached.
  NextHops NextHopsTo(DeviceId at, DeviceId nic) const;

  // A link's state as routing knows it (after detection and convergence), everywhere. Distances are
  // recomputed when next asked for.
  void SetLinkUp(LinkId link, bool up);
  // The same, as those switches and NICs know it that are up to `hops` links away from the link's
  // ends; to be called with 0, 1, 2, … up to FarthestFrom(link), for one change of a link after the
  // other.
  void SpreadLinkState(LinkId link, bool up, uint32_t hops);
  // Links to the farthest switch or NIC from the nearer of the link's ends, without the cable
  // itself.
  uint32_t FarthestFrom(LinkId link) const;

 private:
  struct SwitchLink {
    LinkId link = 0;
  };
  // The switches alone, every edge against its link's direction: a breadth-first search from a
  // switch finds all others' distances to it, and a switch's in-edges are its ways out.
  using SwitchGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS,
                                            boost::no_property, SwitchLink>;
  using SwitchIndex = uint32_t;  // vertex of SwitchGraph
  using Distances = std::vector<uint32_t>;

  // What some switches and NICs take to be up, and what follows from it.
  struct View {
    std::vector<bool> up;                                     // by link
    std::unordered_map<SwitchIndex, Distances> distances_to;  // computed when asked for
  };
  // News of a link that has not yet reached all.
  struct News {
    LinkId link = 0;
    bool up = false;
    uint32_t hops = 0;  // how far it has come
    uint32_t farthest = 0;
    std::vector<uint32_t> hops_of_device;  // from the link
  };
  struct Destination {
    DeviceId nic = 0;
    std::vector<const Distances*> attachments;  // to each switch with a link up to the NIC
  };
  struct NicEnds {
    DeviceId from = 0;
    DeviceId to = 0;
    std::optional<LinkId> first;  // HOST link of a GPU to its NIC
    std::optional<LinkId> last;   // HOST link of the other NIC to its GPU
  };

  // The NICs that stand for the two ends, and the HOST links outside them; nullopt if there is no
  // such NIC or its HOST link is down.
  std::optional<NicEnds> FindNics(DeviceId from, DeviceId to) const;
  View& ViewOf(DeviceId device) const;
  std::vector<uint32_t> HopsFrom(LinkId link) const;  // by device
  Destination FindDestination(DeviceId nic, View& view) const;
  const Distances& DistancesTo(SwitchIndex attachment, View& view) const;
  // Links that `device` may use next on a shortest path, in the order of creation. Returns how many
  // links between switches follow the first of the path; 0 where that is the last.
  uint32_t NextLinks(DeviceId device, const Destination& destination, const View& view,
                     std::vector<LinkId>& next) const;
  void KeepLowestDimension(std::vector<LinkId>& next) const;

  const FabricGraph& graph_;
  uint64_t seed_;
  std::vector<SwitchIndex> switch_of_device_;  // kNoSwitch for what is no switch
  std::vector<DeviceId> device_of_switch_;
  SwitchGraph switches_;
  mutable View settled_;    // of those whom no news has reached
  std::vector<News> news_;  // in the order of the changes
  // Of those who know the news that are marked; emptied when any news moves on.
  mutable std::map<std::vector<bool>, View> views_;
};

}  // namespace railyard
