// SPDX-License-Identifier: GPL-2.0-only
// Counts and look-ups that tests of generators share.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "topologies/graph/spec_check.h"

namespace railyard::testing {

inline std::array<uint32_t, kTierCount> CablesByTier(const FabricGraph& graph) {
  std::array<uint32_t, kTierCount> count = {};
  for (const Cable& cable : graph.cables()) {
    ++count[static_cast<size_t>(graph.link(cable.forward).tier)];
  }
  return count;
}

inline uint32_t CablesOf(const FabricGraph& graph, Tier tier) {
  return CablesByTier(graph)[static_cast<size_t>(tier)];
}

inline uint32_t Radix(const FabricGraph& graph, const std::string& name) {
  return static_cast<uint32_t>(boost::out_degree(graph.FindDevice(name).value(), graph.graph()));
}

inline std::vector<DeviceId> Switches(const FabricGraph& graph) {
  std::vector<DeviceId> switches;
  for (DeviceId id{0}; id < graph.device_count(); ++id) {
    if (graph.device(id).kind == DeviceKind::kSwitch) switches.push_back(id);
  }
  return switches;
}

// The most cables between any two switches on a shortest way over switches, by breadth-first
// search from each; 1,000,000 if two are not joined.
inline uint32_t SwitchDiameter(const FabricGraph& graph) {
  constexpr uint32_t kFar = 1'000'000;
  uint32_t diameter = 0;
  for (const DeviceId start : Switches(graph)) {
    std::vector<uint32_t> distance(graph.device_count(), kFar);
    std::vector<DeviceId> queue = {start};
    distance[start] = 0;
    for (size_t i = 0; i < queue.size(); ++i) {
      for (const auto& edge :
           boost::make_iterator_range(boost::out_edges(queue[i], graph.graph()))) {
        const auto next = static_cast<DeviceId>(boost::target(edge, graph.graph()));
        if (graph.device(next).kind != DeviceKind::kSwitch || distance[next] != kFar) continue;
        distance[next] = distance[queue[i]] + 1;
        queue.push_back(next);
      }
    }
    for (const DeviceId end : Switches(graph)) diameter = std::max(diameter, distance[end]);
  }
  return diameter;
}

// Lines "field: what" of a check, as a person would compare them.
inline std::vector<std::string> Lines(const std::vector<SpecProblem>& problems) {
  std::vector<std::string> lines;
  for (const SpecProblem& problem : problems) lines.push_back(problem.field + ": " + problem.what);
  return lines;
}

}  // namespace railyard::testing
