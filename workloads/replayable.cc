// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/replayable.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/diagnostics/names.h"

namespace railyard {
namespace {

constexpr std::array kReplayable = {
    ReplayChoice{Algorithm::kRing, Protocol::kSimple},  // NcclPlanner::PlanRing
};

}  // namespace

std::span<const ReplayChoice> ReplayableChoices() { return kReplayable; }

std::optional<ReplayChoice> FindReplayable(std::string_view algorithm_name) {
  for (const ReplayChoice& choice : kReplayable) {
    if (AlgorithmName(choice.algorithm) == algorithm_name) return choice;
  }
  return std::nullopt;
}

std::optional<ReplayChoice> ReplayChoiceOf(const JobCollective& collective,
                                           const std::optional<ReplayChoice>& forced) {
  if (forced) return forced;
  for (const ReplayChoice& choice : kReplayable) {
    if ((collective.logged_algorithm == Algorithm::kUnstated ||
         collective.logged_algorithm == choice.algorithm) &&
        (collective.logged_protocol == Protocol::kUnstated ||
         collective.logged_protocol == choice.protocol)) {
      return choice;
    }
  }
  return std::nullopt;
}

std::string ReplayName(const ReplayChoice& choice) {
  return fmt::format("{}/{}", AlgorithmName(choice.algorithm), ProtocolName(choice.protocol));
}

std::string ReplayableNames() {
  std::vector<std::string> names;
  for (const ReplayChoice& choice : kReplayable) names.push_back(ReplayName(choice));
  return JoinAlternatives(names);
}

std::string ReplayNameOf(const JobCollective& collective,
                         const std::optional<ReplayChoice>& forced) {
  if (collective.is_p2p()) return fmt::format("P2P/{}", ProtocolName(Protocol::kSimple));
  const std::optional<ReplayChoice> choice = ReplayChoiceOf(collective, forced);
  SIM_CHECK(choice.has_value(), "a collective that cannot be replayed");
  return ReplayName(*choice);
}

}  // namespace railyard
