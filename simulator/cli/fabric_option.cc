// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/fabric_option.h"

#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "simulator/diagnostics/text_proto.h"
#include "simulator/scenario/net_loader.h"
#include "topologies/fabric_argument_loader.h"
#include "topologies/fabric_file_loader.h"
#include "topologies/platform.h"
#include "topologies/preset.h"

namespace railyard {
namespace {

constexpr uint32_t kNodesMax = 4096;

void PrintError(const std::string& what) { fmt::print(stderr, "railyard: error: {}\n", what); }

bool IsOfPlatform(const std::string& fabric) {
  if (FindPlatform(fabric) != nullptr) return true;
  return IsPlatformFile(fabric) && WhyNotAFile(fabric).empty() &&
         FormatOfFabricFile(fabric) == FabricFileFormat::kPlatformText;
}

std::optional<FabricOption> OptionOfPlatform(const std::string& fabric, uint32_t nodes,
                                             NetworkKind network, Diagnostics& diagnostics) {
  const Platform* const shipped = FindPlatform(fabric);
  const std::optional<Platform> platform =
      shipped != nullptr ? *shipped : LoadPlatform(fabric, diagnostics);
  if (!platform) return std::nullopt;
  if (!platform->open_fields.empty()) {
    PrintError(fmt::format(
        "--fabric: platform {} leaves {} to its user (expected a fabric file or a platform file of "
        "one's own that states them)",
        Quote(platform->name), fmt::join(platform->open_fields, ", ")));
    return std::nullopt;
  }
  const std::string called =
      shipped != nullptr ? fabric : std::filesystem::absolute(fabric).string();
  return FabricOption{
      .scenario = ScenarioOf({.platform = called, .nodes = nodes, .network = network}),
      .name = fmt::format("{} x {}", nodes, platform->name),
      .gpus = platform->server.gpus * nodes};
}

}  // namespace

NetworkKind NetworkOf(const std::string& net) {
  switch (NetNamed(net).value_or(NetPlugin::kIb)) {
    case NetPlugin::kSocket:
      return NetworkKind::kSocket;
    case NetPlugin::kAwsLibfabric:
      return NetworkKind::kEfa;
    case NetPlugin::kIb:
      break;
  }
  return NetworkKind::kRoce;
}

void PrintNote(const std::string& note) {
  if (!note.empty()) fmt::print(stderr, "railyard: note: {}\n", note);
}

std::optional<FabricOption> ReadFabricOption(const std::string& fabric, uint32_t nodes,
                                             NetworkKind network) {
  if (nodes < 1 || nodes > kNodesMax) {
    PrintError(fmt::format("--nodes: {} (expected 1 to {})", nodes, kNodesMax));
    return std::nullopt;
  }
  Diagnostics diagnostics;
  if (IsOfPlatform(fabric)) {
    auto option = OptionOfPlatform(fabric, nodes, network, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    return option;
  }
  if (nodes != 1) {
    PrintError(
        fmt::format("--nodes: means something for a platform only (expected {} or a platform "
                    "file as --fabric)",
                    JoinAlternatives(PlatformNames())));
    return std::nullopt;
  }
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
