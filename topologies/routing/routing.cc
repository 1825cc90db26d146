// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/routing/routing.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/range/iterator_range.hpp>

#include "simulator/diagnostics/check.h"
#include "simulator/units/mix64.h"

namespace railyard {
namespace {

constexpr uint32_t kNoSwitch = UINT32_MAX;

// Every switch hashes with its own function. With one function for all, the flows that reach a
// second-tier switch would agree in the hash and all leave by the same link (polarisation).
uint64_t SwitchHash(uint64_t seed, DeviceId device, uint64_t entropy) {
  return Mix64(Mix64(Mix64(seed) ^ device) ^ entropy);
}

// Twice the distance, and one more where the rest of the way leads down.
uint32_t Coded(uint32_t hops, bool is_down) { return 2 * hops + (is_down ? 1 : 0); }

// Returns the largest number that is not kUnreachable; numbers are by device.
uint32_t LastWave(const std::vector<uint32_t>& wave_of_device) {
  uint32_t last = 0;
  for (const uint32_t wave : wave_of_device) {
    if (wave != EcmpRouting::kUnreachable) last = std::max(last, wave);
  }
  return last;
}

// An edge of the switch graph whose link is up.
template <typename SwitchGraph>
struct IsUp {
  bool operator()(const typename SwitchGraph::edge_descriptor& edge) const {
    return (*up)[(*switches)[edge].link];
  }
  const SwitchGraph* switches = nullptr;
  const std::vector<bool>* up = nullptr;
};

}  // namespace

EcmpRouting::EcmpRouting(const FabricGraph& graph, uint64_t seed)
    : graph_(graph),
      seed_(seed),
      switch_of_device_(graph.device_count(), kNoSwitch),
      settled_{.up = std::vector<bool>(graph.link_count(), true),
               .distances_to = std::make_shared<Table>()} {
  for (uint32_t cable = 0; graph.circuits && cable < graph.cables().size(); ++cable) {
    if (graph.circuits->IsThere(cable, 0)) continue;
    settled_.up[graph.cables()[cable].forward] = false;
    settled_.up[graph.cables()[cable].backward] = false;
  }
  for (DeviceId id{0}; id < graph.device_count(); ++id) {
    if (graph.device(id).kind != DeviceKind::kSwitch) continue;
    switch_of_device_[id] = static_cast<SwitchIndex>(device_of_switch_.size());
    device_of_switch_.push_back(id);
  }
  std::vector<std::pair<SwitchIndex, SwitchIndex>> ends;
  std::vector<SwitchLink> links;
  std::vector<bool> is_attachment(device_of_switch_.size());
  for (LinkId link{0}; link < graph.link_count(); ++link) {
    const SwitchIndex source = switch_of_device_[graph.link_source(link)];
    const SwitchIndex target = switch_of_device_[graph.link_target(link)];
    if (source != kNoSwitch && target != kNoSwitch) {
      ends.emplace_back(target, source);
      links.push_back({link});
    } else if (source != kNoSwitch &&
               graph.device(graph.link_target(link)).kind == DeviceKind::kNic) {
      is_attachment[source] = true;
    }
  }
  switches_ = SwitchGraph(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(),
                          links.begin(), static_cast<SwitchIndex>(device_of_switch_.size()));
  for (SwitchIndex at = 0; at < is_attachment.size(); ++at) {
    if (is_attachment[at]) attachments_.push_back(at);
  }
  if (graph.routing == RoutingPolicy::kUpDown) RankSwitches();
}

// Ranks by all links regardless of their state: a failed link does not raise a switch.
void EcmpRouting::RankSwitches() {
  level_.assign(device_of_switch_.size(), kUnreachable);
  std::vector<SwitchIndex> queue = attachments_;
  for (const SwitchIndex at : queue) level_[at] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(queue[i], switches_))) {
      const auto next = static_cast<SwitchIndex>(boost::target(edge, switches_));
      if (level_[next] != kUnreachable) continue;
      level_[next] = level_[queue[i]] + 1;
      queue.push_back(next);
    }
  }
  by_level_.assign(queue.rbegin(), queue.rend());
}

