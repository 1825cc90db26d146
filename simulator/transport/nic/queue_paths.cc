// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/queue_paths.h"

#include <fmt/format.h>

#include "simulator/units/mix64.h"

namespace railyard {

PairEnds EndsBetween(const FabricGraph& graph, GpuIndex source_gpu, GpuIndex destination_gpu,
                     uint64_t entropy) {
  PairEnds ends;
  ends.source_gpu = graph.gpus()[source_gpu];
  ends.destination_gpu = graph.gpus()[destination_gpu];
  ends.source_nic = graph.NicOfGpu(ends.source_gpu).value();
  ends.destination_nic = graph.NicOfGpu(ends.destination_gpu).value();
  ends.entropy = entropy;
  return ends;
}

std::string NamesOf(const FabricGraph& graph, const PairEnds& ends) {
  return fmt::format("{} -> {}", graph.device(ends.source_nic).name,
                     graph.device(ends.destination_nic).name);
}

std::vector<LinkShare> EvenSharesOf(const FabricNetwork& network, std::span<const PathRef> paths) {
  const double share = 1.0 / static_cast<double>(paths.size());
  std::vector<LinkShare> shares;
  for (const PathRef path : paths) {
    for (const LinkId link : network.paths().LinksOf(path)) shares.push_back({link, share});
  }
  return shares;
}

QueuePaths::Ways QueuePaths::Resolve(const PairEnds& ends, bool is_data, const Ways& last) {
  const DeviceId from_nic = is_data ? ends.source_nic : ends.destination_nic;
  const DeviceId to_nic = is_data ? ends.destination_nic : ends.source_nic;
  const Way there = {is_data ? ends.source_gpu : from_nic, is_data ? ends.destination_gpu : to_nic,
                     is_data};
  const bool is_stream = is_answered_by_host_ && is_data;
  const Way back = {is_stream ? ends.destination_gpu : to_nic,
                    is_stream ? ends.source_gpu : from_nic, !is_data};
  Ways ways;
  ways.packets = PathTo(there, ends, last.packets);
  ways.acks = PathTo(back, ends, last.acks);
  return ways;
}

PathRef QueuePaths::PathTo(const Way& way, const PairEnds& ends, PathRef last) {
  std::optional<uint32_t> detour_hop;
  Path path;
  if (ends.data_pins) {
    const PortPins& pins = *ends.data_pins;
    path = routing_.Resolve(
        way.from, way.to, ends.entropy,
        way.is_forward ? pins
                       : PortPins{graph_.ReverseLink(pins.last), graph_.ReverseLink(pins.first)});
  } else {
    path = routing_.Resolve(way.from, way.to, ends.entropy, &detour_hop);
  }
  if (IsOver(last, path)) return last;
  return routes_have_changed_ ? FindOrAdd(path, detour_hop) : network_.AddPath(path, detour_hop);
}

// Routes that change repeatedly, as over circuits or a flapping link, return to the same paths.
PathRef QueuePaths::FindOrAdd(const Path& path, std::optional<uint32_t> detour_hop) {
  uint64_t hash = Mix64(detour_hop.value_or(UINT32_MAX));
  for (const LinkId link : path) hash = Mix64(hash ^ link);
  const auto [first, last] = later_paths_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const LaterPath& known = it->second;
    if (known.detour_hop == detour_hop && IsOver(known.path, path)) return known.path;
  }
  const PathRef added = network_.AddPath(path, detour_hop);
  later_paths_.emplace(hash, LaterPath{.path = added, .detour_hop = detour_hop});
  return added;
}

bool QueuePaths::IsOver(PathRef known, const Path& path) const {
  bool is_same = path.size() == known.hop_count;
  for (uint32_t hop = 0; is_same && hop < known.hop_count; ++hop) {
    is_same = path[hop] == network_.paths().LinkOf(known, hop);
  }
  return is_same;
}

uint64_t QueuePaths::HashOf(PathRef path) const {
  uint64_t hash = path.hop_count;
  for (uint32_t hop = 0; hop < path.hop_count; ++hop) {
    hash = Mix64(hash ^ network_.paths().LinkOf(path, hop));
  }
  return hash;
}

}  // namespace railyard
