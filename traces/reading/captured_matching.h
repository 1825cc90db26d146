// SPDX-License-Identifier: GPL-2.0-only
// Calls of different ranks put together: the n-th collective of a group is one on all its ranks.
#pragma once

#include <cstdint>
#include <string>

#include "traces/reading/captured_job.h"

namespace railyard {

inline constexpr uint32_t kNotAMember = UINT32_MAX;
// The rank's number in the group; kNotAMember where it has none.
uint32_t CommunicatorRankIn(const CapturedGroup& group, uint32_t rank);

// Marks the call as dropped and counts it, unless it is dropped or computation.
void DropCapturedCall(CapturedCall& call, CallDropReason reason, std::string detail,
                      ImportReport& report);

// Drops the calls that lack their counterparts on captured ranks, or differ from them. Where each
// collective of a group has an identity, those that all captured ranks have are matched by it; else
// by their order. An AllToAll keeps its parts only where they are unequal, and then `all_to_all` of
// its operation is its number. Precondition: groups have their members, calls a group of theirs.
// With `silent_ranks_repeat`, a captured rank without any collective of a group does not stop that
// of the others, for it must have made them as well. True if there is such a rank.
bool MatchCapturedCalls(CapturedJob& job, bool silent_ranks_repeat, ImportReport& report);

}  // namespace railyard
