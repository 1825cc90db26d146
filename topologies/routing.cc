// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/routing.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/range/iterator_range.hpp>

#include "simulator/diagnostics/check.h"
#include "topologies/mix64.h"

namespace railyard {
namespace {

constexpr uint32_t kNoSwitch = UINT32_MAX;
constexpr uint32_t kUnreachable = UINT32_MAX;

// Every switch hashes with a function of its own. With one function for all, the flows that reach a
// second-tier switch would agree in the hash and all leave by the same link (polarisation).
uint64_t SwitchHash(uint64_t seed, DeviceId device, uint64_t entropy) {
  return Mix64(Mix64(Mix64(seed) ^ device) ^ entropy);
}

}  // namespace

EcmpRouting::EcmpRouting(const FabricGraph& graph, uint64_t seed)
    : graph_(graph),
      seed_(seed),
      switch_of_device_(graph.device_count(), kNoSwitch),
      settled_{.up = std::vector<bool>(graph.link_count(), true), .distances_to = {}} {
  for (DeviceId id = 0; id < graph.device_count(); ++id) {
    if (graph.device(id).kind != DeviceKind::kSwitch) continue;
    switch_of_device_[id] = static_cast<SwitchIndex>(boost::add_vertex(switches_));
    device_of_switch_.push_back(id);
  }
  for (LinkId link = 0; link < graph.link_count(); ++link) {
    const SwitchIndex source = switch_of_device_[graph.link_source(link)];
    const SwitchIndex target = switch_of_device_[graph.link_target(link)];
    if (source == kNoSwitch || target == kNoSwitch) continue;
    boost::add_edge(target, source, SwitchLink{link}, switches_);
  }
}

void EcmpRouting::SetLinkUp(LinkId link, bool up) {
  SIM_CHECK(link < settled_.up.size(), "a link the fabric does not have");
  views_.clear();
  if (settled_.up[link] == up) return;
  settled_.up[link] = up;
  // Distances are between switches: a NIC's link is looked at when a route is asked for.
  if (switch_of_device_[graph_.link_source(link)] != kNoSwitch &&
      switch_of_device_[graph_.link_target(link)] != kNoSwitch) {
    settled_.distances_to.clear();
  }
}

std::vector<uint32_t> EcmpRouting::HopsFrom(LinkId link) const {
  std::vector<uint32_t> hops(graph_.device_count(), kUnreachable);
  std::vector<DeviceId> reached = {graph_.link_source(link), graph_.link_target(link)};
  for (const DeviceId end : reached) hops[end] = 0;
  const LinkId reverse = graph_.ReverseLink(link);
  for (size_t i = 0; i < reached.size(); ++i) {
    const DeviceId at = reached[i];
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(at, graph_.graph()))) {
      const auto next = static_cast<DeviceId>(boost::target(edge, graph_.graph()));
      const LinkId over = graph_.link_of_edge(edge);
      const DeviceKind kind = graph_.device(next).kind;
      if (over == link || over == reverse || hops[next] != kUnreachable) continue;
      if (kind != DeviceKind::kSwitch && kind != DeviceKind::kNic) continue;
      hops[next] = hops[at] + 1;
      reached.push_back(next);
    }
  }
  return hops;
}

uint32_t EcmpRouting::FarthestFrom(LinkId link) const {
  uint32_t farthest = 0;
  for (const uint32_t hops : HopsFrom(link)) {
    if (hops != kUnreachable) farthest = std::max(farthest, hops);
  }
  return farthest;
}

void EcmpRouting::SpreadLinkState(LinkId link, bool up, uint32_t hops) {
  views_.clear();
  if (hops == 0) {
    news_.push_back({.link = link, .up = up, .hops_of_device = HopsFrom(link)});
    news_.back().farthest = FarthestFrom(link);
  }
  // The earlier one of two, for it cannot be overtaken.
  const auto of_link = std::find_if(news_.begin(), news_.end(), [&](const News& news) {
    return news.link == link && news.up == up && (hops == 0 || news.hops + 1 == hops);
  });
  SIM_CHECK(of_link != news_.end(), "news of a link that goes on before it began");
  of_link->hops = hops;
  if (hops < of_link->farthest) return;
  news_.erase(of_link);
  SetLinkUp(link, up);
}

