// SPDX-License-Identifier: GPL-2.0-only
// What can be replayed: every pair of algorithm and protocol that has a schedule, and their names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "workloads/job.h"

namespace railyard {

// A pair of NCCL's algorithm and protocol.
struct ReplayChoice {
  Algorithm algorithm = Algorithm::kUnstated;
  Protocol protocol = Protocol::kUnstated;
  auto operator<=>(const ReplayChoice&) const = default;
};

// The list: what collectives may be planned as, the default first.
std::span<const ReplayChoice> ReplayableChoices();

// The first of the list with the algorithm of that name ("RING"); nullopt if there is none.
std::optional<ReplayChoice> FindReplayable(std::string_view algorithm_name);

// As which choice a collective is replayed: as `forced` whatever its log states, else the first of
// the list that agrees with the log; nullopt if none does.
std::optional<ReplayChoice> ReplayChoiceOf(const JobCollective& collective,
                                           const std::optional<ReplayChoice>& forced);

std::string ReplayName(const ReplayChoice& choice);  // "RING/SIMPLE"
std::string ReplayableNames();                       // of the whole list: "RING/SIMPLE or …"

// What a collective is replayed as, in results: the name of its choice, or "P2P/SIMPLE" for one
// made of Send and Recv, which NCCL does not choose an algorithm for. Precondition: it has a
// choice.
std::string ReplayNameOf(const JobCollective& collective,
                         const std::optional<ReplayChoice>& forced);

}  // namespace railyard
