// SPDX-License-Identifier: GPL-2.0-only
// Ranks that were not captured make the calls of one that was, where symmetry allows it.
//
// Groups whose ranks are `size` ones, `stride` apart, are a family if the job divides into such
// groups: every rank is in one. Where all captured ranks make as many calls per family, a missing
// rank makes those of the lowest captured rank, on its own group of each family; peers keep their
// distance. Where captured ranks make different calls, as in a pipeline, a missing rank makes only
// the collectives of groups that it shares with captured ranks, each group on a stream of its own.
#pragma once

#include <cstdint>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/captured_job.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// Drops calls that need ranks which are missing and cannot be given them: Sends and Recvs, unless
// all captured ranks make the same up to the distance to their peers, with as many Sends over a
// distance as Recvs. True if they do.
bool DropWhatCannotBeRepeated(CapturedJob& job, uint32_t rank_count, ImportReport& report);

struct Repetition {
  bool of_point_to_point = false;  // of Sends and Recvs as well
  bool only_by_group = false;      // captured ranks lack calls of groups that they are in, too
};
// Gives the missing ranks of `trace`, which has the operations of the captured ones, theirs. False
// with a finding at `where` if they are too many.
bool ReconstructMissingRanks(CapturedJob& job, const Repetition& repetition, Trace& trace,
                             ImportReport& report, const SourceLocation& where,
                             Diagnostics& diagnostics);

}  // namespace railyard
