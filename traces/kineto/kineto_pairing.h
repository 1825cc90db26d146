// SPDX-License-Identifier: GPL-2.0-only
// Finds the calls of kernels that do not state them: in the records of the host, or in the
// execution trace that was captured at the same time.
#pragma once

#include <string>

#include "traces/kineto/kineto_events.h"
#include "traces/pytorch_et/execution_trace_calls.h"

namespace railyard {

// Makes one kernel of those that one record of the host launched on a stream, as NCCL does for a
// group of many Sends and Recvs: from the begin of the first to the end of the last. Kernels are in
// the order in which they began.
void JoinKernelsOfCalls(KinetoFile& profile);

// Gives kernels of Sends and Recvs without a record the batches of messages that no record
// launched: the n-th kernel, by the order of launches, has the n-th batch. If they differ in
// number, returns that and changes nothing; else returns an empty string.
std::string PairWithBatches(KinetoFile& profile);

// Gives each kernel without a record the call, or the batch of messages, at its place in `trace`,
// because profiles of older versions of PyTorch do not state the sizes of collectives. Kernels are
// in the order in which they began. If the two cannot be paired, because they differ in number or a
// kernel cannot be the call at its place, returns why and changes nothing; else returns an empty
// string.
std::string PairWithExecutionTrace(const ExecutionTraceCalls::File& trace, KinetoFile& profile);

}  // namespace railyard
