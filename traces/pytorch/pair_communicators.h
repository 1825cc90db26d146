// SPDX-License-Identifier: GPL-2.0-only
// Gives pairs of ranks communicators of their own, as PyTorch does.
#pragma once

#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// PyTorch runs each Send and Recv outside a batch on a communicator of the two ranks alone
// (getKeySendRecv in ProcessGroupNCCL.cpp), with a stream of its own. A capture without times does
// not say which of them waited for another. In a trace they follow each other on the communicator
// and stream of their process group, as a pipeline's do; where they would wait for each other in a
// circle then (a ring in which each rank sends before it receives), those of the group become calls
// on communicators of pairs, and the report says so.
// Precondition: the trace passes CheckTrace, and no two ranks share a program.
void SeparatePairsInCircles(Trace& trace, ImportReport& report);

}  // namespace railyard
