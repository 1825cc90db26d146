// SPDX-License-Identifier: GPL-2.0-only
// Which rank of its communicator each handle is, and which global ranks each communicator has, also
// those that the log lacks.
#pragma once

#include "traces/nccl_log/nccl_log_placement_draft.h"

namespace railyard {

// After FindGlobalRanks(). Handles whose place is not known are `unplaced` afterwards.
void FindMembers(PlacementDraft& draft);

}  // namespace railyard
