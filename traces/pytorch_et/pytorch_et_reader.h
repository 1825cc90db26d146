// SPDX-License-Identifier: GPL-2.0-only
// Reads PyTorch execution traces (ExecutionTraceObserver; schemas 1.0 to 1.1, including those with
// "-chakra"), one file for each rank, into a trace.
//
// The calls are the record_param_comms nodes in the order of their ids, which is the order in which
// the process began them. Such a trace has no times.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kPytorchEtReader;  // "pytorch-et"

}  // namespace railyard
