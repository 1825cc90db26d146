// SPDX-License-Identifier: GPL-2.0-only
// What can be replayed: every pair of algorithm and protocol that has a schedule, and their names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "workloads/job/job.h"

namespace railyard {

// A pair of NCCL's algorithm and protocol; kUnstated: left to NCCL.
struct ReplayChoice {
  Algorithm algorithm = Algorithm::kUnstated;
  Protocol protocol = Protocol::kUnstated;
  auto operator<=>(const ReplayChoice&) const = default;
};

// The list of those that have a schedule (NcclPlanner::Plan). Not every one of them suits every
// kind of collective and every communicator: NcclPlanner::Choose.
std::span<const ReplayChoice> ReplayableChoices();
bool IsReplayable(const ReplayChoice& choice);

// Returns the choice that is fixed before NCCL's tuner chooses: the forced one, else the one that
// the collective's log states.
ReplayChoice StatedChoice(const JobCollective& collective);

// Returns "RING/SIMPLE"; "RING" or "SIMPLE" if only one of them is stated; "-" if neither is.
std::string ReplayName(const ReplayChoice& choice);
// The name for collectives made of Send and Recv: NCCL chooses no algorithm for them, and each
// message has its own protocol, LL or Simple.
inline constexpr std::string_view kP2pReplayName = "P2P";

}  // namespace railyard
