// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/routing/deadlock.h"

#include <algorithm>
#include <deque>
#include <span>
#include <unordered_set>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <fmt/format.h>

#include "topologies/routing/lossless_classes.h"

namespace railyard {
namespace {

constexpr uint32_t kUnreachable = UINT32_MAX;
constexpr uint32_t kNotNumbered = UINT32_MAX;
// Examining this many links takes about a second.
constexpr uint64_t kMostLinkVisits = 20'000'000;

// The switches and the links among them, numbered from 0.
class SwitchNetwork {
 public:
  struct Hop {
    uint32_t from = 0;
    uint32_t to = 0;
    LinkId link{0};
  };

  explicit SwitchNetwork(const FabricGraph& fabric) : fabric_(fabric) {
    std::vector<uint32_t> number(fabric.device_count(), kNotNumbered);
    for (DeviceId id{0}; id < fabric.device_count(); ++id) {
      if (fabric.device(id).kind != DeviceKind::kSwitch) continue;
      number[id] = static_cast<uint32_t>(devices_.size());
      devices_.push_back(id);
    }
    first_.resize(devices_.size() + 1);
    std::vector<bool> is_attached(devices_.size());
    for (uint32_t at = 0; at < devices_.size(); ++at) {
      for (const auto& edge :
           boost::make_iterator_range(boost::out_edges(devices_[at], fabric.graph()))) {
        const uint32_t to = number[boost::target(edge, fabric.graph())];
        if (to == kNotNumbered) {
          is_attached[at] = true;
        } else {
          hops_.push_back({.from = at, .to = to, .link = fabric.link_of_edge(edge)});
        }
      }
      first_[at + 1] = static_cast<uint32_t>(hops_.size());
      if (is_attached[at]) attachments_.push_back(at);
    }
  }

  const FabricGraph& fabric() const { return fabric_; }
  uint32_t size() const { return static_cast<uint32_t>(devices_.size()); }
  const std::vector<Hop>& hops() const { return hops_; }
  // Returns the devices that NICs are attached to.
  const std::vector<uint32_t>& attachments() const { return attachments_; }
  uint32_t first_hop(uint32_t at) const { return first_[at]; }
  std::span<const Hop> HopsFrom(uint32_t at) const {
    return {hops_.data() + first_[at], hops_.data() + first_[at + 1]};
  }
  const std::vector<uint16_t>& coordinates(uint32_t at) const {
    return fabric_.device(devices_[at]).coordinates;
  }

  // Cables from every switch to the nearest of `targets`. Both directions of a cable count as one,
  // since every link is up.
  std::vector<uint32_t> DistancesTo(const std::vector<uint32_t>& targets) const {
    std::vector<uint32_t> distance(size(), kUnreachable);
    std::deque<uint32_t> queue(targets.begin(), targets.end());
    for (const uint32_t target : targets) distance[target] = 0;
    for (; !queue.empty(); queue.pop_front()) {
      for (const Hop& hop : HopsFrom(queue.front())) {
        if (distance[hop.to] != kUnreachable) continue;
        distance[hop.to] = distance[hop.from] + 1;
        queue.push_back(hop.to);
      }
    }
    return distance;
  }

 private:
  const FabricGraph& fabric_;
  std::vector<DeviceId> devices_;
  std::vector<Hop> hops_;  // by the switch they leave
  std::vector<uint32_t> first_;
  std::vector<uint32_t> attachments_;
};

// The dimension along which two neighbours lie, or the number of dimensions.
size_t DimensionOf(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                             a.begin());
}

// Proves that all shortest routes first go up and then down, for 64 destinations at a time: their
// searches run backwards, a bit each. A switch's level is its distance from the nearest NIC's
// switch.
class UpDownProof {
 public:
  explicit UpDownProof(const SwitchNetwork& network)
      : network_(network), level_(network.DistancesTo(network.attachments())) {}

  bool Holds() const {
    for (const SwitchNetwork::Hop& hop : network_.hops()) {
      if (level_[hop.from] == level_[hop.to]) return false;
    }
    const std::vector<uint32_t>& all = network_.attachments();
    for (size_t i = 0; i < all.size(); i += 64) {
      if (!HoldsFor({all.data() + i, std::min<size_t>(64, all.size() - i)})) return false;
    }
    return true;
  }

