// SPDX-License-Identifier: GPL-2.0-only
// Checkpoints of a job, as computation between its iterations.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workloads/job/job.h"
#include "workloads/job/job_iterations.h"

namespace railyard {

// By program: of every checkpoint the operation that follows upon it, ascending.
using CheckpointPlaces = std::vector<std::vector<uint32_t>>;

// Has every rank stop before iteration `every`, 2 `every`, … (counted from 0) until all that it did
// before is done, on all its streams, and then for `save_ps`; what begins its stream after that and
// names no operation to wait for waits for the checkpoint. `iterations` are of one part, whose
// programs alone are changed. Precondition: every >= 1.
CheckpointPlaces AddCheckpoints(const IterationBegins& iterations, uint64_t every, int64_t save_ps,
                                Job& job);

// A collective that some ranks call before a checkpoint and others after it; nullopt: there is
// none.
std::optional<uint32_t> CollectiveAcross(const CheckpointPlaces& places, const Job& job);

}  // namespace railyard
