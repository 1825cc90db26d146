// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/graphml_loader.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/formats/file_size.h"
#include "topologies/formats/topology_file_loader.h"
#include "topologies/formats/topology_message_loader.h"
#include "topologies/formats/xml_stream.h"
#include "topologies/graph/spec_check.h"

namespace railyard {
namespace {

using Part = TopologyMessage::Part;

constexpr size_t kGraphMlTextBytesMax = 4'096;  // of one value
constexpr int kGraphMlFindingsMax = 100;

class GraphMlReader {
 public:
  GraphMlReader(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics), message_(path), xml_(path) {}

  std::optional<FabricGraph> Read() {
    const int errors_before = diagnostics_.error_count();
    XmlStream::Kind kind = xml_.Next();
    for (; kind != XmlStream::Kind::kOver && !is_over_; kind = xml_.Next()) ReadNode(kind);
    if (xml_.has_error()) {
      Error(xml_.error().line, fmt::format("{} (expected GraphML)", xml_.error().what),
            xml_.error().column);
    } else if (!is_over_ && graphs_ == 0) {
      Error(1, "there is no graph (expected <graphml> with a <graph>)");
    }
    if (diagnostics_.error_count() > errors_before) return std::nullopt;
    return message_.Load(diagnostics_);
  }

 private:
  struct Key {
    std::string part;       // "graph", "node", "edge"
    std::string attribute;  // of ours, or empty
  };

  void Error(int line, std::string what, int column = 0) {
    diagnostics_.Error({.file = path_, .line = line, .column = column}, "", std::move(what));
    if (++errors_ >= kGraphMlFindingsMax) is_over_ = true;
  }

  static std::string_view NameOf(Part part) {
    switch (part) {
      case Part::kDevice:
        return "node";
      case Part::kLink:
        return "edge";
      case Part::kFabric:
        break;
    }
    return "graph";
  }

  void ReadNode(XmlStream::Kind kind) {
    switch (kind) {
      case XmlStream::Kind::kStart:
        StartElement(xml_.name());
        break;
      case XmlStream::Kind::kEnd:
        EndElement(xml_.name());
        break;
      case XmlStream::Kind::kText:
        AddText();
        break;
      case XmlStream::Kind::kEntity:
        Error(xml_.line(), fmt::format("entity {} (expected plain text)", Quote(xml_.name())));
        break;
      case XmlStream::Kind::kDocumentType:
      case XmlStream::Kind::kOver:
        break;
    }
  }

  void AddText() {
    if (key_ == nullptr) return;
    text_ += xml_.text();
    if (text_.size() <= kGraphMlTextBytesMax) return;
    Error(xml_.line(), fmt::format("a value of more than {} bytes", kGraphMlTextBytesMax));
    is_over_ = true;
  }

  void StartElement(const std::string& name) {
    if (key_ != nullptr) {
      Error(xml_.line(), fmt::format("{} in data (expected a text)", Quote(name)));
      key_ = nullptr;
    }
    if ((name == "node" || name == "edge") && part_ != Part::kFabric) {
      Error(xml_.line(), fmt::format("{} in a {} (expected nodes and edges in the graph alone)",
                                     Quote(name), NameOf(part_)));
    }
    if (name == "key") {
      AddKey();
    } else if (name == "graph") {
      if (++graphs_ > 1) Error(xml_.line(), "a second graph (expected one, not nested)");
      part_ = Part::kFabric;
    } else if (name == "node") {
      StartNode();
    } else if (name == "edge") {
      StartEdge();
    } else if (name == "data") {
      StartData();
    } else if (name == "hyperedge" || name == "port") {
      Error(xml_.line(), fmt::format("a {} (expected nodes and edges only)", name));
    }
  }

  void EndElement(const std::string& name) {
    if (name == "data" && key_ != nullptr) {
      SetValue();
    } else if (name == "node") {
      if (!message_.Has(Part::kDevice, "name")) message_.Set(Part::kDevice, "name", id_);
      name_of_id_.emplace(id_, message_.DeviceName());
      part_ = Part::kFabric;
    } else if (name == "edge") {
      part_ = Part::kFabric;
    }
  }