 private:
  bool HoldsFor(std::span<const uint32_t> destinations) const {
    std::vector<uint64_t> seen(network_.size());
    for (size_t i = 0; i < destinations.size(); ++i) seen[destinations[i]] = uint64_t{1} << i;
    std::vector<uint64_t> frontier = seen;
    // By switch of the frontier: a bit per destination whose route leaves the switch upwards.
    std::vector<uint64_t> leaves_up(network_.size());
    bool is_new = true;
    while (is_new) {
      is_new = false;
      std::vector<uint64_t> next(network_.size());
      std::vector<uint64_t> next_leaves_up(network_.size());
      for (const SwitchNetwork::Hop& hop : network_.hops()) {
        // The route's hop is from `hop.from` to `hop.to`.
        const uint64_t routes = frontier[hop.to] & ~seen[hop.from];
        if (routes == 0) continue;
        const bool is_up = level_[hop.to] > level_[hop.from];
        if (!is_up && (routes & leaves_up[hop.to]) != 0) return false;
        next[hop.from] |= routes;
        if (is_up) next_leaves_up[hop.from] |= routes;
        is_new = true;
      }
      for (uint32_t at = 0; at < network_.size(); ++at) seen[at] |= next[at];
      frontier.swap(next);
      leaves_up.swap(next_leaves_up);
    }
    return true;
  }

  const SwitchNetwork& network_;
  const std::vector<uint32_t> level_;
};

// A channel is a link in one of two classes.
class ChannelGraph {
 public:
  explicit ChannelGraph(const SwitchNetwork& network)
      : network_(network), graph_(2 * network.hops().size()) {}

  // Follows all routes to `destination` from every switch with NICs.
  void AddRoutesTo(uint32_t destination) {
    const std::vector<uint32_t> distance = network_.DistancesTo({destination});
    std::unordered_set<uint32_t> known;
    std::vector<uint32_t> pending;
    const auto visit = [&](uint32_t channel) {
      if (known.insert(channel).second) pending.push_back(channel);
    };
    std::vector<uint32_t> next;
    for (const uint32_t start : network_.attachments()) {
      NextHops(start, distance, next);
      for (const uint32_t hop : next) visit(ChannelAfter(std::nullopt, hop));
    }
    while (!pending.empty()) {
      const uint32_t channel = pending.back();
      pending.pop_back();
      NextHops(network_.hops()[channel / 2].to, distance, next);
      for (const uint32_t hop : next) {
        const uint32_t then = ChannelAfter(channel, hop);
        if (dependencies_.insert(uint64_t{channel} << 32 | then).second) {
          boost::add_edge(channel, then, graph_);
        }
        visit(then);
      }
    }
  }

  // Channels that wait for each other in a circle; empty if there are none.
  std::vector<uint32_t> FindCycle() const {
    std::vector<uint32_t> component(boost::num_vertices(graph_));
    const auto count = static_cast<uint32_t>(boost::strong_components(
        graph_, boost::make_iterator_property_map(component.begin(),
                                                  boost::get(boost::vertex_index, graph_))));
    std::vector<uint32_t> members(count);
    for (const uint32_t of : component) ++members[of];
    for (uint32_t channel = 0; channel < component.size(); ++channel) {
      if (members[component[channel]] > 1) return ShortestCycleThrough(channel, component);
    }
    return {};
  }

  std::string NameOf(uint32_t channel, bool has_classes) const {
    const std::string& link = network_.fabric().link(network_.hops()[channel / 2].link).name;
    return has_classes ? fmt::format("{} class {}", link, channel % 2) : link;
  }

 private:
  // Positions in hops() of the links that a route may take from a switch.
  void NextHops(uint32_t at, const std::vector<uint32_t>& distance,
                std::vector<uint32_t>& next) const {
    next.clear();
    if (distance[at] == 0 || distance[at] == kUnreachable) return;
    const bool is_ordered = IsInDimensionOrder(network_.fabric().routing);
    size_t lowest = SIZE_MAX;
    const auto hops = network_.HopsFrom(at);
    for (size_t i = 0; i < hops.size(); ++i) {
      if (distance[hops[i].to] + 1 != distance[at]) continue;
      if (is_ordered) {
        const size_t dimension =
            DimensionOf(network_.coordinates(at), network_.coordinates(hops[i].to));
        if (dimension > lowest) continue;
        if (dimension < lowest) next.clear();
        lowest = dimension;
      }
      next.push_back(network_.first_hop(at) + static_cast<uint32_t>(i));
    }
  }

  uint32_t ChannelAfter(std::optional<uint32_t> channel, uint32_t hop) const {
    if (network_.fabric().deadlock_avoidance != DeadlockAvoidance::kDateline) return 2 * hop;
    const auto before = channel ? std::optional(network_.hops()[*channel / 2].link) : std::nullopt;
    const bool was_behind = channel && *channel % 2 == 1;
    return 2 * hop +
           (IsBehindDateline(network_.fabric(), before, was_behind, network_.hops()[hop].link) ? 1
                                                                                               : 0);
  }

