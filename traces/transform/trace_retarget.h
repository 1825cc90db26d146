// SPDX-License-Identifier: GPL-2.0-only
// A trace for another number of ranks. The user says how its ranks were divided; what each call
// becomes follows from the group that it is made on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// Ranks are numbered as Megatron-LM does: tensor parallel ones side by side, then data parallel
// ones, then stages of the pipeline.
struct TraceDivision {
  uint32_t tensor = 1;
  uint32_t data = 1;
  uint32_t pipeline = 1;
  uint64_t ranks() const { return uint64_t{tensor} * data * pipeline; }
};

// Every rank (t, d, s) of `to` runs the program of (t mod, d mod, s) of `from`, on the groups that
// are its own:
// - groups of data parallel ranks: AllReduce, Broadcast and Reduce keep their size where data
//   changes, and are divided where tensor does (each rank has less of the weights). AllGather,
//   ReduceScatter and AllToAll keep the size of the whole buffer, so that a rank's part changes;
// - groups of tensor parallel ranks: AllReduce, Broadcast and Reduce keep their size (activations
// of
//   a micro-batch); AllGather, ReduceScatter and AllToAll that of the whole buffer;
// - messages between stages keep their size, and go to the rank of the same place in the other
// stage;
// - a group of all ranks counts as one of data parallel ranks.
// An error where that is not sound: another number of stages (which layers a stage has is not in a
// trace), groups that are none of these (expert parallel ones), ranks of a group whose programs
// differ, and AllToAllv.
std::optional<Trace> RetargetTrace(const Trace& trace, const TraceDivision& from,
                                   const TraceDivision& to, const std::string& file,
                                   Diagnostics& diagnostics);

}  // namespace railyard
