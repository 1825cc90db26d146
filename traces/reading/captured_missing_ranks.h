// SPDX-License-Identifier: GPL-2.0-only
// Ranks that were not captured make the calls of one that was, where symmetry allows it.
//
// Groups whose ranks are `size` ones, `stride` apart, are a family if the job divides into such
// groups: every rank is in one. A missing rank makes the calls of the lowest captured rank on its
// own group of each family; peers keep their distance. That is sound where all captured ranks make
// as many calls per family.
#pragma once

#include <cstdint>

#include "simulator/diagnostics/diagnostics.h"
#include "traces/reading/captured_job.h"
#include "traces/trace/import_report.h"
#include "traces/trace/trace.h"

namespace railyard {

// Drops calls that need ranks which are missing and cannot be given them: on groups of no family
// that the lowest captured rank is not in, and Sends and Recvs unless all captured ranks make the
// same up to the distance to their peers, with as many Sends over a distance as Recvs.
void DropWhatCannotBeRepeated(CapturedJob& job, uint32_t rank_count, ImportReport& report);

// Gives the missing ranks of `trace`, which has the operations of the captured ones, theirs. False
// with a finding at `where` if captured ranks make different calls.
bool ReconstructMissingRanks(CapturedJob& job, Trace& trace, ImportReport& report,
                             const SourceLocation& where, Diagnostics& diagnostics);

}  // namespace railyard
