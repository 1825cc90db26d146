// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/fabric_argument_loader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/diagnostics/text_proto.h"
#include "simulator/diagnostics/text_proto_check.h"
#include "topologies/graphml_loader.h"
#include "topologies/preset.h"
#include "topologies/topology.pb.h"
#include "topologies/topology_file_loader.h"
#include "topologies/topology_loader.h"

namespace railyard {
namespace {

// The first word outside comments.
std::string FirstField(const std::string& path) {
  constexpr const char* kWord = "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    return line.substr(first, line.find_first_not_of(kWord, first) - first);
  }
  return {};
}

std::optional<FabricGraph> LoadText(const std::string& path, Diagnostics& diagnostics) {
  const std::vector<std::string> fields = FieldNames(*protos::Topology::descriptor());
  if (std::find(fields.begin(), fields.end(), FirstField(path)) != fields.end()) {
    const auto file = LoadTextProto(path, protos::Topology(), {}, diagnostics);
    return file == nullptr ? std::nullopt : LoadTopology(ProtoCursor(*file), diagnostics);
  }
  const auto file = LoadTextProto(path, protos::Fabric(), {}, diagnostics);
  return file == nullptr ? std::nullopt
                         : LoadFabric(ProtoCursor(*file), diagnostics, FabricUse::kShow);
}

}  // namespace

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
  const std::string extension = std::filesystem::path(argument).extension().string();
  if (extension == ".graphml" || extension == ".xml") return LoadGraphMl(argument, diagnostics);
  return LoadText(argument, diagnostics);
}

}  // namespace railyard
