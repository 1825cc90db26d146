// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/graph/fabric_graph.h"

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "topologies/graph/cable_name.h"

namespace railyard {
namespace {

uint64_t PairKey(DeviceId a, DeviceId b) {
  return uint64_t{std::min(a, b)} << 32 | uint64_t{std::max(a, b)};
}

}  // namespace

std::string_view TierName(Tier tier) {
  static constexpr std::array<std::string_view, kTierCount> kNames = {
      "NVLINK", "HOST", "NIC_LEAF", "LEAF_SPINE", "SPINE_CORE", "DIRECT", "LOCAL", "GLOBAL"};
  return kNames[static_cast<size_t>(tier)];
}

std::string_view DeviceKindName(DeviceKind kind) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "GPU", "NVSWITCH", "NIC", "SWITCH", "PCIE_SWITCH", "HOST_BRIDGE"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view RoutingPolicyName(RoutingPolicy policy) {
  static constexpr std::array<std::string_view, kRoutingPolicyCount> kNames = {
      "SHORTEST", "DIMENSION_ORDER", "UP_DOWN", "VALIANT", "VALIANT_DIMENSION_ORDER"};
  return kNames[static_cast<size_t>(policy)];
}

bool IsValiant(RoutingPolicy policy) {
  return policy == RoutingPolicy::kValiant || policy == RoutingPolicy::kValiantDimensionOrder;
}

bool IsInDimensionOrder(RoutingPolicy policy) {
  return policy == RoutingPolicy::kDimensionOrder ||
         policy == RoutingPolicy::kValiantDimensionOrder;
}

std::string JoinTiers(std::span<const Tier> tiers, std::string_view separator) {
  std::string names;
  for (const Tier tier : tiers) {
    if (!names.empty()) names += separator;
    names += TierName(tier);
  }
  return names;
}

std::string_view DeadlockAvoidanceName(DeadlockAvoidance avoidance) {
  static constexpr std::array<std::string_view, kDeadlockAvoidanceCount> kNames = {
      "ROUTES", "HOP_CLASSES", "DATELINE", "LOSSY"};
  return kNames[static_cast<size_t>(avoidance)];
}

bool CircuitSchedule::IsThere(uint32_t cable, uint32_t slot) const {
  const auto found = slots_of_cable.find(cable);
  return found == slots_of_cable.end() ||
         std::binary_search(found->second.begin(), found->second.end(), slot);
}

DeviceId FabricGraph::AddDevice(Device device) {
  SIM_CHECK(device.kind == DeviceKind::kSwitch ||
                (device.server != ServerIndex::kNone && device.local_index >= 0),
            device.name + " has no server or local index");
  const auto id = static_cast<DeviceId>(boost::num_vertices(*graph_));
  const bool is_new = device_by_name_.emplace(device.name, id).second;
  SIM_CHECK(is_new, "there are two devices " + device.name);
  if (device.server != ServerIndex::kNone) {
    const ServerIndex server = device.server;
    if (server >= server_nics_.size()) {
      server_nics_.resize(size_t{server} + 1);
      server_gpus_.resize(size_t{server} + 1);
    }
    if (device.kind == DeviceKind::kNic) {
      std::vector<DeviceId>& nics = server_nics_[server];
      const auto position = std::upper_bound(
          nics.begin(), nics.end(), device.local_index,
          [this](int32_t index, DeviceId nic) { return index < (*graph_)[nic].local_index; });
      nics.insert(position, id);
    }
    if (device.kind == DeviceKind::kGpu) {
      std::vector<GpuIndex>& gpus = server_gpus_[server];
      const auto position = std::upper_bound(gpus.begin(), gpus.end(), device.local_index,
                                             [this](int32_t index, GpuIndex gpu) {
                                               return index < (*graph_)[gpus_[gpu]].local_index;
                                             });
      gpus.insert(position, GpuIndex{gpus_.size()});
      gpus_.push_back(id);
    }
  }
  // Not by add_vertex(property, graph): it looks for the vertex by name first, and GCC 12 takes the
  // empty answer for an uninitialized one when it inlines that under AddressSanitizer.
  (*graph_)[boost::add_vertex(*graph_)] = std::move(device);
  return id;
}

uint32_t FabricGraph::AddCable(DeviceId a, DeviceId b, const CableSpec& spec) {
  SIM_CHECK(a != b && a < device_count() && b < device_count(), "a cable needs two devices");
  SIM_CHECK(spec.rate_bps > 0 && spec.propagation_ps >= 0 && spec.lanes > 0,
            fmt::format("{}--{} has no rate, no lanes or a negative delay", device(a).name,
                        device(b).name));
  const auto cable = static_cast<uint32_t>(cables_.size());
  const auto forward = static_cast<LinkId>(links_.size());
  cables_.push_back({.name = {}, .forward = forward, .backward = LinkId{forward + 1}});
  const LinkProperties properties = {.name = {},
                                     .cable = cable,
                                     .tier = spec.tier,
                                     .rate_bps = spec.rate_bps,
                                     .propagation_ps = spec.propagation_ps,
                                     .lanes = spec.lanes};
  links_.push_back(boost::add_edge(a, b, properties, *graph_).first);
  links_.push_back(boost::add_edge(b, a, properties, *graph_).first);

  ParallelCables& bundle =
      cables_between_.try_emplace(PairKey(a, b), ParallelCables{.first = cable, .count = 0})
          .first->second;
  ++bundle.count;
  if (bundle.count == 2) NameCable(bundle.first, 1);
  NameCable(cable, bundle.count == 1 ? 0 : bundle.count);
  return cable;
}

void FabricGraph::SetCableRate(uint32_t cable, uint64_t rate_bps) {
  SIM_CHECK(rate_bps > 0, fmt::format("{} has no rate", cables_[cable].name));
  for (const LinkId link : {cables_[cable].forward, cables_[cable].backward}) {
    (*graph_)[links_[link]].rate_bps = rate_bps;
  }
}

// `number_in_bundle` counts from 1; 0 is a cable without parallel ones.
void FabricGraph::NameCable(uint32_t cable, uint32_t number_in_bundle) {
  Cable& named = cables_[cable];
  const std::string& from = device(link_source(named.forward)).name;
  const std::string& to = device(link_target(named.forward)).name;
  const std::string suffix =
      number_in_bundle == 0 ? std::string() : fmt::format("#{}", number_in_bundle);
  cable_by_name_.erase(named.name);
  named.name = fmt::format("{}{}{}{}", from, kCableSeparator, to, suffix);
  cable_by_name_.emplace(named.name, cable);
  (*graph_)[links_[named.forward]].name = fmt::format("{}>{}{}", from, to, suffix);
  (*graph_)[links_[named.backward]].name = fmt::format("{}>{}{}", to, from, suffix);
}

DeviceId FabricGraph::link_source(LinkId id) const {
  return static_cast<DeviceId>(boost::source(links_[id], *graph_));
}

DeviceId FabricGraph::link_target(LinkId id) const {
  return static_cast<DeviceId>(boost::target(links_[id], *graph_));
}

LinkId FabricGraph::link_of_edge(Graph::edge_descriptor edge) const {
  const Cable& cable = cables_[(*graph_)[edge].cable];
  return link_source(cable.forward) == boost::source(edge, *graph_) ? cable.forward
                                                                    : cable.backward;
}

LinkId FabricGraph::ReverseLink(LinkId id) const {
  const Cable& cable = cables_[link(id).cable];
  return id == cable.forward ? cable.backward : cable.forward;
}

std::optional<uint32_t> FabricGraph::FindCable(std::string_view cable_name) const {
  if (const auto found = cable_by_name_.find(std::string(cable_name));
      found != cable_by_name_.end()) {
    return found->second;
  }
  const auto found = cable_by_name_.find(WithOtherEndFirst(cable_name));
  if (found == cable_by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<DeviceId> FabricGraph::FindDevice(std::string_view device_name) const {
  const auto found = device_by_name_.find(std::string(device_name));
  if (found == device_by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<GpuIndex> FabricGraph::FindGpuOfServer(GpuIndex gpu, uint32_t local_index) const {
  const std::vector<GpuIndex>& gpus = server_gpus_[device(gpus_[gpu]).server];
  const auto index_of = [this](GpuIndex one) {
    return static_cast<uint32_t>(device(gpus_[one]).local_index);
  };
  const auto found = std::ranges::lower_bound(gpus, local_index, {}, index_of);
  if (found == gpus.end() || index_of(*found) != local_index) return std::nullopt;
  return *found;
}

bool FabricGraph::AreOnSeparateServers(std::span<const GpuIndex> gpus) const {
  std::unordered_set<ServerIndex> servers;
  for (const GpuIndex gpu : gpus) servers.insert(device(gpus_[gpu]).server);
  return servers.size() == gpus.size();
}

std::optional<DeviceId> FabricGraph::NicOfGpu(DeviceId gpu) const {
  const Device& properties = device(gpu);
  SIM_CHECK(properties.kind == DeviceKind::kGpu, properties.name + " is not a GPU");
  const std::vector<DeviceId>& nics = server_nics_[properties.server];
  if (!nics.empty()) {
    const DeviceId nic = nics[static_cast<size_t>(properties.local_index) % nics.size()];
    if (FindLink(gpu, nic)) return nic;
  }
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(gpu, *graph_))) {
    const auto neighbour = static_cast<DeviceId>(boost::target(edge, *graph_));
    if (device(neighbour).kind == DeviceKind::kNic) return neighbour;
  }
  std::vector<DeviceId> nearest;
  size_t fewest_links = SIZE_MAX;
  for (const DeviceId nic : nics) {
    const size_t links = HostPath(gpu, nic).size();
    if (links == 0 || links > fewest_links) continue;
    if (links < fewest_links) nearest.clear();
    fewest_links = links;
    nearest.push_back(nic);
  }
  if (nearest.empty()) return std::nullopt;
  return nearest[static_cast<size_t>(properties.local_index) % nearest.size()];
}

std::vector<std::pair<DeviceId, LinkId>> FabricGraph::HostReach(DeviceId from) const {
  std::vector<std::pair<DeviceId, LinkId>> reached = {{from, LinkId{0}}};
  for (size_t i = 0; i < reached.size(); ++i) {
    const DeviceId at = reached[i].first;
    const DeviceKind kind = device(at).kind;
    if (i > 0 && kind != DeviceKind::kPcieSwitch && kind != DeviceKind::kHostBridge) continue;
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(at, *graph_))) {
      const auto next = static_cast<DeviceId>(boost::target(edge, *graph_));
      if ((*graph_)[edge].tier != Tier::kHost) continue;
      const auto is_next = [next](const auto& other) { return other.first == next; };
      if (std::none_of(reached.begin(), reached.end(), is_next)) {
        reached.emplace_back(next, link_of_edge(edge));
      }
    }
  }
  return reached;
}

std::vector<LinkId> FabricGraph::HostPath(DeviceId from, DeviceId to) const {
  if (from == to || device(from).server != device(to).server) return {};
  if (const auto link_between = FindLink(from, to);
      link_between && link(*link_between).tier == Tier::kHost) {
    return {*link_between};
  }
  const std::vector<std::pair<DeviceId, LinkId>> reached = HostReach(from);
  std::vector<LinkId> path;
  for (DeviceId at = to; at != from; at = link_source(path.back())) {
    const auto found = std::find_if(reached.begin(), reached.end(),
                                    [at](const auto& other) { return other.first == at; });
    if (found == reached.end()) return {};
    path.push_back(found->second);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<DeviceId> FabricGraph::HostNeighbours(DeviceId from) const {
  std::vector<DeviceId> neighbours;
  for (const auto& [reached, over] : HostReach(from)) {
    if (reached != from) neighbours.push_back(reached);
  }
  return neighbours;
}

std::optional<DeviceId> FabricGraph::HostBridgeOf(DeviceId id) const {
  for (const auto& [reached, over] : HostReach(id)) {
    if (device(reached).kind == DeviceKind::kHostBridge) return reached;
  }
  return std::nullopt;
}

std::vector<LinkId> FabricGraph::WiresOfNic(DeviceId nic) const {
  std::vector<LinkId> wires;
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(nic, *graph_))) {
    const LinkId wire = link_of_edge(edge);
    if (link(wire).tier != Tier::kHost) wires.push_back(wire);
  }
  return wires;
}

std::vector<DeviceId> FabricGraph::SharedNvSwitches(DeviceId gpu_a, DeviceId gpu_b) const {
  std::vector<DeviceId> shared;
  if (gpu_a == gpu_b) return shared;
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(gpu_a, *graph_))) {
    const auto neighbour = static_cast<DeviceId>(boost::target(edge, *graph_));
    if (device(neighbour).kind == DeviceKind::kNvSwitch && FindLink(neighbour, gpu_b)) {
      shared.push_back(neighbour);
    }
  }
  std::sort(shared.begin(), shared.end());
  shared.erase(std::unique(shared.begin(), shared.end()), shared.end());
  return shared;
}

