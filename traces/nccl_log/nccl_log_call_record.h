// SPDX-License-Identifier: GPL-2.0-only
// Finds and parses the calls in the text of a log, `NAME: opCount HEX sendbuff PTR … stream PTR`,
// as ncclEnqueueCheck prints them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <boost/container/small_vector.hpp>

#include "traces/nccl_log/nccl_log_records.h"
#include "traces/trace/trace.h"

namespace railyard {

struct CallMark {
  size_t begin = 0;     // of the name, or of "opCount" without one
  size_t op_count = 0;  // of "opCount"
  size_t end = 0;       // of the text that identifies it as a call
  std::string_view name;
  std::optional<CollectiveKind> kind;  // nullopt if a trace cannot contain it
};
// An upper bound on the length of a call's mark.
inline constexpr size_t kNcclCallMarkBytesMax = 64;

// Lists the marks of a line, which has at most one call unless lines ran into each other.
using CallMarks = boost::container::small_vector<CallMark, 2>;
CallMarks FindCallMarks(std::string_view text);
// Returns whether the text ends within the mark of a call, after `INFO `, so that the rest of the
// mark may follow.
bool EndsWithinCallMark(std::string_view text);
// Counts the calls that begin in `text` and whose mark ends after byte `from`.
uint64_t CountNcclCalls(std::string_view text, size_t from);

// Parses the call at a mark in `text`, without a prefix; `end` is set to the position after it.
LogCall ParseCallRecord(std::string_view text, const CallMark& mark, size_t& end);

}  // namespace railyard
