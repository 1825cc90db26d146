// SPDX-License-Identifier: GPL-2.0-only
// The messages of a log that are not calls: communicators made and destroyed, what the tuner chose,
// rings and trees (NCCL's src/init.cc, src/enqueue.cc and src/graph/connect.cc).
#pragma once

#include <string_view>
#include <vector>

#include "traces/nccl_log/nccl_log_records.h"

namespace railyard {

// Appends what the message behind the prefix says: nothing, if it is none of these.
void ParseLogMessage(const LogPrefix& prefix, std::string_view message,
                     std::vector<LogRecord>& records);

}  // namespace railyard
