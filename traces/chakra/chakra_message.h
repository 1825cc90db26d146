// SPDX-License-Identifier: GPL-2.0-only
// Reads and writes Chakra's protobuf messages field by field, because a node of a profiled job
// holds kilobytes of text that are not needed here.
#pragma once

#include <string>
#include <string_view>

#include "traces/chakra/chakra_node.h"

namespace railyard {

// Returns false if the bytes are not a Node message.
bool ParseChakraNode(std::string_view message, ChakraNode& node);
// Returns true if the bytes may begin a GlobalMetadata message: as far as they go, they have only
// its two fields.
bool MayBeChakraMetadata(std::string_view message);

// Appends the length-delimited GlobalMetadata with which a file begins.
void AppendChakraMetadata(std::string& out);
// Appends the node, length-delimited. Fields that are 0 or empty are omitted; comm_type, comm_size
// and tags become attributes of calls.
void AppendChakraNode(const ChakraNode& node, std::string& out);

}  // namespace railyard
