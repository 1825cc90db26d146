// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_json.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/units/number.h"
#include "traces/reading/json_events.h"

namespace railyard {
namespace {

constexpr std::pair<std::string_view, ChakraNodeType> kTypeNames[] = {
    {"METADATA_NODE", ChakraNodeType::kMetadata},
    {"MEM_LOAD_NODE", ChakraNodeType::kMemoryLoad},
    {"MEM_STORE_NODE", ChakraNodeType::kMemoryStore},
    {"COMP_NODE", ChakraNodeType::kCompute},
    {"COMM_SEND_NODE", ChakraNodeType::kSend},
    {"COMM_RECV_NODE", ChakraNodeType::kRecv},
    {"COMM_COLL_NODE", ChakraNodeType::kCollective}};

// Nodes are the objects of the outermost array, or else the outermost objects. Within them fields
// stand directly, as both forms may have them, and in objects {"name": ..., "int64Val": ...} of
// the list "attr".
class NodeHandler {
 public:
  explicit NodeHandler(const std::function<void(const ChakraNode&)>& visit) : visit_(visit) {}

  void Key(std::string_view key) { key_ = key; }
  void Text(std::string_view value) {
    if (IsAttribute()) {
      if (key_ == "name") attribute_name_ = value;
      if (key_ == "stringVal" || key_ == "string_val") attribute_text_ = value;
    } else if (depth_ == NodeDepth() && IsKey({"Name", "name"})) {
      node_.name = value;
    } else if (depth_ == NodeDepth() && IsKey({"pg_name"})) {
      node_.group = value;
    } else if (depth_ == NodeDepth() && IsKey({"type", "NodeType"})) {
      is_node_ = true;
      for (const auto& [name, type] : kTypeNames) {
        if (name == value) node_.type = static_cast<uint64_t>(type);
      }
    }
    // protobuf's JSON has 64-bit numbers as strings.
    if (const auto number = NumberOf<uint64_t>(value)) TakeNumber(*number);
  }
  void Number(std::string_view text) {
    if (const auto number = NumberOf<uint64_t>(text)) {
      TakeNumber(*number);
    } else if (const auto negative = NumberOf<int64_t>(text)) {
      TakeNumber(static_cast<uint64_t>(*negative));
    } else {
      // A duration may be a fraction; beyond 2^53 a double is no exact number of anything.
      const double value = NumberOf<double>(text).value_or(-1);
      TakeNumber(value >= 0 && value < 9e15 ? static_cast<uint64_t>(value) : UINT64_MAX);
    }
  }
  void Open(bool is_object) {
    if (!is_object && depth_ == 1 && (key_ == "workload_graph" || key_ == "nodes")) in_list_ = true;
    if (!is_object && depth_ == NodeDepth()) list_key_ = key_;
    ++depth_;
    if (!is_object) return;
    if (depth_ == NodeDepth()) {
      node_ = {};
      is_node_ = false;
    }
    if (IsAttribute()) {
      attribute_name_.clear();
      attribute_text_.clear();
      flags_ = {};
    }
  }
  void Close(bool is_object) {
    if (is_object) {
      if (IsAttribute()) TakeAttribute();
      if (depth_ == NodeDepth() && std::exchange(is_node_, false)) visit_(node_);
    }
    --depth_;
    if (!is_object && depth_ == NodeDepth()) list_key_.clear();
    if (depth_ <= 1) in_list_ = false;
  }
  void Bool(bool value) { TakeNumber(value ? 1 : 0); }
  void Other() {}

 private:
  struct Flags {
    bool has_false = false;
    std::optional<uint64_t> number;
  };

  int NodeDepth() const { return in_list_ ? 3 : 1; }
  bool IsAttribute() const { return depth_ == NodeDepth() + 2 && list_key_ == "attr"; }
  bool IsKey(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (key_ == name) return true;
    }
    return false;
  }

  void TakeNumber(uint64_t value) {
    if (depth_ == NodeDepth() + 1) {
      if (list_key_ == "data_deps" || list_key_ == "dataDeps") node_.data_deps.push_back(value);
      if (list_key_ == "ctrl_deps" || list_key_ == "ctrlDeps") node_.ctrl_deps.push_back(value);
      if (list_key_ == "involved_dim" && value == 0) node_.leaves_out_dimension = true;
    } else if (IsAttribute()) {
      flags_.number = value;
    } else if (depth_ > NodeDepth() + 2 && list_key_ == "attr") {
      flags_.has_false |= value == 0;
    } else if (depth_ == NodeDepth()) {
      TakeField(value);
    }
  }

  void TakeField(uint64_t value) {
    if (IsKey({"Id", "id"})) {
      node_.id = value;
      is_node_ = true;
    } else if (IsKey({"NodeType", "type"})) {
      node_.type = value;
      is_node_ = true;
    } else if (IsKey({"runtime", "duration_micros", "durationMicros"})) {
      node_.duration_us = value;
    } else {
      TakeNamed(key_, value);
    }
  }

  void TakeNamed(std::string_view name, uint64_t value) {
    if (name == "pg_name") node_.group = std::to_string(value);
    if (name == "comm_type") node_.comm_type = value;
    if (name == "comm_size") node_.comm_size = value;
    if (name == "comm_src") node_.comm_src = value;
    if (name == "comm_dst") node_.comm_dst = value;
    if (name == "comm_tag") node_.comm_tag = value;
    if (name == "root" || name == "comm_root" || name == "root_rank") node_.root = value;
    if (name == "is_cpu_op") node_.is_cpu_op = value != 0;
  }

  void TakeAttribute() {
    if (attribute_name_ == "pg_name") node_.group = attribute_text_;
    if (attribute_name_ == "involved_dim") node_.leaves_out_dimension = flags_.has_false;
    if (flags_.number) TakeNamed(attribute_name_, *flags_.number);
  }

  const std::function<void(const ChakraNode&)>& visit_;
  int depth_ = 0;
  bool in_list_ = false;
  std::string key_;
  std::string list_key_;  // of the array within the node
  ChakraNode node_;
  // It has an id or a type. protobuf's JSON leaves out numbers that are 0, also the id of a node.
  bool is_node_ = false;
  std::string attribute_name_;
  std::string attribute_text_;
  Flags flags_;
};

}  // namespace

bool ReadChakraJson(InputStream& stream, const std::function<void(const ChakraNode&)>& visit,
                    Diagnostics& diagnostics) {
  JsonBytes bytes(stream);
  NodeHandler handler(visit);
  // Several documents may follow one another.
  for (bytes.SkipWhitespace(); !bytes.IsAtEnd(); bytes.SkipWhitespace()) {
    if (!JsonEvents(bytes, handler).Parse(stream.name(), diagnostics)) return false;
  }
  return true;
}

}  // namespace railyard
