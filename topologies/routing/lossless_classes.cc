// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/routing/lossless_classes.h"

#include <algorithm>

#include "topologies/routing/deadlock.h"

namespace railyard {
namespace {

// The dimension along which a link's two switches lie, or the number of dimensions.
size_t DimensionOf(const FabricGraph& graph, LinkId link) {
  const auto& from = graph.device(graph.link_source(link)).coordinates;
  const auto& to = graph.device(graph.link_target(link)).coordinates;
  return static_cast<size_t>(std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first -
                             from.begin());
}

}  // namespace

bool IsBehindDateline(const FabricGraph& graph, std::optional<LinkId> before, bool was_behind,
                      LinkId link) {
  const auto& from = graph.device(graph.link_source(link)).coordinates;
  const auto& to = graph.device(graph.link_target(link)).coordinates;
  const size_t dimension = DimensionOf(graph, link);
  if (dimension >= from.size()) return false;
  const auto [low, high] = std::minmax(from[dimension], to[dimension]);
  if (high - low > 1) return true;
  return before && DimensionOf(graph, *before) == dimension && was_behind;
}

LosslessClasses::LosslessClasses(const FabricGraph& graph)
    : graph_(graph),
      count_(std::clamp(CountLosslessClasses(graph), 1u, kMax)),
      classes_per_part_(graph.deadlock_avoidance == DeadlockAvoidance::kDateline ? 2 : 1) {}

bool LosslessClasses::JoinsSwitches(LinkId link) const {
  return graph_.device(graph_.link_source(link)).kind == DeviceKind::kSwitch &&
         graph_.device(graph_.link_target(link)).kind == DeviceKind::kSwitch;
}

uint8_t LosslessClasses::Next(LinkId before, uint8_t class_before, LinkId link) const {
  if (count_ == 1 || !JoinsSwitches(link)) return 0;
  const bool is_first = !JoinsSwitches(before);
  if (graph_.deadlock_avoidance == DeadlockAvoidance::kHopClasses) {
    return is_first ? 0 : static_cast<uint8_t>(std::min(class_before + 1u, count_ - 1));
  }
  const uint32_t place = is_first ? 0 : class_before % classes_per_part_;
  const uint32_t part = is_first ? 0 : class_before - place;
  const auto joined = is_first ? std::nullopt : std::optional(before);
  return static_cast<uint8_t>(part + PlaceIn(joined, place, link));
}

uint32_t LosslessClasses::PlaceIn(std::optional<LinkId> before, uint32_t place, LinkId link) const {
  if (classes_per_part_ == 1) return 0;
  return IsBehindDateline(graph_, before, place == 1, link) ? 1 : 0;
}

std::vector<uint8_t> LosslessClasses::OfPath(const Path& path,
                                             std::optional<uint32_t> detour_hop) const {
  std::vector<uint8_t> classes(path.size());
  if (count_ == 1) return classes;
  for (uint32_t hop = 1; hop < path.size(); ++hop) {
    const bool begins_part = hop == detour_hop && JoinsSwitches(path[hop]) &&
                             graph_.deadlock_avoidance != DeadlockAvoidance::kHopClasses;
    classes[hop] =
        begins_part ? static_cast<uint8_t>(classes_per_part_ + PlaceIn(std::nullopt, 0, path[hop]))
                    : Next(path[hop - 1], classes[hop - 1], path[hop]);
  }
  return classes;
}

}  // namespace railyard
