// SPDX-License-Identifier: GPL-2.0-only
// Computes max-min fair rates of flows over links (Bertsekas and Gallager: "Data Networks", 2nd
// edition, section 6.5.2). A set of rates is max-min fair if no flow's rate can grow without
// lowering that of a flow that is not faster. Progressive filling finds it: all rates grow
// together, and those of the flows of a full link stay as they are.
//
// Flows with the same route have the same rate and form a bundle. A route puts a share of the
// flow's bytes on each of its links, so that a flow can be striped over several.
//
// Rates are integers in units of 2^-44 bytes per picosecond (0.45 bit/s), rounded down, so the
// flows of a link never exceed its capacity. A change is propagated only through the links and
// bundles that share links with it, directly or indirectly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "simulator/units/identifier.h"
#include "topologies/graph/graph_ids.h"

namespace railyard {

// Identifies a bundle by a dense number from 0.
using BundleId = Identifier<struct BundleIdTag>;

// Holds the rate of a flow or a link, in units of 2^-44 bytes per picosecond.
using FlowRate = uint64_t;
inline constexpr int kFlowRateBits = 44;  // fractional bits

// Describes a link of a route, and the weight of the bytes that cross it, in parts of the route's
// whole.
struct RouteLink {
  LinkId link{0};
  uint32_t weight = 1;
};

class MaxMinRates {
 public:
  // All links have the capacity 0 at first.
  explicit MaxMinRates(size_t link_count) : links_(link_count) {}

  // Converts bits per second to a FlowRate. Precondition: it is below 2^64 units, 8 Eb/s.
  static FlowRate RateOf(uint64_t rate_bps);

  // Sets the capacity of a link, in bits per second.
  void SetCapacity(LinkId link, uint64_t rate_bps);
  // Adds a bundle without flows. A flow of rate r puts r * weight / whole on each link. The links
  // must differ. Preconditions: there is at least one, and 0 < weight <= whole for each.
  BundleId AddBundle(std::span<const RouteLink> route, uint32_t whole);
  // Sets the number of the bundle's flows. Rates change at the next Solve(). Precondition: fewer
  // than 2^24.
  void SetFlows(BundleId bundle, uint32_t flows);
  uint32_t flows(BundleId bundle) const { return bundles_[bundle].flows; }
  // Computes the rates after all changes, of which some may have undone others, and returns the
  // bundles with flows whose rate may have changed. The result is valid until the next call.
  std::span<const BundleId> Solve();
  // Returns the rate of each of the bundle's flows, as of the last Solve().
  FlowRate rate(BundleId bundle) const { return bundles_[bundle].rate; }

 private:
  // Shares of a flow's rate have this number of fractional bits, and are rounded up.
  static constexpr int kShareBits = 32;

  struct Use {
    uint64_t share = 0;  // of the flow's rate
    LinkId link{0};
    uint32_t place = 0;  // among the link's users, while the bundle has flows
  };
  struct Bundle {
    FlowRate rate = 0;
    FlowRate alone = 0;  // of a flow that shares no link
    uint32_t flows = 0;
    uint32_t solved_flows = 0;  // as of the last Solve()
    uint32_t first_use = 0;
    uint32_t use_count = 0;
    uint32_t round = 0;  // last round of Solve() that found it
    bool is_changed = false;
    bool is_settled = false;  // in this round
  };
  // Describes a bundle with flows on a link.
  struct User {
    BundleId bundle{0};
    uint32_t use = 0;
  };
  struct Link {
    FlowRate capacity = 0;
    std::vector<User> users{};
    // In a round, these are the capacity that the settled bundles leave, and the sum of the shares
    // of all other flows.
    FlowRate left = 0;
    uint64_t shares = 0;
    uint32_t round = 0;
  };
  // Holds a link and the rate at which its unsettled flows fill it.
  struct Level {
    FlowRate rate = 0;
    LinkId link{0};
    // Orders a heap with the lowest rate on top.
    bool operator<(const Level& other) const {
      return rate != other.rate ? rate > other.rate : link > other.link;
    }
  };

  std::span<Use> UsesOf(const Bundle& bundle) {
    return std::span(uses_).subspan(bundle.first_use, bundle.use_count);
  }
  void MarkChanged(BundleId bundle);
  void Join(BundleId bundle);
  void Leave(BundleId bundle);
  void SetAlone(Bundle& bundle);
  void FindComponent(BundleId start);
  void AddLinksOf(const Bundle& bundle);
  void Fill();
  static FlowRate LevelOf(const Link& link);
  void Settle(BundleId bundle, FlowRate rate);

  std::vector<Link> links_;
  std::vector<Bundle> bundles_;
  std::vector<Use> uses_;
  std::vector<BundleId> changed_;
  std::vector<BundleId> solved_;
  uint32_t round_ = 0;
  // These lists describe the part of the graph that is being solved.
  std::vector<BundleId> component_;
  std::vector<LinkId> component_links_;
  std::vector<Level> levels_;
};

}  // namespace railyard
