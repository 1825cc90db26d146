// SPDX-License-Identifier: GPL-2.0-only
// Divides a fabric into shards, each of which is simulated by one process.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct ShardMap {
  uint32_t count = 1;
  std::vector<uint32_t> of_device;
  // The links from a shard to other shards, and those from other shards to it, by shard.
  std::vector<std::vector<LinkId>> outgoing;
  std::vector<std::vector<LinkId>> incoming;
  // The shortest propagation time of these links, before which no event of a shard affects another
  // shard. INT64_MAX if no link joins two shards.
  int64_t lookahead_ps = INT64_MAX;
};

// Gives each shard consecutive servers with all that is in them; the numbers of servers differ by
// at most one. A switch outside servers is in the shard to which most of its cables lead; in a tie,
// in the shard with the fewest switches so far. Precondition: `count` is at least 1 and at most the
// number of servers.
ShardMap DivideIntoShards(const FabricGraph& graph, uint32_t count);

}  // namespace railyard
