// SPDX-License-Identifier: GPL-2.0-only
// Reads the JSON lines of NCCL's and RCCL's Inspector (output format v4.x, with event traces and
// without) into a trace.
//
// Up to v4.2 each line has the header of its communicator; from v4.3 on, only the dump_stats line
// at the beginning of a dump has it. Lines hold no datatype, so sizes are in bytes.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kInspectorReader;  // "inspector"

}  // namespace railyard
