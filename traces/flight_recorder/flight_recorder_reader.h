// SPDX-License-Identifier: GPL-2.0-only
// Reads the dumps of PyTorch's Flight Recorder (versions 2.x), one per rank, as JSON or as the
// pickles that PyTorch writes, into a trace and, on request, into a scenario that ends where the
// job hung.
//
// Collectives of a group are identified by their sequence numbers, so that dumps may begin and end
// at different calls. Calls are in the order in which the process enqueued them, without gaps,
// because a dump holds no GPU times.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

extern const TraceReader kFlightRecorderReader;  // "flight-recorder"

}  // namespace railyard
