// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/fabric_argument_loader.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/names.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/formats/fabric_file_loader.h"
#include "topologies/formats/topology.pb.h"
#include "topologies/formats/topology_loader.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/platforms/platform.h"
#include "topologies/platforms/preset.h"

namespace railyard {
namespace {

std::optional<FabricGraph> ReferenceFabric(const std::string& argument, uint32_t servers,
                                           Diagnostics& diagnostics) {
  const Platform* const shipped = FindPlatform(argument);
  const std::optional<Platform> platform =
      shipped != nullptr ? *shipped : LoadPlatform(argument, diagnostics);
  if (!platform) return std::nullopt;
  SourceLocation where = {.file = argument};
  if (shipped == nullptr) where = {.file = argument, .line = 1, .column = 1};
  if (!platform->open_fields.empty()) {
    diagnostics.Error(where, "",
                      fmt::format("leaves {} to its user (expected a platform file or a fabric "
                                  "with servers {{ }} that states them)",
                                  fmt::join(platform->open_fields, ", ")));
    return std::nullopt;
  }
  RailOptimizedSpec spec;
  spec.name = fmt::format("{}x-{}", servers, platform->name);
  spec.mixed_servers.assign(servers, platform->server);
  const std::vector<SpecProblem> problems = CheckRailOptimized(spec);
  for (const SpecProblem& problem : problems) {
    diagnostics.Error(where, "", problem.what);
  }
  if (!problems.empty()) return std::nullopt;
  return MakeRailOptimized(spec);
}

}  // namespace

bool IsPlatformArgument(const std::string& argument) {
  if (FindPlatform(argument) != nullptr) return true;
  return IsPlatformFile(argument) && WhyNotAFile(argument).empty() &&
         FormatOfFabricFile(argument) == FabricFileFormat::kPlatformText;
}

std::optional<FabricGraph> LoadFabricArgument(const std::string& argument, Diagnostics& diagnostics,
                                              uint32_t servers) {
  if (auto preset = MakePreset(argument)) return preset;
  if (IsPlatformArgument(argument)) return ReferenceFabric(argument, servers, diagnostics);
  if (const std::string why = WhyNotAFile(argument); !why.empty()) {
    std::vector<std::string> names = PlatformNames();
    for (const Preset& preset : Presets()) names.push_back(preset.name);
    diagnostics.Error({.file = argument}, "",
                      fmt::format("neither a preset, a platform nor a file: {}{}", why,
                                  DidYouMean(argument, names)));
    return std::nullopt;
  }
  const FabricFileFormat format = FormatOfFabricFile(argument);
  if (format != FabricFileFormat::kFabricText) {
    return LoadFabricFile(argument, format, diagnostics);
  }
  const auto file = LoadTextProto(argument, protos::Fabric(), {}, diagnostics);
  return file == nullptr ? std::nullopt
                         : LoadFabric(ProtoCursor(*file), diagnostics, FabricUse::kShow);
}

}  // namespace railyard
