// SPDX-License-Identifier: GPL-2.0-only
#include "traces/chakra/chakra_message.h"

#include <cstdint>
#include <cstring>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace railyard {
namespace {

using google::protobuf::internal::WireFormatLite;
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

// Reads the fields of a message one after the other. CodedInputStream does the same with buffers
// that it may refill, and takes a third of the time of an import.
class FieldReader {
 public:
  explicit FieldReader(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  // Reads the next field's tag; false at the end, or where there is none.
  bool Next() {
    uint64_t tag = 0;
    if (at_ == end_ || !Varint(tag)) return false;
    field_ = static_cast<int>(tag >> 3);
    wire_ = static_cast<WireFormatLite::WireType>(tag & 7);
    is_sound_ = tag >> 3 != 0 && tag <= UINT32_MAX;
    return is_sound_;
  }
  int field() const { return field_; }
  WireFormatLite::WireType wire() const { return wire_; }
  // Returns true after the last field, false where what is there is no field.
  bool IsAtEnd() const { return is_sound_ && at_ == end_; }

  bool Varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return true;
    }
    return is_sound_ = false;
  }
  template <typename Integer>
  bool Fixed(Integer& value) {
    if (static_cast<size_t>(end_ - at_) < sizeof(value)) return is_sound_ = false;
    std::memcpy(&value, at_, sizeof(value));
    at_ += sizeof(value);
    return true;
  }
  bool Bytes(std::string_view& bytes) {
    uint64_t length = 0;
    if (!Varint(length) || length > static_cast<size_t>(end_ - at_)) return is_sound_ = false;
    bytes = {at_, static_cast<size_t>(length)};
    at_ += length;
    return true;
  }
  bool Skip() {
    uint64_t number = 0;
    uint32_t small = 0;
    std::string_view bytes;
    switch (wire_) {
      case WireFormatLite::WIRETYPE_VARINT:
        return Varint(number);
      case WireFormatLite::WIRETYPE_FIXED32:
        return Fixed(small);
      case WireFormatLite::WIRETYPE_FIXED64:
        return Fixed(number);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return Bytes(bytes);
      default:  // groups, which proto3 does not have
        return is_sound_ = false;
    }
  }

 private:
  const char* at_;
  const char* end_;
  int field_ = 0;
  WireFormatLite::WireType wire_ = WireFormatLite::WIRETYPE_VARINT;
  bool is_sound_ = true;
};

// One number, or several packed.
bool ReadNumbers(FieldReader& in, std::vector<uint64_t>& numbers) {
  uint64_t number = 0;
  if (in.wire() == WireFormatLite::WIRETYPE_VARINT) {
    if (!in.Varint(number)) return false;
    numbers.push_back(number);
    return true;
  }
  if (in.wire() != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return in.Skip();
  std::string_view packed;
  if (!in.Bytes(packed)) return false;
  FieldReader list(packed);
  while (!list.IsAtEnd()) {
    if (!list.Varint(number)) return false;
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

bool ReadInteger(FieldReader& in, Attribute& attribute) {
  uint64_t number = 0;
  uint32_t small = 0;
  switch (in.wire()) {
    case WireFormatLite::WIRETYPE_VARINT:
      if (!in.Varint(number)) return false;
      if (in.field() == kSint32 || in.field() == kSint64) {
        number = static_cast<uint64_t>(WireFormatLite::ZigZagDecode64(number));
      }
      break;
    case WireFormatLite::WIRETYPE_FIXED32:
      if (!in.Fixed(small)) return false;
      number = in.field() == kSfixed32 ? static_cast<uint64_t>(int64_t{static_cast<int32_t>(small)})
                                       : small;
      break;
    case WireFormatLite::WIRETYPE_FIXED64:
      if (!in.Fixed(number)) return false;
      break;
    default:
      return in.Skip();
  }
  attribute.number = number;
  return true;
}

bool ReadFlags(FieldReader& in, Attribute& attribute) {
  std::string_view list;
  std::vector<uint64_t> flags;
  if (!in.Bytes(list)) return false;
  FieldReader flags_in(list);
  while (flags_in.Next()) {
    if (!ReadNumbers(flags_in, flags)) return false;
  }
  for (const uint64_t flag : flags) attribute.has_false |= flag == 0;
  return flags_in.IsAtEnd();
}

bool ReadAttribute(std::string_view message, Attribute& attribute) {
  FieldReader in(message);
  while (in.Next()) {
    const bool is_bytes = in.wire() == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    bool is_read = false;
    if (in.field() == kAttributeName && is_bytes) {
      is_read = in.Bytes(attribute.name);
    } else if (in.field() == kString && is_bytes) {
      is_read = in.Bytes(attribute.text);
    } else if (in.field() == kBoolList && is_bytes) {
      is_read = ReadFlags(in, attribute);
    } else if (in.field() >= kInt32 && in.field() <= kBool) {
      is_read = ReadInteger(in, attribute);
    } else {
      is_read = in.Skip();
    }
    if (!is_read) return false;
  }
  return in.IsAtEnd();
}

void Take(const Attribute& attribute, ChakraNode& node) {
  const std::string_view name = attribute.name;
  if (name == "is_cpu_op") {  // the one that every node has
    node.is_cpu_op = attribute.number.value_or(0) != 0;
  } else if (name == "pg_name") {
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
  }
}

bool ReadNodeField(FieldReader& in, ChakraNode& node) {
  if (in.wire() == WireFormatLite::WIRETYPE_VARINT) {
    if (in.field() == kId) return in.Varint(node.id);
    if (in.field() == kType) return in.Varint(node.type);
    if (in.field() == kDuration) return in.Varint(node.duration_us);
  }
  if (in.field() == kCtrlDeps) return ReadNumbers(in, node.ctrl_deps);
  if (in.field() == kDataDeps) return ReadNumbers(in, node.data_deps);
  if (in.wire() != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return in.Skip();
  std::string_view bytes;
  if (!in.Bytes(bytes)) return false;
  if (in.field() == kName) node.name = bytes;
  if (in.field() != kAttribute) return true;
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
  FieldReader in(message);
  while (in.Next()) {
    if (!ReadNodeField(in, node)) return false;
  }
  return in.IsAtEnd();
}

bool MayBeChakraMetadata(std::string_view message) {
  FieldReader in(message);
  while (in.Next()) {
    if ((in.field() != 1 && in.field() != 2) ||
        in.wire() != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      return false;
    }
    std::string_view bytes;
    if (!in.Bytes(bytes)) return true;  // the message goes on behind them
  }
  return in.IsAtEnd();
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
