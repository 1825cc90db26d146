// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/fabric_option.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/cli/cli.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "simulator/measure/perf_point.h"
#include "simulator/scenario/models/calibration_loader.h"
#include "simulator/scenario/models/net_loader.h"
#include "simulator/scenario/schema/scenario.pb.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/formats/fabric_argument_loader.h"
#include "topologies/formats/fabric_file_loader.h"
#include "topologies/formats/topology_loader.h"
#include "topologies/platforms/platform.h"
#include "topologies/platforms/preset.h"

namespace railyard {
namespace {

constexpr uint32_t kNodesMax = 4096;

// Empty where the number of servers may be asked for.
std::string WhyNotNodes(const std::string& fabric, uint32_t nodes) {
  if (nodes < 1 || nodes > kNodesMax) {
    return fmt::format("{} (expected 1 to {})", nodes, kNodesMax);
  }
  if (nodes == 1 || IsPlatformArgument(fabric)) return {};
  return fmt::format(
      "means something for a platform only (expected {} or a platform file as the fabric)",
      JoinAlternatives(PlatformNames()));
}

std::optional<FabricOption> OptionOfPlatform(const std::string& fabric, uint32_t nodes,
                                             NetworkKind network, Diagnostics& diagnostics) {
  const Platform* const shipped = FindPlatform(fabric);
  const std::optional<Platform> platform =
      shipped != nullptr ? *shipped : LoadPlatform(fabric, diagnostics);
  if (!platform) return std::nullopt;
  if (!platform->open_fields.empty()) {
    PrintError(fmt::format(
        "--fabric: platform {} leaves {} to its user (expected a fabric file or a custom platform "
        "file that states them)",
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

// Only platform files are calibrated.
PlatformCalibration CalibrationOfArgument(const std::string& fabric) {
  if (!IsPlatformArgument(fabric) || FindPlatform(fabric) != nullptr) return {};
  Diagnostics reported_before;
  const auto platform = LoadPlatform(fabric, reported_before);
  return platform ? platform->calibration : PlatformCalibration();
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
  if (const std::string why = WhyNotNodes(fabric, nodes); !why.empty()) {
    PrintError("--nodes: " + why);
    return std::nullopt;
  }
  Diagnostics diagnostics;
  if (IsPlatformArgument(fabric)) {
    auto option = OptionOfPlatform(fabric, nodes, network, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    return option;
  }
  const auto graph = LoadFabricArgument(fabric, diagnostics);
  fmt::print(stderr, "{}", diagnostics.ToString());
  if (!graph) return std::nullopt;
  FabricOption option{.scenario = PerfPoint::CommandScenario(),
                      .name = fabric,
                      .gpus = static_cast<uint32_t>(graph->gpus().size())};
  const bool is_preset =
      std::ranges::any_of(Presets(), [&](const Preset& preset) { return preset.name == fabric; });
  if (is_preset) {
    option.scenario.Preset(fabric);
  } else {
    option.scenario.FabricFile(std::filesystem::absolute(fabric).string());
  }
  return option;
}

std::optional<ShownFabric> LoadShownFabric(const std::string& fabric, uint32_t nodes,
                                           Diagnostics& diagnostics) {
  if (const std::string why = WhyNotNodes(fabric, nodes); !why.empty()) {
    diagnostics.Error({.file = "--nodes"}, "", why);
    return std::nullopt;
  }
  if (!WhyNotAFile(fabric).empty() ||
      FormatOfFabricFile(fabric) != FabricFileFormat::kScenarioText) {
    auto graph = LoadFabricArgument(fabric, diagnostics, nodes);
    if (!graph) return std::nullopt;
    return ShownFabric{std::move(*graph), CalibrationOfArgument(fabric)};
  }
  const auto file = LoadTextProto(fabric, protos::Scenario(), {}, diagnostics);
  if (file == nullptr) return std::nullopt;
  const ProtoCursor cursor = ProtoCursor(*file).Child("fabric");
  auto graph = LoadFabric(cursor, diagnostics, FabricUse::kShow);
  if (!graph) return std::nullopt;
  const auto platform = CalibratedPlatformOf(cursor, diagnostics);
  return ShownFabric{std::move(*graph), platform ? platform->calibration : PlatformCalibration()};
}

}  // namespace railyard