  void AddKey() {
    const std::string id = xml_.Attribute("id");
    Key key = {.part = xml_.Attribute("for"), .attribute = xml_.Attribute("attr.name")};
    if (key.attribute.empty()) key.attribute = id;
    const bool is_known = (key.part == "node" && message_.Knows(Part::kDevice, key.attribute)) ||
                          (key.part == "edge" && message_.Knows(Part::kLink, key.attribute)) ||
                          (key.part == "graph" && message_.Knows(Part::kFabric, key.attribute));
    if (!is_known) {
      diagnostics_.Warning(
          {.file = path_, .line = xml_.line(), .column = 0}, "",
          fmt::format("attribute {} of {} is not used", Quote(key.attribute), Quote(key.part)));
      key.attribute.clear();
    }
    if (!keys_.emplace(id, std::move(key)).second) {
      Error(xml_.line(), fmt::format("there is already a key {}", Quote(id)));
    }
  }

  void StartNode() {
    id_ = xml_.Attribute("id");
    if (message_.device_count() >= kMaxTopologyDevices) {
      Error(xml_.line(), fmt::format("more than {} nodes", kMaxTopologyDevices));
      is_over_ = true;
    } else if (id_.empty()) {
      Error(xml_.line(), "a node without an id");
    } else if (!line_of_node_.emplace(id_, xml_.line()).second) {
      Error(xml_.line(), fmt::format("there is already a node {}, at line {}", Quote(id_),
                                     line_of_node_.at(id_)));
    }
    message_.StartDevice(xml_.line());
    part_ = Part::kDevice;
  }

  void StartEdge() {
    if (message_.link_count() >= static_cast<int>(kMaxFabricCables)) {
      Error(xml_.line(), fmt::format("more than {} edges", kMaxFabricCables));
      is_over_ = true;
    }
    message_.StartLink(xml_.line());
    part_ = Part::kLink;
    for (const auto& [attribute, field] : {std::pair{"source", "from"}, {"target", "to"}}) {
      const std::string id = xml_.Attribute(attribute);
      const auto found = name_of_id_.find(id);
      if (found == name_of_id_.end()) {
        Error(xml_.line(),
              fmt::format("{} {} is no node above (expected a node's id)", attribute, Quote(id)));
      } else {
        message_.Set(Part::kLink, field, found->second);
      }
    }
  }

  void StartData() {
    const auto found = keys_.find(xml_.Attribute("key"));
    if (found == keys_.end()) {
      Error(xml_.line(),
            fmt::format("data of key {}, which is not declared", Quote(xml_.Attribute("key"))));
      return;
    }
    if (found->second.part != NameOf(part_)) {
      Error(xml_.line(), fmt::format("key {} is for {}, not for {}", Quote(found->first),
                                     Quote(found->second.part), NameOf(part_)));
      return;
    }
    text_.clear();
    key_ = &found->second;
  }

  void SetValue() {
    const Key& key = *key_;
    key_ = nullptr;
    if (key.attribute.empty() || text_.empty()) return;
    if (message_.Has(part_, key.attribute)) {
      Error(xml_.line(), fmt::format("{} is given twice", key.attribute));
    } else if (std::string what = message_.Set(part_, key.attribute, text_); !what.empty()) {
      Error(xml_.line(), std::move(what));
    }
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  TopologyMessage message_;
  XmlStream xml_;
  int errors_ = 0;
  bool is_over_ = false;
  int graphs_ = 0;
  Part part_ = Part::kFabric;
  std::map<std::string, Key> keys_;
  std::string id_;  // of the node that is being read
  std::unordered_map<std::string, std::string> name_of_id_;
  std::unordered_map<std::string, int> line_of_node_;
  const Key* key_ = nullptr;  // of the data that are being read
  std::string text_;
};

}  // namespace

std::optional<FabricGraph> LoadGraphMl(const std::string& path, Diagnostics& diagnostics) {
  if (!IsWithinSize(path, kGraphFileBytesMax, diagnostics)) return std::nullopt;
  return GraphMlReader(path, diagnostics).Read();
}

}  // namespace railyard
