// SPDX-License-Identifier: GPL-2.0-only
// Reads SQLite exports of Nsight Systems, one or several of a job.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kNsysReader;

}  // namespace railyard
