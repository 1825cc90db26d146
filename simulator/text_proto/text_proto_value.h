// SPDX-License-Identifier: GPL-2.0-only
// What values a field may have, as its type says.
#pragma once

#include <string>
#include <string_view>

#include <google/protobuf/descriptor.h>

#include "simulator/text_proto/text_proto_tokens.h"

namespace railyard {

// "a whole number, 0 to 4294967295".
std::string ExpectedValue(const google::protobuf::FieldDescriptor& field);

// Empty if the word is a value of the field, else what is wrong with it.
std::string WhyNotAValue(const TextProtoWord& word, const google::protobuf::FieldDescriptor& field);

// Returns the text that replaces an unreadable element of a repeated field.
std::string_view EmptyElement(const google::protobuf::FieldDescriptor& field);

}  // namespace railyard
