// SPDX-License-Identifier: GPL-2.0-only
// Routes packets between NICs by the fabric's RoutingPolicy with ECMP: shortest paths from
// Boost.Graph's breadth-first search, dimension order, up-down, or Valiant's two-phase routes.
// Distances are kept per destination switch rather than per NIC, so 1,024 NICs on 8 leaves cost 8
// searches, and are coded as runs of equally distant switches.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/run_lengths.h"

namespace railyard {

// Lists the links that a packet takes, in order; empty if the destination cannot be reached.
using Path = std::vector<LinkId>;

// Holds the links that a packet may take next: equal-cost links in the order of creation, and the
// number of links to its destination, the next one included.
struct NextHops {
  std::vector<LinkId> links;
  uint32_t hops = 0;
};

// Names the cables by which a path must leave one NIC and reach the other, if each port has an
// address.
struct PortPins {
  LinkId first{0};  // from the one NIC
  LinkId last{0};   // to the other; the same as `first` if it joins the two
};

// Chooses paths. kShortest takes any shortest path; if links are down, it may go up and down twice.
// kUpDown never does, so it may have no path then. Resolve() makes one choice per switch and flow,
// as a switch does that hashes a packet's header; NextHopsTo() leaves the choice to the switch.
// When the number of equal-cost links changes, all flows through that switch are hashed anew (no
// resilient hashing). With Valiant's routes a flow draws a switch that has NICs and goes there
// first, unless its two NICs are on one switch (Valiant: "A scheme for fast parallel
// communication", 1982). This class is not thread-safe.
//
// Every switch and NIC has its own view of which links are up, because news of a link reaches
// nearer devices sooner. While views differ, the switches of a path may send a packet in a loop or,
// with kUpDown, up again after it went down; such a destination counts as unreachable.
class EcmpRouting {
 public:
  // `graph` must outlive this. `seed` enters every switch's hash. All links start up, except
  // circuits that are not connected at time 0.
  EcmpRouting(const FabricGraph& graph, uint64_t seed);
  EcmpRouting(const EcmpRouting&) = delete;  // a copy would share tables
  EcmpRouting& operator=(const EcmpRouting&) = delete;

  // Returns the path from one GPU or NIC to another over NICs and switches, never through a GPU, an
  // NVSwitch or a third NIC. Each hop is chosen among the equal-cost next links that are up by a
  // hash of (seed, switch, entropy). A GPU uses NicOfGpu and the HOST links to it. The path is
  // empty if there is none or from == to. If `detour_hop` is not null, it receives the position of
  // the first link behind Valiant's detour, if there is one.
  Path Resolve(DeviceId from, DeviceId to, uint64_t entropy,
               std::optional<uint32_t>* detour_hop = nullptr) const;
  // Resolves a path between two ports; also empty if one of their cables is down. Precondition: the
  // policy is not Valiant's, because a port's address determines no detour.
  Path Resolve(DeviceId from, DeviceId to, uint64_t entropy, const PortPins& pins) const;
  // Returns the number of equal-cost paths; 0 if there is none or from == to. Each parallel link
  // counts. Valiant's routes are counted without detours.
  uint64_t CountShortestPaths(DeviceId from, DeviceId to) const;

  // Returns the next links from a switch to a NIC over links that are up; no links if the NIC
  // cannot be reached. Valiant's detour, which only the sender can draw, is not included.
  NextHops NextHopsTo(DeviceId at, DeviceId nic) const;

  // Sets a link's state in the views of all devices, after detection and convergence. Distances are
  // recomputed when next needed.
  void SetLinkUp(LinkId link, bool up);
  // Sets a link's state in the views of devices whose number in `wave_of_device` is up to `wave`.
  // Call with 0, 1, 2, … up to the largest number other than kUnreachable, with the same numbers
  // each time, for one change of a link after the other.
  void SpreadLinkState(LinkId link, bool up, uint32_t wave,
                       const std::vector<uint32_t>& wave_of_device);
  // Returns the links to each device from the nearest of `ends`, over switches and NICs and without
  // the link's cable; kUnreachable if there is no path.
  static constexpr uint32_t kUnreachable = UINT32_MAX;
  std::vector<uint32_t> HopsFrom(LinkId link, std::vector<DeviceId> ends) const;

  // Returns, by device, the number of links between switches on a path from it to the switch `to`;
  // kUnreachable for devices that are not switches or have no path. Valiant's detours are left out,
  // and the view is that of devices that no news has reached. Nothing is cached, so that all pairs
  // of a large fabric can be examined.
  std::vector<uint32_t> SwitchHopsTo(DeviceId to) const;