bool EcmpRouting::JoinsSwitches(LinkId link) const {
  return switch_of_device_[graph_.link_source(link)] != kNoSwitch &&
         switch_of_device_[graph_.link_target(link)] != kNoSwitch;
}

void EcmpRouting::SetLinkUp(LinkId link, bool up) {
  SIM_CHECK(link < settled_.up.size(), "a link the fabric does not have");
  if (settled_.up[link] == up) return;
  views_.clear();
  settled_.up[link] = up;
  // Distances are between switches: a NIC's link is looked at when a route is asked for.
  if (JoinsSwitches(link)) settled_.distances_to->clear();
}

std::vector<uint32_t> EcmpRouting::HopsFrom(LinkId link, std::vector<DeviceId> reached) const {
  std::vector<uint32_t> hops(graph_.device_count(), kUnreachable);
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

void EcmpRouting::SpreadLinkState(LinkId link, bool up, uint32_t wave,
                                  const std::vector<uint32_t>& wave_of_device) {
  if (wave == 0) {
    news_.push_back({.link = link,
                     .up = up,
                     .last_wave = LastWave(wave_of_device),
                     .wave_of_device = RunLengths(wave_of_device)});
  }
  // The earlier one of two, for it cannot be overtaken.
  const auto of_link = wave == 0
                           ? std::prev(news_.end())
                           : std::find_if(news_.begin(), news_.end(), [&](const News& news) {
                               return news.link == link && news.up == up && news.wave + 1 == wave;
                             });
  SIM_CHECK(of_link != news_.end(), "news of a link that goes on before it began");
  of_link->wave = wave;
  if (wave < of_link->last_wave) return;
  news_.erase(of_link);
  views_.clear();
  SetLinkUp(link, up);
}

const EcmpRouting::View& EcmpRouting::ViewOf(DeviceId device) const {
  if (news_.empty()) [[likely]]
    return settled_;
  std::vector<LinkId> changed;
  for (const News& news : news_) {
    if (news.wave_of_device[device] > news.wave) continue;
    std::erase(changed, news.link);  // of two news of a link the later one holds
    if (news.up != settled_.up[news.link]) changed.push_back(news.link);
  }
  std::sort(changed.begin(), changed.end());
  return ViewWith(changed);
}

// The settled view but for the links that changed, in ascending order.
const EcmpRouting::View& EcmpRouting::ViewWith(const std::vector<LinkId>& changed) const {
  if (changed.empty()) return settled_;
  const auto [entry, is_new] = views_.try_emplace(changed);
  View& view = entry->second;
  if (!is_new) return view;
  view.up = settled_.up;
  for (const LinkId link : changed) view.up[link].flip();
  std::vector<LinkId> between_switches = changed;
  std::erase_if(between_switches, [this](LinkId link) { return !JoinsSwitches(link); });
  view.distances_to = between_switches.size() == changed.size()
                          ? std::make_shared<Table>()
                          : ViewWith(between_switches).distances_to;
  return view;
}

Path EcmpRouting::Resolve(DeviceId from, DeviceId to, uint64_t entropy,
                          std::optional<uint32_t>* detour_hop) const {
  const auto ends = FindNics(from, to);
  if (!ends) return {};
  Path path = ends->first;
  DeviceId at = ends->from;
  if (const auto detour = DrawDetour(*ends, entropy)) {
    if (!Append(at, *detour, entropy, path)) return {};
    at = *detour;
    if (detour_hop != nullptr) *detour_hop = static_cast<uint32_t>(path.size());
  }
  if (!Append(at, ends->to, entropy, path)) return {};
  path.insert(path.end(), ends->last.begin(), ends->last.end());
  return path;
}

Path EcmpRouting::Resolve(DeviceId from, DeviceId to, uint64_t entropy,
                          const PortPins& pins) const {
  SIM_CHECK(!IsValiant(graph_.routing), "a path between ports by way of a detour");
  const auto ends = FindNics(from, to);
  if (!ends || !ViewOf(ends->from).up[pins.first]) return {};
  Path path = ends->first;
  path.push_back(pins.first);
  if (pins.first != pins.last) {
    const DeviceId last_switch = graph_.link_source(pins.last);
    if (!Append(graph_.link_target(pins.first), last_switch, entropy, path)) return {};
    if (!ViewOf(last_switch).up[pins.last]) return {};
    path.push_back(pins.last);
  }
  path.insert(path.end(), ends->last.begin(), ends->last.end());
  return path;
}

bool EcmpRouting::Append(DeviceId from, DeviceId to, uint64_t entropy, Path& path) const {
  const View* view = nullptr;
  Destination destination;
  std::vector<LinkId> next;
  std::vector<DeviceId> passed;
  bool has_gone_down = false;
  for (DeviceId at = from; at != to; at = graph_.link_target(path.back())) {
    if (const View& of_device = ViewOf(at); &of_device != view) {
      view = &of_device;
      destination = FindDestination(to, of_device);
    }
    NextLinks(at, destination, *view, next);
    // Devices of different views may send it back and forth.
    if (next.empty() || std::find(passed.begin(), passed.end(), at) != passed.end()) return false;
    path.push_back(next[ScaleTo(SwitchHash(seed_, at, entropy), next.size())]);
    if (graph_.routing == RoutingPolicy::kUpDown && JoinsSwitches(path.back())) {
      const bool goes_down = level_[switch_of_device_[graph_.link_target(path.back())]] <
                             level_[switch_of_device_[at]];
      if (has_gone_down && !goes_down) return false;
      has_gone_down = goes_down;
    }
    passed.push_back(at);
  }
  return true;
}

// Returns the switch that a flow goes to first on Valiant's routes; nullopt if it takes a direct
// route. The sender draws, by its view.
std::optional<DeviceId> EcmpRouting::DrawDetour(const NicEnds& ends, uint64_t entropy) const {
  if (!IsValiant(graph_.routing) || attachments_.size() < 3 || ends.from == ends.to) {
    return std::nullopt;
  }
  const View& view = ViewOf(ends.from);
  const Destination destination = FindDestination(ends.to, view);
  std::vector<LinkId> next;
  // Both NICs hang on one switch.
  if (NextLinks(ends.from, destination, view, next) == 0) return std::nullopt;
  const uint64_t draw = Mix64(SwitchHash(seed_, ends.from, entropy) ^ ends.to);
  const DeviceId detour = device_of_switch_[attachments_[ScaleTo(draw, attachments_.size())]];
  // A switch that failures have cut off is no detour.
  NextLinks(ends.from, FindDestination(detour, view), view, next);
  if (next.empty()) return std::nullopt;
  NextLinks(detour, destination, view, next);
  return next.empty() ? std::nullopt : std::optional(detour);
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
  const View& view = ViewOf(at);
  const uint32_t switches = NextLinks(at, FindDestination(nic, view), view, next.links);
  if (next.links.empty()) return next;
  const bool is_last = graph_.link_target(next.links.front()) == nic;
  next.hops = is_last ? 1 : switches + 2;  // to the next switch, over those behind it, to the NIC
  return next;
}

std::vector<uint32_t> EcmpRouting::SwitchHopsTo(DeviceId to) const {
  std::vector<uint32_t> hops(graph_.device_count(), kUnreachable);
  const SwitchIndex at = switch_of_device_[to];
  if (at == kNoSwitch) return hops;
  const std::vector<uint32_t> coded = CodedDistancesTo(at, settled_);
  for (SwitchIndex from = 0; from < coded.size(); ++from) {
    if (coded[from] != kUnreachable) hops[device_of_switch_[from]] = coded[from] / 2;
  }
  return hops;
}

void EcmpRouting::ResolveAll() const {
  for (const SwitchIndex attachment : attachments_) DistancesTo(attachment, settled_);
}

EcmpRouting::TableSize EcmpRouting::MeasureTables() const {
  std::set<const Table*> tables = {settled_.distances_to.get()};
  for (const auto& [changed, view] : views_) tables.insert(view.distances_to.get());
  TableSize size;
  size.tables = tables.size();
  for (const Table* table : tables) {
    size.destinations += table->size();
    for (const auto& [attachment, distances] : *table) size.bytes += distances.bytes();
  }
  size.dense_bytes = size.destinations * device_of_switch_.size() * sizeof(uint32_t);
  return size;
}

std::optional<EcmpRouting::NicEnds> EcmpRouting::FindNics(DeviceId from, DeviceId to) const {
  if (from == to) return std::nullopt;
  NicEnds ends = {.from = from, .to = to};
  for (const bool is_source : {true, false}) {
    const DeviceId device = is_source ? from : to;
    if (graph_.device(device).kind == DeviceKind::kNic) continue;
    SIM_CHECK(graph_.device(device).kind == DeviceKind::kGpu,
              graph_.device(device).name + " is neither a GPU nor a NIC");
    const auto nic = graph_.NicOfGpu(device);
    if (!nic) return std::nullopt;
    Path host_path = is_source ? graph_.HostPath(device, *nic) : graph_.HostPath(*nic, device);
    const std::vector<bool>& up = ViewOf(*nic).up;
    if (!std::all_of(host_path.begin(), host_path.end(), [&](LinkId link) { return up[link]; })) {
      return std::nullopt;
    }
    (is_source ? ends.from : ends.to) = *nic;
    (is_source ? ends.first : ends.last) = std::move(host_path);
  }
  return ends;
}

EcmpRouting::Destination EcmpRouting::FindDestination(DeviceId device, const View& view) const {
  Destination destination = {.device = device, .attachments = {}};
  if (const SwitchIndex at = switch_of_device_[device]; at != kNoSwitch) {
    destination.attachments.push_back(&DistancesTo(at, view));
    return destination;
  }
  for (const auto& edge : boost::make_iterator_range(boost::in_edges(device, graph_.graph()))) {
    if (!view.up[graph_.link_of_edge(edge)]) continue;
    const SwitchIndex attachment = switch_of_device_[boost::source(edge, graph_.graph())];
    if (attachment == kNoSwitch) continue;
    destination.attachments.push_back(&DistancesTo(attachment, view));
  }
  return destination;
}

const EcmpRouting::Distances& EcmpRouting::DistancesTo(SwitchIndex attachment,
                                                       const View& view) const {
  const auto [entry, is_new] = view.distances_to->try_emplace(attachment);
  if (is_new) entry->second = Distances(CodedDistancesTo(attachment, view));
  return entry->second;
}

std::vector<uint32_t> EcmpRouting::CodedDistancesTo(SwitchIndex attachment,
                                                    const View& view) const {
  std::vector<uint32_t> coded(device_of_switch_.size(), kUnreachable);
  if (graph_.routing == RoutingPolicy::kUpDown) {
    FindUpDown(attachment, view, coded);
  } else {
    FindShortest(attachment, view, coded);
  }
  return coded;
}

void EcmpRouting::FindShortest(SwitchIndex attachment, const View& view,
                               std::vector<uint32_t>& coded) const {
  coded[attachment] = 0;
  const boost::filtered_graph<SwitchGraph, IsUp<SwitchGraph>> links_up(switches_,
                                                                       {&switches_, &view.up});
  boost::breadth_first_search(links_up, attachment,
                              boost::visitor(boost::make_bfs_visitor(
                                  boost::record_distances(coded.data(), boost::on_tree_edge()))));
  for (uint32_t& value : coded) {
    if (value != kUnreachable) value = Coded(value, false);
  }
}

void EcmpRouting::FindUpDown(SwitchIndex attachment, const View& view,
                             std::vector<uint32_t>& coded) const {
  // Against the links, so upwards: all from which the way leads down only.
  coded[attachment] = Coded(0, true);
  std::vector<SwitchIndex> queue = {attachment};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(queue[i], switches_))) {
      const auto above = static_cast<SwitchIndex>(boost::target(edge, switches_));
      if (level_[above] <= level_[queue[i]] || coded[above] != kUnreachable ||
          !view.up[switches_[edge].link]) {
        continue;
      }
      coded[above] = coded[queue[i]] + 2;
      queue.push_back(above);
    }
  }
  // The others go up first, the highest decided before those below. A way down is always the
  // shortest, since no way covers more levels than it has links.
  for (const SwitchIndex above : by_level_) {
    if (coded[above] == kUnreachable) continue;
    const uint32_t from_below = Coded(coded[above] / 2 + 1, false);
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(above, switches_))) {
      const auto below = static_cast<SwitchIndex>(boost::target(edge, switches_));
      if (level_[below] >= level_[above] || !view.up[switches_[edge].link]) continue;
      const bool is_decided = coded[below] != kUnreachable && coded[below] % 2 == 1;
      if (!is_decided) coded[below] = std::min(coded[below], from_below);
    }
  }
}

