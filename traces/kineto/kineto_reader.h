// SPDX-License-Identifier: GPL-2.0-only
// Reads the exports of PyTorch's profiler (Kineto, Chrome's trace event JSON), one file per rank
// and step, into a trace.
//
// The calls are NCCL's and RCCL's kernels. Their sizes are in the kernels' arguments or, if these
// are absent, in those of the record_param_comms with the same External id; kernels with neither
// are dropped. The time between the kernels of a stream becomes gaps, in which the GPU computes or
// waits.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kKinetoReader;  // "kineto"

}  // namespace railyard
