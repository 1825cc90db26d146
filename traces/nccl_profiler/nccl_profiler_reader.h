// SPDX-License-Identifier: GPL-2.0-only
// Reads the traces of NCCL's example profiler plug-in (NCCL 2.23 on; RCCL has the same): a file for
// each communicator and rank, with the calls that its window of events held at the end.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kNcclProfilerReader;  // "nccl-profiler"

}  // namespace railyard
