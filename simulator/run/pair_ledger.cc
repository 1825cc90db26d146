// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/pair_ledger.h"

#include <algorithm>
#include <vector>

namespace railyard {

PairLedger::PairLedger(const FabricGraph& fabric, const LaneExecutor& executor) {
  for (uint32_t id = 0; id < executor.connections().size(); ++id) {
    const Connection& connection = executor.connections()[id];
    const uint64_t payload_bytes = executor.PayloadBytesOf(id);
    if (payload_bytes == 0) continue;
    std::vector<Tier> tiers;  // in order, each once
    for (const LinkId link : executor.LinksOf(connection)) {
      const Tier tier = fabric.link(link).tier;
      if (std::find(tiers.begin(), tiers.end(), tier) == tiers.end()) tiers.push_back(tier);
    }
    std::string names;
    bool reached_spine = false;
    for (const Tier tier : tiers) {
      if (!names.empty()) names += '+';
      names += TierName(tier);
      reached_spine |= tier == Tier::kLeafSpine || tier == Tier::kSpineCore;
    }
    bytes_[{{connection.from_gpu, connection.to_gpu}, names}] += payload_bytes;
    payload_bytes_ += payload_bytes;
    if (connection.network || connection.is_network_sum) left_server_bytes_ += payload_bytes;
    if (reached_spine) reached_spine_bytes_ += payload_bytes;
  }
}

void PairLedger::Record(RunResult& result) const {
  result.payload_bytes = payload_bytes_;
  result.payload_left_server_bytes = left_server_bytes_;
  result.payload_reached_spine_bytes = reached_spine_bytes_;
  for (const auto& [pair, bytes] : bytes_) {
    result.pairs.push_back({.source_gpu = pair.first.first,
                            .destination_gpu = pair.first.second,
                            .tiers = pair.second,
                            .payload_bytes = bytes});
  }
}

}  // namespace railyard
