// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/topology_loader.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "topologies/formats/fabric_file_loader.h"
#include "topologies/formats/generator_loader.h"
#include "topologies/formats/topology.pb.h"
#include "topologies/measures/runnable.h"
#include "topologies/platforms/platform.h"

namespace railyard {
namespace {

std::string UnknownPreset(const std::string& name) {
  if (FindPlatform(name) != nullptr) {
    return fmt::format(
        "{0} is a platform, not a preset (expected e.g. rail_optimized {{ mixed_servers {{ count: "
        "2 platform: {0} }} }})",
        Quote(name));
  }
  std::vector<std::string> names;
  for (const Preset& preset : Presets()) names.push_back(preset.name);
  const std::string suggestion = DidYouMean(name, names);
  return fmt::format("unknown preset {}{}", Quote(name),
                     suggestion.empty() ? " (railyard list presets lists them)" : suggestion);
}

std::optional<FabricGraph> LoadPreset(const ProtoCursor& fabric, Diagnostics& diagnostics) {
  const std::string name = fabric.Text("preset", "");
  auto graph = MakePreset(name);
  if (!graph) fabric.Error(diagnostics, "preset", UnknownPreset(name));
  return graph;
}

std::optional<FabricGraph> LoadTopologyFile(const ProtoCursor& fabric, Diagnostics& diagnostics) {
  const std::string path = fabric.FilePath("file");
  if (const std::string why = WhyNotAFile(path); !why.empty()) {
    fabric.Error(diagnostics, "file", fmt::format("{}: {}", Quote(path), why));
    return std::nullopt;
  }
  const FabricFileFormat format = FormatOfFabricFile(path);
  // Errors in a text of unknown kind are reported as those of a topology.
  return LoadFabricFile(
      path, format == FabricFileFormat::kFabricText ? FabricFileFormat::kTopologyText : format,
      diagnostics);
}

// Returns whether one of the sources may have been meant by what was found wrong.
bool HasDoubtfulSource(const ProtoCursor& fabric) {
  const std::vector<std::string>& generators = GeneratorNames();
  return fabric.IsDoubtful("preset") || fabric.IsDoubtful("file") ||
         std::any_of(generators.begin(), generators.end(), [&](const std::string& generator) {
           return fabric.IsDoubtful(generator.c_str());
         });
}

std::optional<FabricGraph> LoadSource(const ProtoCursor& fabric, Diagnostics& diagnostics) {
  if (fabric.Has("preset")) return LoadPreset(fabric, diagnostics);
  if (fabric.Has("file")) return LoadTopologyFile(fabric, diagnostics);
  if (NamesGenerator(fabric)) return LoadGenerator(fabric, diagnostics);
  if (!HasDoubtfulSource(fabric)) {
    diagnostics.Error(
        fabric.WhereSelf(), fabric.PathSelf(),
        fmt::format("empty (expected preset, file, {})", JoinAlternatives(GeneratorNames())));
  }
  return std::nullopt;
}

}  // namespace

std::optional<FabricGraph> LoadFabric(const ProtoCursor& fabric, Diagnostics& diagnostics,
                                      FabricUse use) {
  auto graph = LoadSource(fabric, diagnostics);
  if (fabric.IsDoubtfulSelf()) return std::nullopt;
  if (!graph || use == FabricUse::kShow) return graph;
  if (!CanRun(*graph, fabric, diagnostics)) return std::nullopt;
  return graph;
}

bool CanRun(const FabricGraph& graph, const ProtoCursor& fabric, Diagnostics& diagnostics) {
  bool can_run = true;
  for (const RunObstacle& obstacle : FindRunObstacles(graph)) {
    if (obstacle.is_error) {
      diagnostics.Error(fabric.WhereSelf(), fabric.PathSelf(), obstacle.what);
      can_run = false;
    } else {
      diagnostics.Warning(fabric.WhereSelf(), fabric.PathSelf(), obstacle.what);
    }
  }
  return can_run;
}

}  // namespace railyard
