// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/fabric_file_loader.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/checked_reading.h"
#include "simulator/diagnostics/names.h"
#include "simulator/text_proto/text_proto.h"
#include "simulator/text_proto/text_proto_check.h"
#include "topologies/formats/graphml_loader.h"
#include "topologies/formats/graphviz_loader.h"
#include "topologies/formats/nccl_topology_loader.h"
#include "topologies/formats/ns3_topology_loader.h"
#include "topologies/formats/topology.pb.h"
#include "topologies/formats/topology_file_loader.h"
#include "topologies/graph/fabric_builder.h"
#include "topologies/platforms/platform.h"
#include "topologies/platforms/platform.pb.h"

namespace railyard {
namespace {

constexpr size_t kHeadBytes = 65'536;

std::string HeadOf(const std::string& path) {
  std::ifstream file = OpenToRead(path);
  std::string head(kHeadBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  CheckReading(file, path);
  head.resize(static_cast<size_t>(file.gcount()));
  return head;
}

// The first word outside comments.
std::string FirstField(const std::string& head) {
  constexpr const char* kWord = "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  for (size_t start = 0; start < head.size();) {
    const size_t end = std::min(head.find('\n', start), head.size());
    const size_t first = head.find_first_not_of(" \t\r", start);
    if (first < end && head[first] != '#') {
      return head.substr(first, std::min(head.find_first_not_of(kWord, first), end) - first);
    }
    start = end + 1;
  }
  return {};
}

FabricGraph LoneServer(ServerSpec server, const std::string& path) {
  NetworkSpec network;
  network.name = std::filesystem::path(path).stem().string();
  network.servers = {std::move(server)};
  FabricBuilder builder(network);
  builder.AddServers();
  return std::move(builder).Take();
}

// Returns whether a field of that name stands outside of all brackets, comments and strings.
bool HasOuterField(const std::string& head, std::string_view name) {
  int depth = 0;
  char quote = 0;
  std::string word;
  for (size_t i = 0; i < head.size(); ++i) {
    const char c = head[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
      continue;
    }
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    if (depth == 0 && word == name) return true;
    word.clear();
    if (c == '"' || c == '\'') quote = c;
    if (c == '#') i = std::min(head.find('\n', i), head.size());
    if (c == '{' || c == '[' || c == '<') ++depth;
    if (c == '}' || c == ']' || c == '>') --depth;
  }
  return false;
}

bool BeginsWithFieldOf(const google::protobuf::Descriptor& message, const std::string& head) {
  const std::vector<std::string> fields = FieldNames(message);
  return std::find(fields.begin(), fields.end(), FirstField(head)) != fields.end();
}

}  // namespace

FabricFileFormat FormatOfFabricFile(const std::string& path) {
  const std::string head = HeadOf(path);
  if (std::filesystem::path(path).extension() == ".graphml") return FabricFileFormat::kGraphMl;
  const size_t first = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string::npos) return FabricFileFormat::kFabricText;
  if (head[first] == '<') {
    return head.find("<system") < head.find("<graphml") ? FabricFileFormat::kNcclTopology
                                                        : FabricFileFormat::kGraphMl;
  }
  if (std::isdigit(static_cast<unsigned char>(head[first])) != 0) {
    return FabricFileFormat::kNs3Topology;
  }
  const std::string word = FirstField(head.substr(first));
  if (head[first] == '/' || word == "graph" || word == "digraph" || word == "strict") {
    return FabricFileFormat::kGraphviz;
  }
  if (HasOuterField(head, "fabric")) return FabricFileFormat::kScenarioText;
  if (BeginsWithFieldOf(*protos::Topology::descriptor(), head)) {
    return FabricFileFormat::kTopologyText;
  }
  return BeginsWithFieldOf(*protos::Platform::descriptor(), head) ? FabricFileFormat::kPlatformText
                                                                  : FabricFileFormat::kFabricText;
}

std::optional<FabricGraph> LoadFabricFile(const std::string& path, FabricFileFormat format,
                                          Diagnostics& diagnostics) {
  switch (format) {
    case FabricFileFormat::kGraphMl:
      return LoadGraphMl(path, diagnostics);
    case FabricFileFormat::kGraphviz:
      return LoadGraphviz(path, diagnostics);
    case FabricFileFormat::kNs3Topology:
      return LoadNs3Topology(path, diagnostics);
    case FabricFileFormat::kNcclTopology: {
      auto layout = LoadNcclTopology(path, diagnostics);
      if (!layout) return std::nullopt;
      return LoneServer(ServerOf(std::move(*layout)), path);
    }
    case FabricFileFormat::kPlatformText: {
      const auto platform = LoadPlatform(path, diagnostics);
      if (!platform) return std::nullopt;
      if (!platform->open_fields.empty()) {
        diagnostics.Error({.file = path, .line = 1, .column = 1}, "",
                          fmt::format("leaves {} open (expected all numbers, or servers {{ }} that "
                                      "give them)",
                                      JoinAlternatives(platform->open_fields)));
        return std::nullopt;
      }
      return LoneServer(platform->server, path);
    }
    case FabricFileFormat::kTopologyText: {
      const auto file = LoadTextProto(path, protos::Topology(), {}, diagnostics);
      if (file == nullptr) return std::nullopt;
      return LoadTopology(ProtoCursor(*file), diagnostics);
    }
    case FabricFileFormat::kScenarioText:
      diagnostics.Error({.file = path, .line = 1, .column = 1}, "",
                        "is a scenario (expected a fabric, as railyard topo show SCENARIO --text "
                        "FABRIC writes it)");
      return std::nullopt;
    case FabricFileFormat::kFabricText:
      break;
  }
  SIM_CHECK(false, path + " holds no fabric but where to find one");
  return std::nullopt;
}

}  // namespace railyard