  std::vector<uint32_t> ShortestCycleThrough(uint32_t start,
                                             const std::vector<uint32_t>& component) const {
    std::vector<uint32_t> before(component.size(), UINT32_MAX);
    std::deque<uint32_t> queue = {start};
    for (; !queue.empty(); queue.pop_front()) {
      for (const auto& edge : boost::make_iterator_range(boost::out_edges(queue.front(), graph_))) {
        const auto next = static_cast<uint32_t>(boost::target(edge, graph_));
        if (component[next] != component[start] || before[next] != UINT32_MAX) continue;
        before[next] = queue.front();
        if (next != start) {
          queue.push_back(next);
          continue;
        }
        std::vector<uint32_t> cycle = {start};
        for (uint32_t at = before[start]; at != start; at = before[at]) cycle.push_back(at);
        std::reverse(cycle.begin() + 1, cycle.end());
        return cycle;
      }
    }
    return {};
  }

  using Dependencies = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

  const SwitchNetwork& network_;
  Dependencies graph_;
  std::unordered_set<uint64_t> dependencies_;  // (channel, next) that are in the graph
};

// The most cables between two switches with NICs: a class for each where it is its number.
uint32_t LongestRoute(const SwitchNetwork& network, size_t destinations) {
  uint32_t longest = 0;
  for (size_t i = 0; i < destinations; ++i) {
    const std::vector<uint32_t> distance = network.DistancesTo({network.attachments()[i]});
    for (const uint32_t from : network.attachments()) {
      if (distance[from] != kUnreachable) longest = std::max(longest, distance[from]);
    }
  }
  return longest;
}

// Destinations that are looked at, for each takes a visit of every link.
size_t CountLookedAt(const SwitchNetwork& network) {
  const uint64_t visits_each = std::max<uint64_t>(1, network.hops().size());
  return std::min<size_t>(network.attachments().size(),
                          std::max<uint64_t>(1, kMostLinkVisits / visits_each));
}

uint32_t CountClasses(const SwitchNetwork& network) {
  // Both parts of a Valiant route are routes between switches with NICs, in separate classes, and
  // the first never waits for itself by way of the second, so each must be free of cycles.
  const uint32_t parts = IsValiant(network.fabric().routing) ? 2 : 1;
  switch (network.fabric().deadlock_avoidance) {
    case DeadlockAvoidance::kHopClasses:
      return parts * std::max(1u, LongestRoute(network, CountLookedAt(network)));
    case DeadlockAvoidance::kDateline:
      return 2 * parts;
    default:
      return parts;
  }
}

}  // namespace

uint32_t CountLosslessClasses(const FabricGraph& fabric) {
  if (fabric.deadlock_avoidance == DeadlockAvoidance::kLossy) return 0;
  if (fabric.routing == RoutingPolicy::kUpDown) return 1;
  return CountClasses(SwitchNetwork(fabric));
}

DeadlockReport FindDeadlock(const FabricGraph& fabric) {
  DeadlockReport report;
  const SwitchNetwork network(fabric);
  const size_t all = network.attachments().size();
  report.destinations = static_cast<uint32_t>(all);
  if (fabric.deadlock_avoidance == DeadlockAvoidance::kLossy) {
    report.classes = 0;
    return report;
  }
  // A downward link never waits for an upward link, and either direction is ordered by level, so
  // there is no cycle, even after failures (Dally, Seitz 1987).
  if (fabric.routing == RoutingPolicy::kUpDown) return report;
  const bool is_plain = fabric.routing == RoutingPolicy::kShortest &&
                        fabric.deadlock_avoidance == DeadlockAvoidance::kRoutes;
  if (is_plain && UpDownProof(network).Holds()) return report;
  report.classes = CountClasses(network);
  const size_t looked_at = CountLookedAt(network);
  report.destinations = static_cast<uint32_t>(looked_at);
  report.is_sampled = looked_at < all;
  if (fabric.deadlock_avoidance == DeadlockAvoidance::kHopClasses) return report;
  const bool has_dateline = fabric.deadlock_avoidance == DeadlockAvoidance::kDateline;
  ChannelGraph channels(network);
  for (size_t i = 0; i < looked_at; ++i) {
    channels.AddRoutesTo(network.attachments()[i * all / looked_at]);
  }
  for (const uint32_t channel : channels.FindCycle()) {
    report.cycle.push_back(channels.NameOf(channel, has_dateline));
  }
  return report;
}

}  // namespace railyard
