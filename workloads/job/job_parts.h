// SPDX-License-Identifier: GPL-2.0-only
// Jobs that share a fabric, made one, and one of them taken alone.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/job/job.h"

namespace railyard {

// The jobs side by side, in their order, each a part with its ranks where its only part's
// `global_ranks` puts them, its communicators called PART/COMMUNICATOR. Global ranks in between
// have empty programs. Preconditions: each job has one part, and no two of them a global rank in
// common.
Job JoinJobs(std::vector<Job> jobs);

// Exchanges the programs of two global ranks. Communicators and the part keep the order of their
// ranks.
void SwapRanks(uint32_t a, uint32_t b, Job& job);
// The job with room for so many global ranks, those that are new without a program.
void GrowTo(uint32_t rank_count, Job& job);

// The job with nothing in the programs of the other parts' ranks; all numbers stay as they are.
Job AloneOf(const Job& job, uint32_t part);

// Whether receivers do without some of what an operation sends; the job without that.
bool ToleratesLoss(const Job& job);
Job ReliableOf(const Job& job);

}  // namespace railyard
