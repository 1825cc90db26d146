// SPDX-License-Identifier: GPL-2.0-only
// Finds the handles of different processes that are one communicator. Handles are joined by commId;
// splits without one by parent, split and color; all others by size if there is only one
// possibility.
#pragma once

#include "traces/nccl_log/nccl_log_placement_draft.h"

namespace railyard {

// Puts every handle into a group. A group that is `crowded` afterwards contains several
// communicators.
void JoinHandles(PlacementDraft& draft);

}  // namespace railyard