std::vector<DeviceId> FabricGraph::SharedNvSwitches(std::span<const DeviceId> gpus) const {
  std::vector<DeviceId> shared = SharedNvSwitches(gpus[0], gpus[1]);
  std::erase_if(shared, [&](DeviceId nvswitch) {
    return !std::ranges::all_of(gpus.subspan(2),
                                [&](DeviceId gpu) { return FindLink(nvswitch, gpu).has_value(); });
  });
  return shared;
}

std::vector<FabricGraph::NvlinkPath> FabricGraph::NvlinkPaths(DeviceId gpu_a,
                                                              DeviceId gpu_b) const {
  std::vector<NvlinkPath> paths;
  for (const DeviceId nvswitch : SharedNvSwitches(gpu_a, gpu_b)) {
    const LinkId up = *FindLink(gpu_a, nvswitch);
    const LinkId down = *FindLink(nvswitch, gpu_b);
    paths.push_back({.links = {up, down}, .lanes = std::min(link(up).lanes, link(down).lanes)});
  }
  if (!paths.empty() || gpu_a == gpu_b) return paths;
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(gpu_a, *graph_))) {
    const LinkProperties& properties = (*graph_)[edge];
    if (properties.tier != Tier::kNvlink || boost::target(edge, *graph_) != gpu_b) continue;
    paths.push_back({.links = {link_of_edge(edge)}, .lanes = properties.lanes});
  }
  return paths;
}

