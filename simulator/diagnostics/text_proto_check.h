// SPDX-License-Identifier: GPL-2.0-only
// Checks protobuf text against a message type, going on after each mistake, so that one look names
// them all; protobuf's own parser stops at the first. What passes here is what protobuf's parser
// accepts, less what it tolerates silently: numbers for enums, `t` for true, *_UNSPECIFIED values.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <google/protobuf/descriptor.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/text_proto.h"

namespace railyard {

struct TextProtoCheck {
  std::string_view text;
  const google::protobuf::Descriptor* type = nullptr;
  std::string path = {};  // of the message the text stands for, "" for a file
  // Where the repeated fields of that message start to count (an edit of one element).
  int first_index = 0;
  std::function<SourceLocation(const FieldPlace&)> locate;
};

// Reports every mistake up to kTextProtoFindingsMax and records where each field stands. False if
// there was one.
bool CheckTextProto(const TextProtoCheck& check, FieldPlaces& places, Diagnostics& diagnostics);

inline constexpr int kTextProtoFindingsMax = 100;

// The names of a type's fields, and those of an enum's values that may be written.
std::vector<std::string> FieldNames(const google::protobuf::Descriptor& type);
std::vector<std::string> ValueNames(const google::protobuf::EnumDescriptor& type);

}  // namespace railyard
