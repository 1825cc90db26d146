// SPDX-License-Identifier: GPL-2.0-only
// Matches the calls of different ranks: the n-th collective of a group is the same on all its
// ranks.
#pragma once

#include <cstdint>
#include <string>

#include "traces/reading/captured_job.h"

namespace railyard {

inline constexpr uint32_t kNotAMember = UINT32_MAX;
// Returns the rank's number in the group, or kNotAMember.
uint32_t CommunicatorRankIn(const CapturedGroup& group, uint32_t rank);

// Marks the call as dropped and counts it, unless it is already dropped or is computation.
void DropCapturedCall(CapturedCall& call, CallDropReason reason, std::string detail,
                      ImportReport& report);

// Drops the calls that have no counterparts on captured ranks, or that differ from them. If each
// collective of a group has an identity, those that all captured ranks have are matched by it, else
// by their order. An AllToAll keeps its parts only if they are unequal, and then `all_to_all` of
// its operation is its number. Precondition: groups have their members, and each call belongs to a
// group.
//
// With `silent_ranks_repeat`, a captured rank that has no collective of a group does not prevent
// the match of the other ranks, because it must have made the same calls. Returns true if there is
// such a rank.
bool MatchCapturedCalls(CapturedJob& job, bool silent_ranks_repeat, ImportReport& report);

}  // namespace railyard
