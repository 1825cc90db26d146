// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/preset.h"

#include <array>

#include <fmt/format.h>

#include "topologies/rail_optimized.h"

namespace railyard {
namespace {

struct RailOptimizedPreset {
  const char* name;
  uint32_t servers;
};

constexpr std::array kRailOptimizedPresets = {
    RailOptimizedPreset{"h100-1x8", 1},
    RailOptimizedPreset{"h100-2x8-rail-optimized", 2},
    RailOptimizedPreset{"h100-4x8-rail-optimized", 4},
};

RailOptimizedSpec SpecOf(const RailOptimizedPreset& preset) {
  return {.name = preset.name, .servers = preset.servers};
}

std::string Describe(const RailOptimizedPreset& preset) {
  const RailOptimizedSpec spec = SpecOf(preset);
  return fmt::format(
      "{} DGX H100 server{} of {} GPUs and {} 400 Gb/s NICs, {} leaves (one per rail), {} spine{}",
      spec.servers, spec.servers == 1 ? "" : "s", spec.gpus_per_server, spec.gpus_per_server,
      spec.gpus_per_server, NonBlockingSpines(spec), NonBlockingSpines(spec) == 1 ? "" : "s");
}

}  // namespace

const std::vector<Preset>& Presets() {
  static const std::vector<Preset> kPresets = [] {
    std::vector<Preset> presets;
    for (const RailOptimizedPreset& preset : kRailOptimizedPresets) {
      presets.push_back({.name = preset.name, .description = Describe(preset)});
    }
    return presets;
  }();
  return kPresets;
}

std::optional<FabricGraph> MakePreset(const std::string& name) {
  for (const RailOptimizedPreset& preset : kRailOptimizedPresets) {
    if (preset.name == name) return MakeRailOptimized(SpecOf(preset));
  }
  return std::nullopt;
}

}  // namespace railyard
