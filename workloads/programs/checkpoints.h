// SPDX-License-Identifier: GPL-2.0-only
// Adds checkpoints to a job, as computation between its iterations.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/job/job.h"
#include "workloads/job/job_iterations.h"

namespace railyard {

// Holds the operation after each checkpoint, ascending, by program.
using CheckpointPlaces = std::vector<std::vector<uint32_t>>;

// Makes every rank stop before iterations `every`, 2 `every`, … (counted from 0) until all its
// earlier operations are done, on all its streams, and then for `save_ps`. A later operation that
// begins its stream and names no operation to wait for waits for the checkpoint. `iterations`
// belong to one part; only its programs are changed. Precondition: every >= 1.
CheckpointPlaces AddCheckpoints(const IterationBegins& iterations, uint64_t every, int64_t save_ps,
                                Job& job);

// Returns a collective that some ranks call before a checkpoint and others after it, or nullopt.
std::optional<uint32_t> CollectiveAcross(const CheckpointPlaces& places, const Job& job);

}  // namespace railyard
