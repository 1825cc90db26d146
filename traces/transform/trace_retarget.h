// SPDX-License-Identifier: GPL-2.0-only
// Rewrites a trace for another number of ranks. The user states how its ranks were divided; the
// change of each call follows from the group on which it is made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/trace/trace.h"

namespace railyard {

// Ranks are numbered as in Megatron-LM: tensor parallel ranks are adjacent, then data parallel
// ranks, then pipeline stages.
struct TraceDivision {
  uint32_t tensor = 1;
  uint32_t data = 1;
  uint32_t pipeline = 1;
  uint64_t ranks() const { return uint64_t{tensor} * data * pipeline; }
};

// Every rank (t, d, s) of `to` runs the program of (t mod, d mod, s) of `from` on its own groups.
// Sizes change by group:
// - Data parallel: AllReduce, Broadcast and Reduce keep their size if `data` changes, and scale by
//   1 / `tensor`, because each rank then has another share of the weights. AllGather,
//   ReduceScatter and AllToAll treat the whole buffer so; a rank's part of it follows.
// - Tensor parallel: AllReduce, Broadcast and Reduce keep their size (they hold activations of a
//   micro-batch); AllGather, ReduceScatter and AllToAll keep that of the whole buffer.
// - Between stages: messages keep their size and go to the rank at the same place in the other
//   stage.
// - A group of all ranks counts as data parallel.
//
// Returns nullopt with an error if that is not sound: another number of stages (a trace does not
// say which layers a stage has), other groups (expert parallel ones), ranks of a group with
// different programs, and AllToAllv.
std::optional<Trace> RetargetTrace(const Trace& trace, const TraceDivision& from,
                                   const TraceDivision& to, const std::string& file,
                                   Diagnostics& diagnostics);

}  // namespace railyard
