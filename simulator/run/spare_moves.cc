// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/spare_moves.h"

#include <algorithm>
#include <cstddef>

#include "workloads/job/job_parts.h"
#include "workloads/layout/gpu_of_rank.h"

namespace railyard {

SpareMoves MoveToSpares(GpusOfServers gpus_of_server, const std::set<ServerIndex>& broken,
                        PartIndex part, std::vector<ServerIndex>& spares, Job& job) {
  SpareMoves moves;
  const std::vector<PartIndex> part_of_rank = job.PartsOfRanks();
  const auto has_rank = [&job](GpuIndex gpu) {
    return gpu < job.rank_count && !job.operations[RankOn(gpu)].empty();
  };
  for (const ServerIndex server : broken) {
    const std::vector<GpuIndex>& gpus = gpus_of_server[server];
    std::vector<size_t> places;  // of the part's ranks in the server
    for (size_t i = 0; i < gpus.size(); ++i) {
      if (has_rank(gpus[i]) && part_of_rank[RankOn(gpus[i])] == part) places.push_back(i);
    }
    // Another job may have come first.
    const auto spare = std::ranges::find_if(spares, [&](ServerIndex candidate) {
      return !broken.contains(candidate) && std::ranges::none_of(places, [&](size_t place) {
        return has_rank(gpus_of_server[candidate][place]);
      });
    });
    if (places.empty() || spare == spares.end()) continue;
    for (const size_t place : places) {
      moves.swapped.emplace_back(RankOn(gpus[place]), RankOn(gpus_of_server[*spare][place]));
      SwapRanks(moves.swapped.back().first, moves.swapped.back().second, job);
    }
    *spare = server;
    ++moves.servers_replaced;
  }
  return moves;
}

}  // namespace railyard
