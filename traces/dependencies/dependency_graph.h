// SPDX-License-Identifier: GPL-2.0-only
// Represents a job as graph formats (Chakra, GOAL) do: operations of each rank depend on others of
// the rank, and messages name their peer and a tag. There are no streams, and no order beyond the
// dependencies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <boost/container/small_vector.hpp>

#include "traces/trace/trace.h"

namespace railyard {

inline constexpr int64_t kGraphDurationMaxPs = int64_t{1} << 60;  // 13 days

// Holds numbers of operations of a rank. Most operations wait for one or two others, for which no
// memory is allocated.
using WaitList = boost::container::small_vector<uint32_t, 2>;

// NOLINTNEXTLINE(bugprone-exception-escape): Boost's vector moves without allocating memory.
struct GraphOperation {
  CollectiveKind kind = CollectiveKind::kCompute;
  uint64_t count = 0;         // bytes: elements of one byte, as the API counts
  uint32_t communicator = 0;  // collectives: index into DependencyGraph::communicators
  uint32_t root = 0;          // collectives: communicator rank
  GlobalRank peer{};          // Send and Recv: not the rank itself
  uint64_t tag = 0;           // Send and Recv: k-th Send matches k-th Recv
  int64_t duration_ps = 0;    // Compute; at most kGraphDurationMaxPs
  uint64_t stated_bytes = 0;  // size as in the file, for the report
  uint32_t source_file = 0;   // index into DependencyGraph::source_files
  uint32_t source_line = 0;   // 0 if the format has no lines
  WaitList waits_for = {};    // operations of the rank that must end before it begins
};

struct DependencyGraph {
  std::string origin;  // Trace::origin
  std::vector<std::string> source_files;
  std::vector<TraceCommunicator> communicators;
  std::vector<std::vector<GraphOperation>> ranks;  // by global rank
  // By global rank: no file states its operations, it will run the program of another; empty: none.
  std::vector<bool> repeats_another = {};
  // A Recv states the bytes of its buffer, which its message need not fill.
  bool recvs_state_buffers = false;
};

struct GraphPlace {
  GlobalRank rank{};
  uint32_t operation = 0;
  bool operator==(const GraphPlace&) const = default;
};

}  // namespace railyard
