// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_placement.h"

#include <utility>

#include "traces/nccl_log/nccl_log_global_ranks.h"
#include "traces/nccl_log/nccl_log_joining.h"
#include "traces/nccl_log/nccl_log_members.h"
#include "traces/nccl_log/nccl_log_placement_draft.h"

namespace railyard {

Placement PlaceRanks(const LoggedCalls& logged, const NcclLogOptions& options, ImportReport& report,
                     Diagnostics& diagnostics) {
  PlacementDraft draft(logged, report, diagnostics);
  JoinHandles(draft);
  FindGlobalRanks(draft, options);
  FindMembers(draft);
  return std::move(draft.placement);
}

}  // namespace railyard
