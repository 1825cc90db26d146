// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/text_proto/text_proto_value.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>

#include "simulator/diagnostics/names.h"
#include "simulator/text_proto/text_proto_check.h"

namespace railyard {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::Tokenizer;

bool FitsInteger(const FieldDescriptor& field, const TextProtoWord& word,
                 const std::string& digits) {
  uint64_t limit = 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      limit = uint64_t{std::numeric_limits<int32_t>::max()} + (word.negative ? 1 : 0);
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      limit = uint64_t{std::numeric_limits<int64_t>::max()} + (word.negative ? 1 : 0);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      limit = std::numeric_limits<uint32_t>::max();
      break;
    default:
      limit = std::numeric_limits<uint64_t>::max();
  }
  const bool is_signed = field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ||
                         field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
  uint64_t value = 0;
  return (is_signed || !word.negative) && Tokenizer::ParseInteger(digits, limit, &value);
}

// Protobuf's own parser reads what is too large as infinity.
bool FitsFloat(const FieldDescriptor& field, const std::string& digits) {
  const double value = Tokenizer::ParseFloat(digits);
  return std::isfinite(field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT
                           ? static_cast<double>(static_cast<float>(value))
                           : value);
}

std::string WhyNotAnEnumValue(const TextProtoWord& word, const EnumDescriptor& type) {
  const std::vector<std::string> names = ValueNames(type);
  if (std::find(names.begin(), names.end(), word.text) != names.end()) return {};
  return UnknownName("", word.text, names);
}

}  // namespace

std::string ExpectedValue(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return "a whole number, -2147483648 to 2147483647";
    case FieldDescriptor::CPPTYPE_UINT32:
      return "a whole number, 0 to 4294967295";
    case FieldDescriptor::CPPTYPE_INT64:
      return "a whole number, -9223372036854775808 to 9223372036854775807";
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number, 0 to 18446744073709551615";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return JoinAlternatives(ValueNames(*field.enum_type()));
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text in quotes";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "{ … }";
  }
  return {};
}

std::string WhyNotAValue(const TextProtoWord& word, const FieldDescriptor& field) {
  const std::string digits = word.text.substr(word.negative ? 1 : 0);
  const bool is_integer = word.token_count == 1 && word.type == Tokenizer::TYPE_INTEGER;
  bool is_right = false;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
      is_right = is_integer && FitsInteger(field, word, digits);
      break;
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      is_right = word.token_count == 1 &&
                 (word.type == Tokenizer::TYPE_FLOAT ||
                  (is_integer && digits.find_first_of("xX") == std::string::npos));
      if (is_right && !FitsFloat(field, digits)) {
        return fmt::format(
            "{} is out of range (expected a number whose size is at most {})", Quote(word.text),
            field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT ? "3.4e38" : "1.79e308");
      }
      break;
    case FieldDescriptor::CPPTYPE_BOOL:
      is_right = word.text == "true" || word.text == "false";
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      if (word.token_count == 1 && word.type == Tokenizer::TYPE_IDENTIFIER && !word.negative) {
        return WhyNotAnEnumValue(word, *field.enum_type());
      }
      break;
    default:
      break;
  }
  if (is_right) return {};
  return fmt::format("{} is not {}", Quote(word.text), ExpectedValue(field));
}

std::string_view EmptyElement(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return field.enum_type()->value(0)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return R"("")";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "{}";
    default:
      return "0";
  }
}

}  // namespace railyard
