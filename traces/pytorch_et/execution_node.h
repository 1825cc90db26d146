// SPDX-License-Identifier: GPL-2.0-only
// Parses the communication nodes of an execution trace, in all versions of the schema.
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
  CommsRecord record;  // group_name is that of the schema, or "#N" for pointer N
  // Rank of the process in the group (ProcessGroupNCCL.cpp: rank_) or, for a rooted collective, the
  // root.
  uint32_t rank_argument = 0;
  // Counts Sends and Recvs apart from collectives; nullopt if it does not, as before PyTorch 2.5.
  std::optional<uint64_t> message_sequence = {};
};

// Parses a record_param_comms node, in which `record.collective` may also be a pseudo-collective.
// Returns nullopt if no schema has this order of arguments.
std::optional<CommsNode> ParseCommsNode(const Value& node);

// Describes a process group, from the list in a "## process_group:init ##" node.
struct ProcessGroup {
  std::string name;     // "0"
  std::string pointer;  // "#N" as above; empty from 1.1 on
  uint32_t size = 0;
  std::vector<uint32_t> ranks;  // empty for all ranks
};
std::vector<ProcessGroup> ParseProcessGroups(const Value& node);

}  // namespace railyard
