// SPDX-License-Identifier: GPL-2.0-only
// Calls in the text of a log, `NAME: opCount HEX sendbuff PTR … stream PTR` as ncclEnqueueCheck
// prints them: where one begins, and what it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/nccl_log/nccl_log_records.h"
#include "traces/trace/trace.h"

namespace railyard {

struct CallMark {
  size_t begin = 0;     // of the name, or of "opCount" without one
  size_t op_count = 0;  // of "opCount"
  size_t end = 0;       // of what identifies it as a call
  std::string_view name;
  std::optional<CollectiveKind> kind;  // nullopt: none that a trace holds
};
// No call's mark is longer.
inline constexpr size_t kNcclCallMarkBytesMax = 64;

std::vector<CallMark> FindCallMarks(std::string_view text);
// How many calls begin in `text`, counting only those whose mark ends after byte `from`.
uint64_t CountNcclCalls(std::string_view text, size_t from);

// The call at a mark in `text`, without a prefix; `end` becomes where it stops.
LogCall ParseCallRecord(std::string_view text, const CallMark& mark, size_t& end);

}  // namespace railyard
