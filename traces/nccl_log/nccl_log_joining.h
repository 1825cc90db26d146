// SPDX-License-Identifier: GPL-2.0-only
// Which handles of different processes are one communicator: those of a commId, of a split (by
// parent, split and color) without one, all others by size where only one reading is possible.
#pragma once

#include "traces/nccl_log/nccl_log_placement_draft.h"

namespace railyard {

// Puts every handle into a group. One that is `crowded` afterwards holds several communicators.
void JoinHandles(PlacementDraft& draft);

}  // namespace railyard