  // Computes the routes of all switches to all NICs now rather than on demand, in the view of
  // devices that no news has reached.
  void ResolveAll() const;
  // Gives the memory of the routes computed so far (`bytes`), and of a table with one number per
  // switch and destination (`dense_bytes`).
  struct TableSize {
    uint64_t tables = 0;        // more than one while views differ
    uint64_t destinations = 0;  // switches with NICs, of all tables
    uint64_t bytes = 0;
    uint64_t dense_bytes = 0;
  };
  TableSize MeasureTables() const;

 private:
  struct SwitchLink {
    LinkId link{0};
  };
  // The graph of switches alone, every edge against its link's direction, so that a breadth-first
  // search from a switch finds all others' distances to it.
  using SwitchIndex = uint32_t;  // vertex of SwitchGraph
  using SwitchGraph =
      boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, SwitchLink,
                                         boost::no_property, SwitchIndex, uint32_t>;
  // Distances to the destination by SwitchIndex, coded as by Coded().
  using Distances = RunLengths;

  using Table = std::unordered_map<SwitchIndex, Distances>;  // computed on demand

  // Holds the links that some switches and NICs believe to be up, and the distances that follow.
  // Views that differ only in links of NICs share a table, which covers switches only.
  struct View {
    std::vector<bool> up;  // by link
    std::shared_ptr<Table> distances_to;
  };
  // Describes a change of a link's state that has not yet reached all devices.
  struct News {
    LinkId link{0};
    bool up = false;
    uint32_t wave = 0;  // the last wave of devices that it has reached
    uint32_t last_wave = 0;
    RunLengths wave_of_device;
  };
  struct Destination {
    DeviceId device{0};                         // a NIC, or the switch of a detour
    std::vector<const Distances*> attachments;  // to that switch, or to each with a live NIC link
  };
  struct NicEnds {
    DeviceId from{0};
    DeviceId to{0};
    Path first{};  // HOST links of a GPU to its NIC
    Path last{};   // HOST links of the other NIC to its GPU
  };

  // Returns the NICs used for the two ends, and the HOST links between them and the ends; nullopt
  // if there is no such NIC or one of its HOST links is down.
  std::optional<NicEnds> FindNics(DeviceId from, DeviceId to) const;
  const View& ViewOf(DeviceId device) const;
  const View& ViewWith(const std::vector<LinkId>& changed) const;
  bool JoinsSwitches(LinkId link) const;
  Destination FindDestination(DeviceId device, const View& view) const;
  const Distances& DistancesTo(SwitchIndex attachment, const View& view) const;
  std::vector<uint32_t> CodedDistancesTo(SwitchIndex attachment, const View& view) const;
  void FindShortest(SwitchIndex attachment, const View& view, std::vector<uint32_t>& coded) const;
  void FindUpDown(SwitchIndex attachment, const View& view, std::vector<uint32_t>& coded) const;
  // Appends the links to a NIC or switch, each device choosing by its own view. Returns false if
  // there is no path.
  bool Append(DeviceId from, DeviceId to, uint64_t entropy, Path& path) const;
  std::optional<DeviceId> DrawDetour(const NicEnds& ends, uint64_t entropy) const;
  // Finds the links that `device` may use next on a shortest path, in the order of creation.
  // Returns how many links between switches follow the first link of the path; 0 if that is the
  // last one.
  uint32_t NextLinks(DeviceId device, const Destination& destination, const View& view,
                     std::vector<LinkId>& next) const;
  // Holds the distance of a switch to the destination over the next links that the policy allows.
  struct Reach {
    uint32_t hops = 0;
    bool is_down = false;  // with kUpDown: the rest of the path leads down
  };
  std::optional<Reach> ReachOf(SwitchIndex at, const Distances& distances) const;
  void KeepLowestDimension(std::vector<LinkId>& next) const;
  void RankSwitches();

  const FabricGraph& graph_;
  uint64_t seed_;
  std::vector<SwitchIndex> switch_of_device_;  // kNoSwitch for other devices
  std::vector<DeviceId> device_of_switch_;
  SwitchGraph switches_;
  std::vector<SwitchIndex> attachments_;  // switches to which NICs are attached
  // kUpDown only: cables to the nearest switch with NICs, and all switches, the highest first.
  std::vector<uint32_t> level_;
  std::vector<SwitchIndex> by_level_;
  View settled_;            // of devices that no news has reached
  std::vector<News> news_;  // in the order of the changes
  // Other views, by the links that differ from the settled view's, in ascending order.
  mutable std::map<std::vector<LinkId>, View> views_;
};

}  // namespace railyard
