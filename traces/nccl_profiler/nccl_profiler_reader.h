// SPDX-License-Identifier: GPL-2.0-only
// Reads the traces of NCCL's example profiler plug-in (NCCL 2.23 on; RCCL has the same): one file
// per communicator and rank, with the calls that the plug-in's window of events held at the end.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kNcclProfilerReader;  // "nccl-profiler"

}  // namespace railyard
