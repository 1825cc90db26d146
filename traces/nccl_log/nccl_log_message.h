// SPDX-License-Identifier: GPL-2.0-only
// Parses the messages of a log that are not calls: creation and destruction of communicators,
// choices of the tuner, rings and trees (NCCL's src/init.cc, src/enqueue.cc and
// src/graph/connect.cc).
#pragma once

#include <string_view>
#include <vector>

#include "traces/nccl_log/nccl_log_records.h"

namespace railyard {

// Appends the record of the message after the prefix, or nothing if the message is of another kind.
void ParseLogMessage(const LogPrefix& prefix, std::string_view message,
                     std::vector<LogRecord>& records);

}  // namespace railyard
