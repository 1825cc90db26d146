// SPDX-License-Identifier: GPL-2.0-only
// Chakra's protobuf messages, read and written field by field: a node of a profiled job holds
// kilobytes of text that nothing here needs.
#pragma once

#include <string>
#include <string_view>

#include "traces/chakra/chakra_node.h"

namespace railyard {

// False if the bytes are no Node message.
bool ParseChakraNode(std::string_view message, ChakraNode& node);
// Whether the bytes may begin a GlobalMetadata message: only its two fields, as far as they go.
bool MayBeChakraMetadata(std::string_view message);

// Appends the length-delimited GlobalMetadata with which a file begins.
void AppendChakraMetadata(std::string& out);
// Appends the node, length-delimited: fields that are 0 or empty are left out, comm_type, comm_size
// and tags are attributes of calls.
void AppendChakraNode(const ChakraNode& node, std::string& out);

}  // namespace railyard
