// SPDX-License-Identifier: GPL-2.0-only
// Describes and checks the values that a field may have by its type.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/descriptor.h>

#include "simulator/text_proto/text_proto_tokens.h"

namespace railyard {

// Returns e.g. "a whole number, 0 to 4294967295".
std::string ExpectedValue(const google::protobuf::FieldDescriptor& field);

// Returns an empty string if the word is a value of the field, else what is wrong with it.
std::string WhyNotAValue(const TextProtoWord& word, const google::protobuf::FieldDescriptor& field);

// Returns the text that replaces an unreadable element of a repeated field.
std::string_view EmptyElement(const google::protobuf::FieldDescriptor& field);

}  // namespace railyard