std::vector<FabricGraph::NvlinkPath> FabricGraph::NvlinkRoutes(DeviceId gpu_a,
                                                               DeviceId gpu_b) const {
  std::vector<NvlinkPath> paths = NvlinkPaths(gpu_a, gpu_b);
  if (!paths.empty() || gpu_a == gpu_b) return paths;
  NvlinkPath best;
  std::pair<uint32_t, uint32_t> best_lanes = {0, 0};  // all the way, to gpu_b
  for (const auto& edge : boost::make_iterator_range(boost::out_edges(gpu_a, *graph_))) {
    const auto relay = static_cast<DeviceId>(boost::target(edge, *graph_));
    const LinkProperties& first = (*graph_)[edge];
    if (first.tier != Tier::kNvlink || device(relay).kind != DeviceKind::kGpu) continue;
    const std::optional<LinkId> second = FindLink(relay, gpu_b);
    if (!second || link(*second).tier != Tier::kNvlink) continue;
    const uint32_t to_b = link(*second).lanes;
    const std::pair<uint32_t, uint32_t> lanes = {std::min(first.lanes, to_b), to_b};
    if (lanes <= best_lanes) continue;
    best_lanes = lanes;
    best = {.links = {link_of_edge(edge), *second}, .lanes = lanes.first};
  }
  if (best_lanes.first > 0) paths.push_back(std::move(best));
  return paths;
}

std::optional<LinkId> FabricGraph::FindLink(DeviceId from, DeviceId to) const {
  // Both lists are in the order of creation, so either finds the first of a bundle.
  if (boost::out_degree(from, *graph_) <= boost::in_degree(to, *graph_)) {
    for (const auto& edge : boost::make_iterator_range(boost::out_edges(from, *graph_))) {
      if (boost::target(edge, *graph_) == to) return link_of_edge(edge);
    }
  } else {
    for (const auto& edge : boost::make_iterator_range(boost::in_edges(to, *graph_))) {
      if (boost::source(edge, *graph_) == from) return link_of_edge(edge);
    }
  }
  return std::nullopt;
}

}  // namespace railyard
