// SPDX-License-Identifier: GPL-2.0-only
// Reads the files that AICB writes, one file per job: SimAI's workload text, and the CSV of a
// rank's calls.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kAicbReader;

}  // namespace railyard
