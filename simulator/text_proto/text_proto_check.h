// SPDX-License-Identifier: GPL-2.0-only
// Checks protobuf text against a message type, going on after each mistake, so that one look names
// them all; protobuf's own parser stops at the first. What passes here is what protobuf's parser
// accepts, less what it tolerates silently: numbers for enums, `t` for true, *_UNSPECIFIED values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

// The text to check, and where it stands.
struct TextProtoCheck {
  std::string_view text;
  const google::protobuf::Descriptor* type = nullptr;
  std::string path = {};  // of the message the text stands for, "" for a file
  // Where the repeated fields of that message start to count (an edit of one element).
  int first_index = 0;
  std::function<SourceLocation(const FieldPlace&)> locate;
};

struct CheckedTextProto {
  FieldPlaces places;      // where each field stands
  FieldMistakes mistakes;  // empty if nothing is wrong but the syntax
  // The text with the fields that are wrong taken out of it, and elements of repeated fields
  // replaced by empty ones, so that the others keep their numbers. nullopt after a syntax error,
  // after which nobody can tell what belongs to what, and where there are too many mistakes.
  std::optional<std::string> readable;
};

// Reports every mistake up to kTextProtoFindingsMax.
CheckedTextProto CheckTextProto(const TextProtoCheck& check, Diagnostics& diagnostics);

// Whether a field's path is `path` itself or that of something in it.
bool IsAtOrBelow(std::string_view field_path, std::string_view path);

// The names of a type's fields, and those of an enum's values that may be written.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type);
std::vector<std::string> ValueNames(const google::protobuf::EnumDescriptor& type);

}  // namespace railyard
