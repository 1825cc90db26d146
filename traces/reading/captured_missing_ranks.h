// SPDX-License-Identifier: GPL-2.0-only
// Gives ranks that were not captured the calls of a captured rank if symmetry allows it.
//
// Groups of `size` ranks, at a distance of `stride`, form a family if every rank of the job is in
// exactly one of them. If all captured ranks make as many calls per family, a missing rank makes
// those of the lowest captured rank, on its own group of each family; peers keep their distance. If
// captured ranks make different calls, as in a pipeline, a missing rank makes only the collectives
// of groups that it shares with captured ranks, each group on a separate stream.
#pragma once

#include <cstdint>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/captured_job.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// Drops calls that need missing ranks and cannot be repeated for them: Sends and Recvs, unless all
// captured ranks make the same calls relative to their own rank, with as many Sends over a distance
// as Recvs. Returns true if they do.
bool DropWhatCannotBeRepeated(CapturedJob& job, uint32_t rank_count, ImportReport& report);

struct Repetition {
  bool of_point_to_point = false;  // Sends and Recvs as well
  bool only_by_group = false;      // captured ranks, too, lack calls of their groups
};
// Adds the operations of the missing ranks to `trace`, which has those of the captured ones.
// Returns false with a finding at `where` if they are too many.
bool ReconstructMissingRanks(CapturedJob& job, const Repetition& repetition, Trace& trace,
                             ImportReport& report, const SourceLocation& where,
                             Diagnostics& diagnostics);

}  // namespace railyard
