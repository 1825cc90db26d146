// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_message.h"

#include <cstdint>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

namespace railyard {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr const char* kSchemaVersion = "0.0.4";

// Field numbers of et_def.proto. The schemas of 2023, 2024 and later agree on these.
enum NodeField {
  kId = 1,
  kName = 2,
  kType = 3,
  kCtrlDeps = 4,
  kDataDeps = 5,
  kDuration = 7,
  kAttribute = 10
};
enum AttributeField {
  kAttributeName = 1,
  kInt32 = 7,
  kInt64 = 9,
  kUint32 = 11,
  kUint64 = 13,
  kSint32 = 15,
  kSint64 = 17,
  kFixed32 = 19,
  kFixed64 = 21,
  kSfixed32 = 23,
  kSfixed64 = 25,
  kBool = 27,
  kBoolList = 28,
  kString = 29
};

bool ReadBytes(CodedInputStream& in, std::string_view whole, std::string_view& bytes) {
  uint32_t length = 0;
  if (!in.ReadVarint32(&length)) return false;
  const auto at = static_cast<size_t>(in.CurrentPosition());
  if (length > whole.size() - at) return false;
  bytes = whole.substr(at, length);
  return in.Skip(static_cast<int>(length));
}

CodedInputStream StreamOf(std::string_view bytes) {
  return CodedInputStream(reinterpret_cast<const uint8_t*>(bytes.data()),
                          static_cast<int>(bytes.size()));
}

// One number, or several packed.
bool ReadNumbers(uint32_t tag, CodedInputStream& in, std::string_view whole,
                 std::vector<uint64_t>& numbers) {
  uint64_t number = 0;
  if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_VARINT) {
    if (!in.ReadVarint64(&number)) return false;
    numbers.push_back(number);
    return true;
  }
  if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
    return WireFormatLite::SkipField(&in, tag);
  }
  std::string_view packed;
  if (!ReadBytes(in, whole, packed)) return false;
  CodedInputStream list = StreamOf(packed);
  while (list.CurrentPosition() < static_cast<int>(packed.size())) {
    if (!list.ReadVarint64(&number)) return false;
    numbers.push_back(number);
  }
  return true;
}

struct Attribute {
  std::string_view name;
  std::optional<uint64_t> number;  // negative ones are beyond all that is allowed
  std::string_view text;
  bool has_false = false;  // a list of flags, one of which is false
};

bool ReadInteger(int field, uint32_t tag, CodedInputStream& in, Attribute& attribute) {
  uint64_t number = 0;
  uint32_t small = 0;
  switch (WireFormatLite::GetTagWireType(tag)) {
    case WireFormatLite::WIRETYPE_VARINT:
      if (!in.ReadVarint64(&number)) return false;
      if (field == kSint32 || field == kSint64) {
        number = static_cast<uint64_t>(WireFormatLite::ZigZagDecode64(number));
      }
      break;
    case WireFormatLite::WIRETYPE_FIXED32:
      if (!in.ReadLittleEndian32(&small)) return false;
      number =
          field == kSfixed32 ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(small)}) : small;
      break;
    case WireFormatLite::WIRETYPE_FIXED64:
      if (!in.ReadLittleEndian64(&number)) return false;
      break;
    default:
      return WireFormatLite::SkipField(&in, tag);
  }
  attribute.number = number;
  return true;
}

bool ReadAttribute(std::string_view message, Attribute& attribute) {
  CodedInputStream in = StreamOf(message);
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const bool is_bytes =
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    bool is_read = false;
    if (field == kAttributeName && is_bytes) {
      is_read = ReadBytes(in, message, attribute.name);
    } else if (field == kString && is_bytes) {
      is_read = ReadBytes(in, message, attribute.text);
    } else if (field == kBoolList && is_bytes) {
      std::string_view list;
      std::vector<uint64_t> flags;
      is_read = ReadBytes(in, message, list);
      CodedInputStream flags_in = StreamOf(list);
      while (const uint32_t flag_tag = is_read ? flags_in.ReadTag() : 0) {
        is_read = ReadNumbers(flag_tag, flags_in, list, flags);
      }
      for (const uint64_t flag : flags) attribute.has_false |= flag == 0;
    } else if (field >= kInt32 && field <= kBool) {
      is_read = ReadInteger(field, tag, in, attribute);
    } else {
      is_read = WireFormatLite::SkipField(&in, tag);
    }
    if (!is_read) return false;
  }
  return in.ConsumedEntireMessage();
}

void Take(const Attribute& attribute, ChakraNode& node) {
  const std::string_view name = attribute.name;
  if (name == "pg_name") {
    node.group = attribute.text;
    if (attribute.number) node.group = std::to_string(*attribute.number);
  } else if (name == "involved_dim") {
    node.leaves_out_dimension = attribute.has_false;
  } else if (!attribute.number) {
    return;
  } else if (name == "comm_type") {
    node.comm_type = attribute.number;
  } else if (name == "comm_size") {
    node.comm_size = attribute.number;
  } else if (name == "comm_src") {
    node.comm_src = attribute.number;
  } else if (name == "comm_dst") {
    node.comm_dst = attribute.number;
  } else if (name == "comm_tag") {
    node.comm_tag = *attribute.number;
  } else if (name == "root" || name == "comm_root" || name == "root_rank") {
    node.root = *attribute.number;
  } else if (name == "is_cpu_op") {
    node.is_cpu_op = *attribute.number != 0;
  }
}

