// SPDX-License-Identifier: GPL-2.0-only
// Holds a line of NCCL's (and RCCL's) Inspector plug-in, output format v4.x.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/reading/value.h"
#include "traces/trace/trace.h"

namespace railyard {

// Names the communicator and the process of a record: "header" and "metadata".
struct InspectorSource {
  std::string communicator;  // its id, and its name if it has one
  uint32_t rank = 0;         // in the communicator
  uint32_t size = 0;
  std::string process;  // host and process number
  std::string version;  // "v4.3"
};

struct InspectorCall {
  std::optional<CollectiveKind> kind;  // nullopt if NCCL has no such name
  std::string name;
  uint64_t sequence = 0;  // of its kind in the communicator
  bool has_size = false;
  bool has_wrapped_size = false;  // the line states 2^64 - `bytes`
  uint64_t bytes = 0;             // of the API's count: per rank for AllGather and ReduceScatter
  std::optional<uint32_t> peer;   // of Send and Recv
  Algorithm algorithm = Algorithm::kUnstated;
  Protocol protocol = Protocol::kUnstated;
  int64_t measured_ps = 0;
  bool duration_is_none = false;    // stated, but no number of microseconds up to 2^42
  std::optional<int64_t> start_us;  // where the line has an event trace
};

struct InspectorDropCounts {
  uint64_t records = 0;  // that the plug-in states to have written, collectives and point to point
  uint64_t dropped = 0;  // by the plug-in, since its last dump
};

std::optional<InspectorSource> ParseInspectorSource(const Value& line);
// Parses a line with "coll_perf" or "p2p_perf".
std::optional<InspectorCall> ParseInspectorCall(const Value& line);
// Parses a line with "dump_stats".
std::optional<InspectorDropCounts> ParseInspectorDropCounts(const Value& line);

}  // namespace railyard
