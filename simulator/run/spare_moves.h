// SPDX-License-Identifier: GPL-2.0-only
// Moves the ranks of a job from broken servers to spare ones.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "simulator/units/job_ids.h"
#include "simulator/units/server_index.h"
#include "topologies/graph/graph_ids.h"
#include "workloads/job/job.h"

namespace railyard {

// Lists the GPUs of each server in order.
using GpusOfServers = std::map<ServerIndex, std::vector<GpuIndex>>;

struct SpareMoves {
  std::vector<std::pair<GlobalRank, GlobalRank>> swapped;  // one pair after the other
  uint32_t servers_replaced = 0;
};

// Moves the part's ranks from broken servers to spares that are not broken, rank by rank; the
// broken servers become spares. A spare must be free where the ranks are to be.
SpareMoves MoveToSpares(GpusOfServers gpus_of_server, const std::set<ServerIndex>& broken,
                        PartIndex part, std::vector<ServerIndex>& spares, Job& job);

}  // namespace railyard
