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

// Describes a division of ranks, which are numbered as in Megatron-LM: tensor parallel ranks are
// adjacent, then data parallel ranks, then pipeline stages. Expert parallel groups are `expert`
// adjacent data parallel ranks.
struct TraceDivision {
  uint32_t tensor = 1;
  uint32_t data = 1;
  uint32_t pipeline = 1;
  uint32_t expert = 1;  // divides `data`
  // Returns the number of ranks; UINT64_MAX if the product is larger.
  uint64_t ranks() const {
    const auto product = static_cast<unsigned __int128>(tensor) * data * pipeline;
    return product > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(product);
  }
};

// Returns a trace in which every rank of `to` runs the program of the rank at its place in `from`
// (modulo the old degrees) on its own groups. Sizes change by group:
// - Data parallel: AllReduce, Broadcast and Reduce keep their size if `data` changes, and scale by
//   1 / `tensor`, because each rank then has another share of the weights. AllGather,
//   ReduceScatter and AllToAll treat the whole buffer so; a rank's part of it follows.
// - Tensor parallel: AllReduce, Broadcast and Reduce keep their size (they hold activations of a
//   micro-batch); AllGather, ReduceScatter and AllToAll keep that of the whole buffer.
// - Expert parallel: a rank has as many tokens as before. AllToAll divides them among the ranks of
//   the group; all other calls keep their count. Messages and AllToAllv go to the same peers, which
//   requires the same `expert`, because routing does not follow a formula.
// - Ranks with the same experts (expert data parallel): as data parallel, and sizes also scale by 1
//   / `expert`, because each rank then has another share of the experts.
// - Between stages: messages keep their size and go to the rank at the same place in the other
//   stage. More stages are a deeper model: a stage keeps its layers, and each inner stage runs the
//   program of the second one.
// - A group of all ranks counts as data parallel.
//
// Returns nullopt with an error if this would not be correct: other groups, ranks of a group with
// different programs, AllToAllv, another number of stages if inner stages differ or a schedule
// depends on their number (a backward pass before the last forward pass).
std::optional<Trace> RetargetTrace(const Trace& trace, const TraceDivision& from,
                                   const TraceDivision& to, const std::string& file,
                                   Diagnostics& diagnostics);

}  // namespace railyard