EcmpRouting::View& EcmpRouting::ViewOf(DeviceId device) const {
  if (news_.empty()) [[likely]]
    return settled_;
  std::vector<bool> known(news_.size());
  for (size_t i = 0; i < news_.size(); ++i) {
    known[i] = news_[i].hops_of_device[device] <= news_[i].hops;
  }
  if (std::find(known.begin(), known.end(), true) == known.end()) return settled_;
  const auto [entry, is_new] = views_.try_emplace(std::move(known));
  View& view = entry->second;
  if (!is_new) return view;
  view.up = settled_.up;
  for (size_t i = 0; i < news_.size(); ++i) {
    if (entry->first[i]) view.up[news_[i].link] = news_[i].up;
  }
  return view;
}

Path EcmpRouting::Resolve(DeviceId from, DeviceId to, uint64_t entropy) const {
  const auto ends = FindNics(from, to);
  if (!ends) return {};
  Path path;
  if (ends->first) path.push_back(*ends->first);
  const View* view = nullptr;
  Destination destination;
  std::vector<LinkId> next;
  for (DeviceId at = ends->from; at != ends->to; at = graph_.link_target(path.back())) {
    if (View& of_device = ViewOf(at); &of_device != view) {
      view = &of_device;
      destination = FindDestination(ends->to, of_device);
    }
    NextLinks(at, destination, *view, next);
    // Longer than any way without a circle: devices of different views send it back and forth.
    if (next.empty() || path.size() > device_of_switch_.size() + 1) return {};
    path.push_back(next[ScaleTo(SwitchHash(seed_, at, entropy), next.size())]);
  }
  if (ends->last) path.push_back(*ends->last);
  return path;
}

uint64_t EcmpRouting::CountShortestPaths(DeviceId from, DeviceId to) const {
  const auto ends = FindNics(from, to);
  if (!ends) return 0;
  const Destination destination = FindDestination(ends->to, settled_);
  // All paths are equally long, so each step takes every path to its next device.
  std::map<DeviceId, uint64_t> paths_to = {{ends->from, 1}};
  std::vector<LinkId> next;
  while (!paths_to.empty() && !paths_to.contains(ends->to)) {
    std::map<DeviceId, uint64_t> one_further;
    for (const auto& [device, count] : paths_to) {
      NextLinks(device, destination, settled_, next);
      for (const LinkId link : next) one_further[graph_.link_target(link)] += count;
    }
    paths_to = std::move(one_further);
  }
  return paths_to.empty() ? 0 : paths_to.at(ends->to);
}

NextHops EcmpRouting::NextHopsTo(DeviceId at, DeviceId nic) const {
  NextHops next;
  View& view = ViewOf(at);
  const uint32_t switches = NextLinks(at, FindDestination(nic, view), view, next.links);
  if (next.links.empty()) return next;
  const bool is_last = graph_.link_target(next.links.front()) == nic;
  next.hops = is_last ? 1 : switches + 2;  // to the next switch, over those behind it, to the NIC
  return next;
}

std::optional<EcmpRouting::NicEnds> EcmpRouting::FindNics(DeviceId from, DeviceId to) const {
  if (from == to) return std::nullopt;
  NicEnds ends = {.from = from, .to = to, .first = std::nullopt, .last = std::nullopt};
  for (const bool is_source : {true, false}) {
    const DeviceId device = is_source ? from : to;
    if (graph_.device(device).kind == DeviceKind::kNic) continue;
    SIM_CHECK(graph_.device(device).kind == DeviceKind::kGpu,
              graph_.device(device).name + " is neither a GPU nor a NIC");
    const auto nic = graph_.NicOfGpu(device);
    if (!nic) return std::nullopt;
    const auto host_link =
        is_source ? graph_.FindLink(device, *nic) : graph_.FindLink(*nic, device);
    if (!ViewOf(*nic).up[*host_link]) return std::nullopt;
    (is_source ? ends.from : ends.to) = *nic;
    (is_source ? ends.first : ends.last) = host_link;
  }
  return ends;
}

