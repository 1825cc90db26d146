// SPDX-License-Identifier: GPL-2.0-only
// Reads PyTorch execution traces (ExecutionTraceObserver; schemas 1.0 to 1.1, those with "-chakra"
// too), one file for each rank, into a trace.
//
// The calls are the record_param_comms nodes in the order of their ids, which is the order in which
// the process began them. There are no times in such a trace.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

TraceReader PytorchEtReader();  // "pytorch-et"

}  // namespace railyard
