// SPDX-License-Identifier: GPL-2.0-only
// Completes a profile by the execution trace that was captured at the same time, because profiles
// of older versions of PyTorch do not state the sizes of collectives.
#pragma once

#include <string>

#include "traces/kineto/kineto_events.h"
#include "traces/pytorch_et/execution_trace_calls.h"

namespace railyard {

// Gives each kernel without a record the record of the call at its place in `trace`. Kernels are in
// the order in which they began. If the two cannot be paired, because they differ in number or a
// kernel cannot be the call at its place, returns why and changes nothing; else returns an empty
// string.
std::string PairWithExecutionTrace(const ExecutionTraceCalls::File& trace, KinetoFile& profile);

}  // namespace railyard