EcmpRouting::Destination EcmpRouting::FindDestination(DeviceId nic, View& view) const {
  Destination destination = {.nic = nic, .attachments = {}};
  for (const auto& edge : boost::make_iterator_range(boost::in_edges(nic, graph_.graph()))) {
    if (!view.up[graph_.link_of_edge(edge)]) continue;
    const SwitchIndex attachment = switch_of_device_[boost::source(edge, graph_.graph())];
    if (attachment == kNoSwitch) continue;
    destination.attachments.push_back(&DistancesTo(attachment, view));
  }
  return destination;
}

const EcmpRouting::Distances& EcmpRouting::DistancesTo(SwitchIndex attachment, View& view) const {
  const auto [entry, is_new] = view.distances_to.try_emplace(attachment);
  Distances& distances = entry->second;
  if (!is_new) return distances;
  distances.assign(device_of_switch_.size(), kUnreachable);
  distances[attachment] = 0;
  const auto is_up = [this, &view](SwitchGraph::edge_descriptor edge) {
    return bool{view.up[switches_[edge].link]};
  };
  const boost::filtered_graph<SwitchGraph, std::function<bool(SwitchGraph::edge_descriptor)>>
      links_up(switches_, is_up);
  boost::breadth_first_search(links_up, attachment,
                              boost::visitor(boost::make_bfs_visitor(boost::record_distances(
                                  distances.data(), boost::on_tree_edge()))));
  return distances;
}

uint32_t EcmpRouting::NextLinks(DeviceId device, const Destination& destination, const View& view,
                                std::vector<LinkId>& next) const {
  next.clear();
  uint32_t fewest_hops = kUnreachable;
  // Keeps the links with the fewest hops still to go behind them.
  const auto consider = [&](LinkId link, uint32_t hops) {
    if (hops == kUnreachable || hops > fewest_hops) return;
    if (hops < fewest_hops) next.clear();
    fewest_hops = hops;
    next.push_back(link);
  };
  const auto hops_from_switch = [&](SwitchIndex at) {
    uint32_t hops = kUnreachable;
    for (const Distances* distances : destination.attachments) {
      hops = std::min(hops, (*distances)[at]);
    }
    return hops;
  };

  const SwitchIndex here = switch_of_device_[device];
  if (here != kNoSwitch && hops_from_switch(here) != 0) {
    for (const auto& edge : boost::make_iterator_range(boost::in_edges(here, switches_))) {
      const LinkId link = switches_[edge].link;
      const auto neighbour = static_cast<SwitchIndex>(boost::source(edge, switches_));
      if (view.up[link]) consider(link, hops_from_switch(neighbour));
    }
    if (graph_.routing == RoutingPolicy::kDimensionOrder) KeepLowestDimension(next);
    return fewest_hops;
  }
  // The last hop, also between two NICs cabled to each other.
  const Graph& fabric = graph_.graph();
  for (const auto& edge : boost::make_iterator_range(boost::in_edges(destination.nic, fabric))) {
    const LinkId link = graph_.link_of_edge(edge);
    if (boost::source(edge, fabric) == device && view.up[link]) consider(link, 0);
  }
  if (here != kNoSwitch || !next.empty()) return 0;
  // The first hop, from a NIC to a switch it hangs on.
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(device, fabric))) {
    const LinkId link = graph_.link_of_edge(edge);
    const SwitchIndex neighbour = switch_of_device_[boost::target(edge, fabric)];
    if (neighbour != kNoSwitch && view.up[link]) consider(link, hops_from_switch(neighbour));
  }
  return fewest_hops;
}

void EcmpRouting::KeepLowestDimension(std::vector<LinkId>& next) const {
  // Links between switches without coordinates count as of the highest dimension.
  const auto dimension = [this](LinkId link) {
    const std::vector<uint16_t>& from = graph_.device(graph_.link_source(link)).coordinates;
    const std::vector<uint16_t>& to = graph_.device(graph_.link_target(link)).coordinates;
    return std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first - from.begin();
  };
  ptrdiff_t lowest = PTRDIFF_MAX;
  for (const LinkId link : next) lowest = std::min(lowest, dimension(link));
  std::erase_if(next, [&](LinkId link) { return dimension(link) != lowest; });
}

}  // namespace railyard