bool ReadNodeField(uint32_t tag, CodedInputStream& in, std::string_view message, ChakraNode& node) {
  const int field = WireFormatLite::GetTagFieldNumber(tag);
  const auto wire = WireFormatLite::GetTagWireType(tag);
  if (wire == WireFormatLite::WIRETYPE_VARINT) {
    if (field == kId) return in.ReadVarint64(&node.id);
    if (field == kType) return in.ReadVarint64(&node.type);
    if (field == kDuration) return in.ReadVarint64(&node.duration_us);
  }
  if (field == kCtrlDeps) return ReadNumbers(tag, in, message, node.ctrl_deps);
  if (field == kDataDeps) return ReadNumbers(tag, in, message, node.data_deps);
  if (wire != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
    return WireFormatLite::SkipField(&in, tag);
  }
  std::string_view bytes;
  if (!ReadBytes(in, message, bytes)) return false;
  if (field == kName) node.name = bytes;
  if (field != kAttribute) return true;
  Attribute attribute;
  if (!ReadAttribute(bytes, attribute)) return false;
  Take(attribute, node);
  return true;
}

class MessageText {
 public:
  void Number(int field, uint64_t number) {
    Varint(WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_VARINT));
    Varint(number);
  }
  void Bytes(int field, std::string_view bytes) {
    Varint(WireFormatLite::MakeTag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    Varint(bytes.size());
    text_ += bytes;
  }
  void Numbers(int field, const std::vector<uint64_t>& numbers) {
    if (numbers.empty()) return;
    MessageText packed;
    for (const uint64_t number : numbers) packed.Varint(number);
    Bytes(field, packed.text_);
  }
  void IntegerAttribute(std::string_view name, int value_field, uint64_t value) {
    MessageText attribute;
    attribute.Bytes(kAttributeName, name);
    attribute.Number(value_field, value);
    Bytes(kAttribute, attribute.text_);
  }
  void TextAttribute(std::string_view name, std::string_view value) {
    MessageText attribute;
    attribute.Bytes(kAttributeName, name);
    attribute.Bytes(kString, value);
    Bytes(kAttribute, attribute.text_);
  }
  void AppendDelimited(std::string& out) const {
    MessageText length;
    length.Varint(text_.size());
    out += length.text_;
    out += text_;
  }

 private:
  void Varint(uint64_t number) {
    uint8_t raw[10];
    const uint8_t* const end = CodedOutputStream::WriteVarint64ToArray(number, raw);
    text_.append(reinterpret_cast<const char*>(raw), static_cast<size_t>(end - raw));
  }

  std::string text_;
};

}  // namespace

bool ParseChakraNode(std::string_view message, ChakraNode& node) {
  CodedInputStream in = StreamOf(message);
  while (const uint32_t tag = in.ReadTag()) {
    if (!ReadNodeField(tag, in, message, node)) return false;
  }
  return in.ConsumedEntireMessage();
}

bool MayBeChakraMetadata(std::string_view message) {
  CodedInputStream in = StreamOf(message);
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if ((field != 1 && field != 2) ||
        WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      return false;
    }
    std::string_view bytes;
    if (!ReadBytes(in, message, bytes)) return true;  // the message goes on behind them
  }
  return in.CurrentPosition() == static_cast<int>(message.size());
}

void AppendChakraMetadata(std::string& out) {
  MessageText metadata;
  metadata.Bytes(1, kSchemaVersion);
  metadata.AppendDelimited(out);
}

void AppendChakraNode(const ChakraNode& node, std::string& out) {
  MessageText text;
  if (node.id != 0) text.Number(kId, node.id);
  text.Bytes(kName, node.name);
  text.Number(kType, node.type);
  text.Numbers(kDataDeps, node.data_deps);
  if (node.duration_us != 0) text.Number(kDuration, node.duration_us);
  text.IntegerAttribute("is_cpu_op", kBool, node.is_cpu_op ? 1 : 0);
  if (node.comm_type) text.IntegerAttribute("comm_type", kInt64, *node.comm_type);
  if (node.comm_size) text.IntegerAttribute("comm_size", kInt64, *node.comm_size);
  if (node.comm_src) text.IntegerAttribute("comm_src", kInt32, *node.comm_src);
  if (node.comm_dst) text.IntegerAttribute("comm_dst", kInt32, *node.comm_dst);
  if (node.comm_src || node.comm_dst) text.IntegerAttribute("comm_tag", kInt32, node.comm_tag);
  if (node.root != 0) text.IntegerAttribute("root", kInt32, node.root);
  if (!node.group.empty()) text.TextAttribute("pg_name", node.group);
  text.AppendDelimited(out);
}

}  // namespace railyard
