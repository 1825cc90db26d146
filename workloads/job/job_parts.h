// SPDX-License-Identifier: GPL-2.0-only
// Joins jobs that share a fabric into one, and extracts one of them again.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/job/job.h"

namespace railyard {

// Returns a job of all jobs, in their order. Each becomes a part whose ranks are the `global_ranks`
// of its only part; its communicators are named PART/COMMUNICATOR. Global ranks in between have
// empty programs. Preconditions: each job has one part, and no global rank belongs to two of them.
Job JoinJobs(std::vector<Job> jobs);

// Exchanges the programs of two global ranks. Communicators and the part keep the order of their
// ranks.
void SwapRanks(GlobalRank a, GlobalRank b, Job& job);
// Extends the job to `rank_count` global ranks; new ranks have no program.
void GrowTo(uint32_t rank_count, Job& job);

// Returns the job with empty programs for the ranks of all other parts; all numbers stay as they
// are.
Job AloneOf(const Job& job, PartIndex part);

// ToleratesLoss() returns true if some operation lets receivers miss packets; ReliableOf() returns
// the job without such tolerances.
bool ToleratesLoss(const Job& job);
Job ReliableOf(const Job& job);

}  // namespace railyard
