// SPDX-License-Identifier: GPL-2.0-only
// Finds and parses the records in one physical line of an NCCL or RCCL log.
//
// A line should be `[TIME STAMP] HOST:PID:TID [DEV] NCCL INFO MESSAGE` (src/debug.cc), but
// launchers prepend their own text, processes that share a stream run into each other, and logs are
// cut. Records are therefore searched for anywhere in the line, and each belongs to the nearest
// prefix before it. A field that is truncated or interrupted makes the record defective rather than
// wrong.
#pragma once

#include <string_view>
#include <vector>

#include "traces/nccl_log/nccl_log_records.h"

namespace railyard {

// Returns all records of the line in order. `line` holds no NUL bytes and no terminal escape
// sequences (LogLineReader removes them).
std::vector<LogRecord> ParseNcclLogLine(std::string_view line);

}  // namespace railyard
