// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/topology_loader.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "topologies/rail_optimized.h"
#include "topologies/topology.pb.h"
#include "topologies/topology_file_loader.h"

namespace railyard {
namespace {

std::optional<FabricGraph> LoadPreset(const ProtoCursor& fabric, Diagnostics& diagnostics) {
  const std::string name = fabric.Text("preset", "");
  auto graph = MakePreset(name);
  if (!graph) {
    std::vector<std::string> names;
    for (const Preset& preset : Presets()) names.push_back(preset.name);
    fabric.Error(diagnostics, "preset", UnknownName("preset", name, names));
  }
  return graph;
}

std::optional<FabricGraph> LoadRailOptimized(const ProtoCursor& cursor, Diagnostics& diagnostics) {
  const size_t findings_before = diagnostics.findings().size();
  RailOptimizedSpec spec;
  const auto number = [&](const char* field, uint32_t default_value) {
    return static_cast<uint32_t>(cursor.Number(diagnostics, field, default_value, 0, UINT32_MAX));
  };
  if (!cursor.Has("servers")) cursor.Missing(diagnostics, "servers", "a number of servers, e.g. 4");
  spec.servers = number("servers", spec.servers);
  spec.gpus_per_server = number("gpus_per_server", spec.gpus_per_server);
  // Without a number of servers there is nothing to hold a group's size against.
  if (cursor.Has("servers_per_leaf") && cursor.Has("servers")) {
    spec.servers_per_leaf = number("servers_per_leaf", 0);
  }
  if (cursor.Has("spines")) spec.spines = number("spines", 0);
  spec.links_per_leaf_and_spine = number("links_per_leaf_and_spine", spec.links_per_leaf_and_spine);
  spec.nic_rate_bps = cursor.RateBps(diagnostics, "nic_rate", spec.nic_rate_bps);
  spec.leaf_spine_rate_bps =
      cursor.RateBps(diagnostics, "leaf_spine_rate", spec.leaf_spine_rate_bps);
  spec.host_rate_bps = cursor.RateBps(diagnostics, "host_rate", spec.host_rate_bps);
  spec.nic_leaf_delay_ps = cursor.DurationPs(diagnostics, "nic_leaf_delay", spec.nic_leaf_delay_ps);
  spec.leaf_spine_delay_ps =
      cursor.DurationPs(diagnostics, "leaf_spine_delay", spec.leaf_spine_delay_ps);
  spec.switch_latency_ps = cursor.DurationPs(diagnostics, "switch_latency", spec.switch_latency_ps);
  spec.delay_spread_ps = cursor.DurationPs(diagnostics, "delay_spread", spec.delay_spread_ps);
  spec.name = fmt::format("{}x{}-rail-optimized", spec.servers, spec.gpus_per_server);
  for (const SpecProblem& problem : CheckRailOptimized(spec)) {
    cursor.Error(diagnostics, problem.field, problem.what);
  }
  if (diagnostics.findings().size() > findings_before || cursor.IsDoubtfulSelf()) {
    return std::nullopt;
  }
  return MakeRailOptimized(spec);
}

std::optional<FabricGraph> LoadTopologyFile(const ProtoCursor& fabric, Diagnostics& diagnostics) {
  const std::string path = fabric.FilePath("file");
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    fabric.Error(diagnostics, "file", fmt::format("{}: {}", Quote(path), why));
    return std::nullopt;
  }
  const auto file = LoadTextProto(path, protos::Topology(), {}, diagnostics);
  if (file == nullptr) return std::nullopt;
  return LoadTopology(ProtoCursor(*file), diagnostics);
}

// Whether one of the sources may have been meant by what was found wrong.
bool HasDoubtfulSource(const ProtoCursor& fabric) {
  return fabric.IsDoubtful("preset") || fabric.IsDoubtful("rail_optimized") ||
         fabric.IsDoubtful("file");
}

std::optional<FabricGraph> LoadSource(const ProtoCursor& fabric, Diagnostics& diagnostics) {
  if (fabric.Has("preset")) return LoadPreset(fabric, diagnostics);
  if (fabric.Has("rail_optimized")) {
    return LoadRailOptimized(fabric.Child("rail_optimized"), diagnostics);
  }
  if (fabric.Has("file")) return LoadTopologyFile(fabric, diagnostics);
  if (!HasDoubtfulSource(fabric)) {
    diagnostics.Error(fabric.WhereSelf(), fabric.PathSelf(),
                      "empty (expected preset, rail_optimized or file)");
  }
  return std::nullopt;
}

}  // namespace

std::optional<FabricGraph> LoadFabric(const ProtoCursor& fabric, Diagnostics& diagnostics) {
  auto graph = LoadSource(fabric, diagnostics);
  if (fabric.IsDoubtfulSelf()) return std::nullopt;
  return graph;
}

}  // namespace railyard
