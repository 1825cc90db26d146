// SPDX-License-Identifier: GPL-2.0-only
// Parses the nodes of an execution trace that are about communication, in all versions of the
// schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/pytorch/comms_record.h"
#include "traces/reading/value.h"

namespace railyard {

struct CommsNode {
  uint64_t id = 0;
  CommsRecord record;          // group_name: that of the schema, or "#N" for the pointer N
  uint32_t rank_argument = 0;  // the rank of the process or, of a rooted collective, the root
};

// Parses a record_param_comms node, in which `record.collective` may also be a pseudo-collective.
// Returns nullopt if the order of its arguments is that of no schema.
std::optional<CommsNode> ParseCommsNode(const Value& node);

// A process group, from the list in a "## process_group:init ##" node.
struct ProcessGroup {
  std::string name;     // "0"
  std::string pointer;  // "#N" as above; empty from 1.1 on
  uint32_t size = 0;
  std::vector<uint32_t> ranks;  // empty: all
};
std::vector<ProcessGroup> ParseProcessGroups(const Value& node);

}  // namespace railyard
