// SPDX-License-Identifier: GPL-2.0-only
// Reads what PyTorch's profiler exports (Kineto, Chrome's trace event JSON), one file for each rank
// and step, into a trace.
//
// The calls are NCCL's and RCCL's kernels. What they move is in their own arguments or, where these
// are absent, in those of the record_param_comms with the same External id; kernels for which
// neither says it are dropped. Between the kernels of a stream lie gaps, in which the GPU computes
// or waits.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

TraceReader KinetoReader();  // "kineto"

}  // namespace railyard
