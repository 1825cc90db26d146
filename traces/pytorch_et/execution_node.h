// SPDX-License-Identifier: GPL-2.0-only
// Nodes of an execution trace that are about communication, in the words of every schema.
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

// A record_param_comms node, in which `record.collective` may also be a pseudo-collective. nullopt
// where its arguments are in no order that a schema has.
std::optional<CommsNode> ParseCommsNode(const Value& node);

// A process group, as a "## process_group:init ##" node describes those that there are.
struct ProcessGroup {
  std::string name;     // "0"
  std::string pointer;  // "#N" as above; empty from 1.1 on
  uint32_t size = 0;
  std::vector<uint32_t> ranks;  // empty: all
};
std::vector<ProcessGroup> ParseProcessGroups(const Value& node);

}  // namespace railyard
