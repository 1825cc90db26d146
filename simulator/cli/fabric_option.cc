// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/fabric_option.h"

#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "simulator/perf/platform_scenario.h"
#include "topologies/fabric_argument_loader.h"
#include "topologies/platform.h"
#include "topologies/preset.h"

namespace railyard {
namespace {

constexpr uint32_t kNodesMax = 4096;

std::string PlatformNames() {
  std::vector<std::string> names;
  for (const Platform& platform : Platforms()) names.emplace_back(platform.name);
  return JoinAlternatives(names);
}

void PrintError(const std::string& what) { fmt::print(stderr, "railyard: error: {}\n", what); }

}  // namespace

std::optional<FabricOption> ReadFabricOption(const std::string& fabric, uint32_t nodes) {
  if (nodes < 1 || nodes > kNodesMax) {
    PrintError(fmt::format("--nodes: {} (expected 1 to {})", nodes, kNodesMax));
    return std::nullopt;
  }
  if (const auto platform = FindPlatform(fabric)) {
    return FabricOption{.scenario = ScenarioOf({.platform = fabric, .nodes = nodes}),
                        .name = fmt::format("{} x {}", nodes, fabric),
                        .gpus = platform->gpus * nodes};
  }
  if (nodes != 1) {
    PrintError("--nodes: means something for a platform only (expected " + PlatformNames() +
               " as --fabric)");
    return std::nullopt;
  }
  Diagnostics diagnostics;
  const auto graph = LoadFabricArgument(fabric, diagnostics);
  fmt::print(stderr, "{}", diagnostics.ToString());
  if (!graph) return std::nullopt;
  FabricOption option;
  option.name = fabric;
  option.gpus = static_cast<uint32_t>(graph->gpus().size());
  option.scenario =
      fmt::format("fabric {{ file: \"{}\" }}\n", std::filesystem::absolute(fabric).string());
  for (const Preset& preset : Presets()) {
    if (preset.name == fabric)
      option.scenario = fmt::format("fabric {{ preset: \"{}\" }}\n", fabric);
  }
  return option;
}

}  // namespace railyard
