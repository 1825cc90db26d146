// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/step_aggregation.h"

#include <algorithm>
#include <vector>

namespace railyard {

StepAggregation StepAggregationOf(const LanePeers& listed, RankIndex rank, const Step& step) {
  if (!step.gathers && !step.scatters) return {};
  // One of the two directions is to or from the network.
  const bool sends =
      !listed.send_to.empty() && listed.send_to.front().use == ConnectionUse::kNetworkSum;
  const std::vector<LanePeer>& members = sends ? listed.send_to : listed.recv_from;
  const auto owner = std::ranges::find(members, static_cast<uint32_t>(step.owner), &LanePeer::rank);
  return {
      .operation = {.kind = step.gathers ? Aggregation::Kind::kGather : Aggregation::Kind::kScatter,
                    .blocks = step.pieces,
                    .owner = static_cast<uint32_t>(owner - members.begin())},
      .own_bytes = static_cast<uint32_t>(OwnedPieceOf(step, members, rank).bytes)};
}

}  // namespace railyard
