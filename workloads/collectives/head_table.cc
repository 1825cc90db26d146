// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/head_table.h"

#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"

namespace railyard {

HeadTable::HeadTable(std::vector<std::vector<RankIndex>> ranks_by_server)
    : servers(std::move(ranks_by_server)) {
  size_t rank_count = 0;
  for (const auto& ranks : servers) rank_count += ranks.size();
  server_of.resize(rank_count);
  head_of.resize(rank_count);
  for (uint32_t server = 0; server < servers.size(); ++server) {
    SIM_CHECK(servers[server].size() == servers.front().size(),
              "heads on servers with different numbers of GPUs");
    for (uint32_t head = 0; head < servers[server].size(); ++head) {
      server_of[servers[server][head]] = server;
      head_of[servers[server][head]] = head;
    }
  }
}

std::vector<LanePeer> HeadTable::HeadsOfSlice(RankIndex rank, ConnectionUse use) const {
  std::vector<LanePeer> peers;
  peers.reserve(servers.size());
  for (const auto& ranks : servers) peers.push_back({ranks[head_of[rank]], use});
  return peers;
}

SliceChunk ChunkLoops::ChunkOf(uint64_t loop, uint64_t part) const {
  const uint64_t begin_bytes = loop * parts * chunk_bytes;
  const uint64_t rest_bytes = total_bytes - begin_bytes;
  const uint64_t bytes = rest_bytes < parts * chunk_bytes
                             ? DivideUp(DivideUp(rest_bytes, parts), grain_bytes) * grain_bytes
                             : chunk_bytes;
  const uint64_t within_bytes = std::min(rest_bytes, part * bytes);
  return {begin_bytes + within_bytes, std::min(bytes, rest_bytes - within_bytes)};
}

}  // namespace railyard
