// SPDX-License-Identifier: GPL-2.0-only
// Checks protobuf text against a message type and continues after each mistake, so that one pass
// reports all of them; protobuf's own parser stops at the first. The check accepts the same text as
// protobuf's parser, except forms that the parser accepts silently: numbers for enums, `t` for
// true, *_UNSPECIFIED values.
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

// Holds the text to check, and its place.
struct TextProtoCheck {
  std::string_view text;
  const google::protobuf::Descriptor* type = nullptr;
  std::string path = {};  // of the message that the text represents, "" for a file
  // The index of the first element of that message's repeated fields (in an edit of one element).
  int first_index = 0;
  std::function<SourceLocation(const FieldPlace&)> locate;
};

struct CheckedTextProto {
  FieldPlaces places;      // place of each field
  FieldMistakes mistakes;  // empty if only the syntax is wrong
  // The text without the fields that are wrong; wrong elements of repeated fields are replaced by
  // empty ones, so that the others keep their numbers. nullopt after a syntax error, which makes
  // the structure of the rest ambiguous, and after too many mistakes.
  std::optional<std::string> readable;
};

// Reports every mistake up to kTextProtoFindingsMax.
CheckedTextProto CheckTextProto(const TextProtoCheck& check, Diagnostics& diagnostics);

// Returns true if a field's path is `path` itself or a path below it.
bool IsAtOrBelow(std::string_view field_path, std::string_view path);

// These return the names of a type's fields, and those of an enum's values that may be written.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type);
std::vector<std::string> ValueNames(const google::protobuf::EnumDescriptor& type);

}  // namespace railyard