std::optional<EcmpRouting::Reach> EcmpRouting::ReachOf(SwitchIndex at,
                                                       const Distances& distances) const {
  const uint32_t coded = distances[at];
  if (coded == kUnreachable) return std::nullopt;
  return Reach{.hops = coded / 2, .is_down = coded % 2 == 1};
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

  const SwitchIndex here = switch_of_device_[device];
  const bool is_up_down = graph_.routing == RoutingPolicy::kUpDown;
  // Once a way leads down it must not go up again, wherever the NIC may be attached as well.
  bool goes_down = false;
  bool is_at_attachment = false;
  for (const Distances* distances : destination.attachments) {
    const auto reach = here == kNoSwitch ? std::nullopt : ReachOf(here, *distances);
    if (!reach) continue;
    goes_down |= reach->is_down;
    is_at_attachment |= reach->hops == 0;
  }
  const auto hops_from_switch = [&](SwitchIndex at, bool must_go_down) {
    uint32_t hops = kUnreachable;
    for (const Distances* distances : destination.attachments) {
      const auto reach = ReachOf(at, *distances);
      if (reach && (!must_go_down || reach->is_down)) hops = std::min(hops, reach->hops);
    }
    return hops;
  };

  const Graph& fabric = graph_.graph();
  if (here != kNoSwitch && !is_at_attachment) {
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(device, fabric))) {
      const SwitchIndex neighbour = switch_of_device_[boost::target(edge, fabric)];
      if (neighbour == kNoSwitch) continue;
      if (is_up_down &&
          (level_[neighbour] == level_[here] || (level_[neighbour] < level_[here]) != goes_down)) {
        continue;
      }
      const LinkId link = graph_.link_of_edge(edge);
      if (view.up[link]) consider(link, hops_from_switch(neighbour, goes_down));
    }
    if (IsInDimensionOrder(graph_.routing)) KeepLowestDimension(next);
    return fewest_hops;
  }
  // The last hop, also between two NICs cabled to each other.
  for (const auto& edge : boost::make_iterator_range(boost::in_edges(destination.device, fabric))) {
    if (boost::source(edge, fabric) != device) continue;
    const LinkId link = graph_.link_of_edge(edge);
    if (view.up[link]) consider(link, 0);
  }
  if (here != kNoSwitch || !next.empty()) return 0;
  // The first hop, from a NIC to a switch it hangs on.
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(device, fabric))) {
    const SwitchIndex neighbour = switch_of_device_[boost::target(edge, fabric)];
    if (neighbour == kNoSwitch) continue;
    const LinkId link = graph_.link_of_edge(edge);
    if (view.up[link]) consider(link, hops_from_switch(neighbour, false));
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
