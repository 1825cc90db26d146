// SPDX-License-Identifier: GPL-2.0-only
// Reads the dumps of PyTorch's Flight Recorder (versions 2.x), one of each rank, as JSON or as the
// pickles that PyTorch writes, into a trace; where wanted, into a scenario that ends where the job
// hung.
//
// Collectives of a group are told by their sequence numbers, so that dumps may begin and end at
// different calls. Calls are in the order in which the process enqueued them, without gaps: a dump
// holds no times of the GPU.
#pragma once

#include "traces/reading/trace_reader.h"

namespace railyard {

TraceReader FlightRecorderReader();  // "flight-recorder"

}  // namespace railyard
