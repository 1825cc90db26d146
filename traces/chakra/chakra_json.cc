// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_json.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include "simulator/units/number.h"

namespace railyard {
namespace {

constexpr int kDepthMax = 64;
constexpr size_t kTokenBytesMax = size_t{64} << 20;  // what rapidjson may have to hold at once

constexpr std::pair<std::string_view, ChakraNodeType> kTypeNames[] = {
    {"METADATA_NODE", ChakraNodeType::kMetadata},
    {"MEM_LOAD_NODE", ChakraNodeType::kMemoryLoad},
    {"MEM_STORE_NODE", ChakraNodeType::kMemoryStore},
    {"COMP_NODE", ChakraNodeType::kCompute},
    {"COMM_SEND_NODE", ChakraNodeType::kSend},
    {"COMM_RECV_NODE", ChakraNodeType::kRecv},
    {"COMM_COLL_NODE", ChakraNodeType::kCollective}};

// The input stream of rapidjson.
class JsonBytes {
 public:
  using Ch = char;
  explicit JsonBytes(InputStream& stream) : stream_(stream) {}

  char Peek() {
    if (at_ == next_.size()) Fill();
    return next_.empty() ? '\0' : next_[at_];
  }
  char Take() {
    const char c = Peek();
    if (!next_.empty()) {
      ++at_;
      ++taken_;
    }
    return taken_ - token_begin_ > kTokenBytesMax ? '\0' : c;  // which no JSON has
  }
  // A token has been read.
  void EndToken() { token_begin_ = taken_; }
  size_t Tell() const { return taken_; }
  bool IsAtEnd() {
    Peek();
    return next_.empty();
  }
  // The writing half of rapidjson's streams, which parsing from one does not use.
  char* PutBegin() { return nullptr; }
  void Put(char) {}
  void Flush() {}
  size_t PutEnd(char*) { return 0; }

 private:
  void Fill() {
    stream_.Skip(next_.size());
    at_ = 0;
    next_ = stream_.Peek();
  }

  InputStream& stream_;
  std::string_view next_;
  size_t at_ = 0;
  size_t taken_ = 0;
  size_t token_begin_ = 0;
};

// Nodes are the objects of the outermost array, or else the outermost objects. Within them fields
// stand directly, as both forms may have them, and in objects {"name": ..., "int64Val": ...} of
// the list "attr".
class NodeHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, NodeHandler> {
 public:
  NodeHandler(JsonBytes& bytes, const std::function<void(const ChakraNode&)>& visit)
      : bytes_(bytes), visit_(visit) {}

  bool StartObject() {
    if (depth_ >= kDepthMax) return false;
    ++depth_;
    bytes_.EndToken();
    if (depth_ == NodeDepth()) {
      node_ = {};
      is_node_ = false;
    }
    if (IsAttribute()) {
      attribute_name_.clear();
      attribute_text_.clear();
      flags_ = {};
    }
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    if (IsAttribute()) TakeAttribute();
    if (depth_ == NodeDepth() && std::exchange(is_node_, false)) visit_(node_);
    --depth_;
    if (depth_ <= 1) in_list_ = false;
    return true;
  }
  bool StartArray() {
    if (depth_ >= kDepthMax) return false;
    if (depth_ == 1 && (key_ == "workload_graph" || key_ == "nodes")) in_list_ = true;
    if (depth_ == NodeDepth()) list_key_ = key_;
    ++depth_;
    return true;
  }
  bool EndArray(rapidjson::SizeType) {
    --depth_;
    if (depth_ == NodeDepth()) list_key_.clear();
    if (depth_ == 1) in_list_ = false;
    return true;
  }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    bytes_.EndToken();
    key_.assign(text, size);
    return true;
  }
  bool Bool(bool value) { return Number(value ? 1 : 0); }
  bool Uint(unsigned value) { return Number(value); }
  bool Int(int value) { return Number(static_cast<uint64_t>(int64_t{value})); }
  bool Uint64(uint64_t value) { return Number(value); }
  bool Int64(int64_t value) { return Number(static_cast<uint64_t>(value)); }
  bool Double(double value) {
    // A duration may be a fraction; beyond 2^53 a double is no exact number of anything.
    return Number(value >= 0 && value < 9e15 ? static_cast<uint64_t>(value) : UINT64_MAX);
  }
  bool Default() { return true; }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    bytes_.EndToken();
    const std::string_view value(text, size);
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
    const auto number = NumberOf<uint64_t>(value);
    return !number || Number(*number);
  }

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

  bool Number(uint64_t value) {
    bytes_.EndToken();
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
    return true;
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

  JsonBytes& bytes_;
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
  NodeHandler handler(bytes, visit);
  rapidjson::Reader reader;
  // Several documents may follow one another.
  while (!bytes.IsAtEnd()) {
    constexpr unsigned kFlags = rapidjson::kParseStopWhenDoneFlag | rapidjson::kParseIterativeFlag;
    const rapidjson::ParseResult result = reader.Parse<kFlags>(bytes, handler);
    if (!result) {
      if (result.Code() == rapidjson::kParseErrorDocumentEmpty && bytes.IsAtEnd()) break;
      const bool is_deep = result.Code() == rapidjson::kParseErrorTermination;
      diagnostics.Error(
          {.file = stream.name()}, "",
          fmt::format("byte {}: {} (expected Chakra's JSON)", result.Offset(),
                      is_deep ? "nested too deeply" : rapidjson::GetParseError_En(result.Code())));
      return false;
    }
  }
  return true;
}

}  // namespace railyard
