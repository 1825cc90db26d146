// SPDX-License-Identifier: GPL-2.0-only
// Finds the global rank of each process (and device): the one in a rank map or RCCL's globalrank,
// else the rank in the job's communicator, else one inferred from the order of names.
#pragma once

#include "traces/nccl_log/nccl_log_placement_draft.h"
#include "traces/nccl_log/nccl_log_reader.h"

namespace railyard {

// Finds the ranks, and also the rank count of the job. Precondition: JoinHandles() has run.
void FindGlobalRanks(PlacementDraft& draft, const NcclLogOptions& options);

}  // namespace railyard
