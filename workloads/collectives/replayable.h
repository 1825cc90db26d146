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

// What is fixed about a collective before NCCL's tuner chooses: what it is forced to be replayed
// as, else what its log states.
ReplayChoice StatedChoice(const JobCollective& collective);

// "RING/SIMPLE"; "RING" or "SIMPLE" where only one is stated; "-" where none is.
std::string ReplayName(const ReplayChoice& choice);
// Of collectives made of Send and Recv, which NCCL does not choose an algorithm for; each message
// has its protocol, LL or Simple.
inline constexpr std::string_view kP2pReplayName = "P2P";

}  // namespace railyard
