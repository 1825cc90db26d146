// SPDX-License-Identifier: GPL-2.0-only
// Finds the rank of each handle in its communicator, and the global ranks of each communicator,
// including ranks that the log lacks.
#pragma once

#include "traces/nccl_log/nccl_log_placement_draft.h"

namespace railyard {

// Finds the members. Handles of unknown rank are `unplaced` afterwards. Precondition:
// FindGlobalRanks() has run.
void FindMembers(PlacementDraft& draft);

}  // namespace railyard
