// SPDX-License-Identifier: GPL-2.0-only
// Which global rank each process (and device) is: what a rank map or RCCL's globalrank says, else
// its rank in the job's communicator, else what can be concluded from the order of names.
#pragma once

#include "traces/nccl_log/nccl_log_placement_draft.h"
#include "traces/nccl_log/nccl_log_reader.h"

namespace railyard {

// After JoinHandles(). The rank count of the job is found as well.
void FindGlobalRanks(PlacementDraft& draft, const NcclLogOptions& options);

}  // namespace railyard
