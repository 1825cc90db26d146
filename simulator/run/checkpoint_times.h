// SPDX-License-Identifier: GPL-2.0-only
// Says when the ranks of a job have saved its checkpoints.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/replay/streams/call_ledger.h"
#include "simulator/units/job_ids.h"
#include "workloads/job/job.h"
#include "workloads/programs/checkpoints.h"

namespace railyard {

// Describes the part of a job that has checkpoints, and the collectives' times so far.
struct CheckpointedPart {
  const Job& job;
  PartIndex part;
  const CheckpointPlaces& places;
  const std::vector<CollectiveTimes>& times;  // by collective
};

// Returns the time at which all ranks had saved the checkpoint of that number, from 0; kNeverPs
// if a collective before it has not ended. `progress_ps` is the time of the previous checkpoint or
// of the last (re)start of the job. Computation counts from the end of the collective before it on
// its stream or, if there is none, from `progress_ps`.
int64_t SavedPs(const CheckpointedPart& part, uint64_t checkpoint, int64_t progress_ps);

}  // namespace railyard
