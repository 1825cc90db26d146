// SPDX-License-Identifier: GPL-2.0-only
// Lists the pairs of algorithm and protocol that have a schedule, and names them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "workloads/job/job.h"

namespace railyard {

// Holds a pair of NCCL's algorithm and protocol; kUnstated leaves the choice to NCCL.
struct ReplayChoice {
  Algorithm algorithm = Algorithm::kUnstated;
  Protocol protocol = Protocol::kUnstated;
  auto operator<=>(const ReplayChoice&) const = default;
};

// Returns the pairs that have a schedule (NcclPlanner::Plan). Some do not support every kind of
// collective or every communicator: see NcclPlanner::Choose.
std::span<const ReplayChoice> ReplayableChoices();

// Returns the choice that is fixed before NCCL's tuner chooses: the forced one, else the one that
// the collective's log states.
ReplayChoice StatedChoice(const JobCollective& collective);

// Returns "RING/SIMPLE"; "RING" or "SIMPLE" if only one of them is stated; "-" if neither is.
std::string ReplayName(const ReplayChoice& choice);
// The name for collectives made of Send and Recv: NCCL chooses no algorithm for them, and each
// message has its own protocol, LL or Simple.
inline constexpr std::string_view kP2pReplayName = "P2P";
// Returns that name, or the expert kernel's, e.g. "DEEPEP".
std::string P2pReplayName(const JobCollective& collective);

}  // namespace railyard
