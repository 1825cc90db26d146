// SPDX-License-Identifier: GPL-2.0-only
// Divides a fabric into shards, each of which one process simulates.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct ShardMap {
  uint32_t count = 1;
  std::vector<uint32_t> of_device;
  // The links that lead to other shards, and those that come from them, by shard.
  std::vector<std::vector<LinkId>> outgoing;
  std::vector<std::vector<LinkId>> incoming;
  // The shortest propagation time of these links: nothing that a shard does has an effect on
  // another one earlier. INT64_MAX where no link joins two shards.
  int64_t lookahead_ps = INT64_MAX;
};

// Each shard gets a run of consecutive servers with all that is in them, as many as the others or
// one fewer. A switch outside of servers is in the shard to which most of its cables lead; if
// several have as many, in the one with the fewest switches so far. Precondition: `count` is at
// least 1 and at most the number of servers.
ShardMap DivideIntoShards(const FabricGraph& graph, uint32_t count);

}  // namespace railyard
