// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/fabric_argument_loader.h"

#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/diagnostics/text_proto.h"
#include "topologies/fabric_file_loader.h"
#include "topologies/preset.h"
#include "topologies/topology.pb.h"
#include "topologies/topology_loader.h"

namespace railyard {

std::optional<FabricGraph> LoadFabricArgument(const std::string& argument,
                                              Diagnostics& diagnostics) {
  if (auto preset = MakePreset(argument)) return preset;
  if (const std::string why = WhyNotAFile(argument); !why.empty()) {
    std::vector<std::string> names;
    for (const Preset& preset : Presets()) names.push_back(preset.name);
    diagnostics.Error(
        {.file = argument}, "",
        fmt::format("neither a preset nor a file: {}{}", why, DidYouMean(argument, names)));
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
