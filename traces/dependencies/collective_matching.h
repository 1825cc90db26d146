// SPDX-License-Identifier: GPL-2.0-only
// Matches the collectives of a graph's ranks: the n-th of a communicator is the same one on all its
// ranks.
#pragma once

#include <string>
#include <vector>

#include "traces/dependencies/dependency_graph.h"
#include "traces/trace/import_report.h"

namespace railyard {

struct UnmatchedCollective {
  GraphPlace place;
  CallDropReason reason = CallDropReason::kRanksDisagree;
  std::string detail;
};

// Returns the collectives from the first of a communicator that its ranks do not make alike, each
// with what differs. `order` has every operation once and defines the order of a rank's calls.
// Ranks in repeats_another are not compared.
std::vector<UnmatchedCollective> FindUnmatchedCollectives(const DependencyGraph& graph,
                                                          const std::vector<GraphPlace>& order);

}  // namespace railyard
