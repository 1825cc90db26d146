// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/graphml_loader.h"

#include <algorithm>
#include <filesystem>
#include <libxml/xmlreader.h>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/text_proto/text_proto.h"
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
      : path_(path), diagnostics_(diagnostics), message_(path) {}

  std::optional<FabricGraph> Read() {
    const int errors_before = diagnostics_.error_count();
    XmlError::TakeOthers();
    reader_.reset(xmlReaderForFile(path_.c_str(), nullptr, XML_PARSE_NONET | XML_PARSE_BIG_LINES));
    if (reader_ == nullptr) throw EnvironmentError(fmt::format("cannot read {}", path_));
    xmlTextReaderSetStructuredErrorHandler(reader_.get(), &XmlError::Keep, &xml_error_);
    int status = xmlTextReaderRead(reader_.get());
    for (; status == 1 && !is_over_; status = xmlTextReaderRead(reader_.get())) ReadNode();
    if (status < 0 && xml_error_.what.empty()) xml_error_.what = "not readable as XML";
    if (!xml_error_.what.empty())
      Error(xml_error_.line, fmt::format("{} (expected GraphML)", xml_error_.what),
            xml_error_.column);
    if (xml_error_.what.empty() && !is_over_ && graphs_ == 0) {
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

  // Returns the line of the element that is being read; at its end, the line where it began.
  int Line() const {
    return static_cast<int>(xmlGetLineNo(xmlTextReaderCurrentNode(reader_.get())));
  }

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

  std::string Attribute(const char* name) const {
    const std::unique_ptr<xmlChar, decltype(xmlFree)> value(
        xmlTextReaderGetAttribute(reader_.get(), reinterpret_cast<const xmlChar*>(name)), xmlFree);
    return value == nullptr ? std::string() : reinterpret_cast<const char*>(value.get());
  }

  void ReadNode() {
    const int type = xmlTextReaderNodeType(reader_.get());
    const auto* raw_name = xmlTextReaderConstLocalName(reader_.get());
    const std::string name = raw_name == nullptr ? "" : reinterpret_cast<const char*>(raw_name);
    const bool is_text = type == XML_READER_TYPE_TEXT || type == XML_READER_TYPE_CDATA;
    if (is_text && key_ != nullptr) {
      text_ += reinterpret_cast<const char*>(xmlTextReaderConstValue(reader_.get()));
      if (text_.size() > kGraphMlTextBytesMax) {
        Error(Line(), fmt::format("a value of more than {} bytes", kGraphMlTextBytesMax));
        is_over_ = true;
      }
    } else if (type == XML_READER_TYPE_ENTITY_REFERENCE) {
      Error(Line(), fmt::format("entity {} (expected plain text)", Quote(name)));
    } else if (type == XML_READER_TYPE_ELEMENT) {
      StartElement(name);
      if (xmlTextReaderIsEmptyElement(reader_.get()) == 1) EndElement(name);
    } else if (type == XML_READER_TYPE_END_ELEMENT) {
      EndElement(name);
    }
  }

  void StartElement(const std::string& name) {
    if (key_ != nullptr) {
      Error(Line(), fmt::format("{} in data (expected a text)", Quote(name)));
      key_ = nullptr;
    }
    if ((name == "node" || name == "edge") && part_ != Part::kFabric) {
      Error(Line(), fmt::format("{} in a {} (expected nodes and edges in the graph alone)",
                                Quote(name), NameOf(part_)));
    }
    if (name == "key") {
      AddKey();
    } else if (name == "graph") {
      if (++graphs_ > 1) Error(Line(), "a second graph (expected one, not nested)");
      part_ = Part::kFabric;
    } else if (name == "node") {
      StartNode();
    } else if (name == "edge") {
      StartEdge();
    } else if (name == "data") {
      StartData();
    } else if (name == "hyperedge" || name == "port") {
      Error(Line(), fmt::format("a {} (expected nodes and edges only)", name));
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
    const std::string id = Attribute("id");
    Key key = {.part = Attribute("for"), .attribute = Attribute("attr.name")};
    if (key.attribute.empty()) key.attribute = id;
    const bool is_known = (key.part == "node" && message_.Knows(Part::kDevice, key.attribute)) ||
                          (key.part == "edge" && message_.Knows(Part::kLink, key.attribute)) ||
                          (key.part == "graph" && message_.Knows(Part::kFabric, key.attribute));
    if (!is_known) {
      diagnostics_.Warning(
          {.file = path_, .line = Line(), .column = 0}, "",
          fmt::format("attribute {} of {} is not used", Quote(key.attribute), Quote(key.part)));
      key.attribute.clear();
    }
    if (!keys_.emplace(id, std::move(key)).second) {
      Error(Line(), fmt::format("there is already a key {}", Quote(id)));
    }
  }

  void StartNode() {
    id_ = Attribute("id");
    if (message_.device_count() >= kMaxTopologyDevices) {
      Error(Line(), fmt::format("more than {} nodes", kMaxTopologyDevices));
      is_over_ = true;
    } else if (id_.empty()) {
      Error(Line(), "a node without an id");
    } else if (!line_of_node_.emplace(id_, Line()).second) {
      Error(Line(), fmt::format("there is already a node {}, at line {}", Quote(id_),
                                line_of_node_.at(id_)));
    }
    message_.StartDevice(Line());
    part_ = Part::kDevice;
  }

  void StartEdge() {
    if (message_.link_count() >= static_cast<int>(kMaxFabricCables)) {
      Error(Line(), fmt::format("more than {} edges", kMaxFabricCables));
      is_over_ = true;
    }
    message_.StartLink(Line());
    part_ = Part::kLink;
    for (const auto& [attribute, field] : {std::pair{"source", "from"}, {"target", "to"}}) {
      const std::string id = Attribute(attribute);
      const auto found = name_of_id_.find(id);
      if (found == name_of_id_.end()) {
        Error(Line(),
              fmt::format("{} {} is no node above (expected a node's id)", attribute, Quote(id)));
      } else {
        message_.Set(Part::kLink, field, found->second);
      }
    }
  }

  void StartData() {
    const auto found = keys_.find(Attribute("key"));
    if (found == keys_.end()) {
      Error(Line(), fmt::format("data of key {}, which is not declared", Quote(Attribute("key"))));
      return;
    }
    if (found->second.part != NameOf(part_)) {
      Error(Line(), fmt::format("key {} is for {}, not for {}", Quote(found->first),
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
      Error(Line(), fmt::format("{} is given twice", key.attribute));
    } else if (std::string what = message_.Set(part_, key.attribute, text_); !what.empty()) {
      Error(Line(), std::move(what));
    }
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  TopologyMessage message_;
  std::unique_ptr<xmlTextReader, decltype(&xmlFreeTextReader)> reader_{nullptr, xmlFreeTextReader};
  XmlError xml_error_;
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
  std::error_code failure;
  const uint64_t bytes = std::filesystem::file_size(path, failure);
  if (!failure && bytes > kGraphFileBytesMax) {
    diagnostics.Error({.file = path, .line = 1, .column = 1}, "",
                      fmt::format("{} bytes (expected at most {})", bytes, kGraphFileBytesMax));
    return std::nullopt;
  }
  return GraphMlReader(path, diagnostics).Read();
}

}  // namespace railyard
