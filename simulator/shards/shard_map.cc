// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/shards/shard_map.h"

#include <algorithm>

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

constexpr uint32_t kNoShard = UINT32_MAX;

// Chooses shards for the switches outside of servers, those next to what has one first.
class SwitchPlacement {
 public:
  SwitchPlacement(const FabricGraph& graph, ShardMap& map)
      : graph_(graph), map_(map), neighbours_(graph.device_count()), switches_(map.count) {
    for (LinkId id{0}; id < graph.link_count(); ++id) {
      neighbours_[graph.link_source(id)].push_back(graph.link_target(id));
    }
  }

  void Place() {
    std::vector<DeviceId> left;
    for (DeviceId id{0}; id < graph_.device_count(); ++id) {
      if (map_.of_device[id] == kNoShard) left.push_back(id);
    }
    while (!left.empty()) {
      std::vector<DeviceId> next;
      std::vector<std::pair<DeviceId, uint32_t>> placed;
      for (const DeviceId id : left) {
        const uint32_t shard = ShardOf(id);
        if (shard == kNoShard) {
          next.push_back(id);
          continue;
        }
        ++switches_[shard];
        placed.emplace_back(id, shard);
      }
      if (placed.empty()) {  // joined to no server
        for (const DeviceId id : next) map_.of_device[id] = 0;
        return;
      }
      for (const auto& [id, shard] : placed) map_.of_device[id] = shard;
      left = std::move(next);
    }
  }

 private:
  // Returns kNoShard if no neighbour has one.
  uint32_t ShardOf(DeviceId id) const {
    std::vector<uint32_t> cables(map_.count);
    for (const DeviceId neighbour : neighbours_[id]) {
      if (map_.of_device[neighbour] != kNoShard) ++cables[map_.of_device[neighbour]];
    }
    uint32_t best = 0;
    for (uint32_t shard = 1; shard < map_.count; ++shard) {
      const bool is_better = cables[shard] > cables[best] ||
                             (cables[shard] == cables[best] && switches_[shard] < switches_[best]);
      if (is_better) best = shard;
    }
    return cables[best] == 0 ? kNoShard : best;
  }

  const FabricGraph& graph_;
  ShardMap& map_;
  std::vector<std::vector<DeviceId>> neighbours_;
  std::vector<uint32_t> switches_;  // by shard
};

}  // namespace

ShardMap DivideIntoShards(const FabricGraph& graph, uint32_t count) {
  const uint32_t servers = graph.server_count();
  SIM_CHECK(count > 0 && count <= servers, "more shards than servers");
  ShardMap map{.count = count,
               .of_device = std::vector<uint32_t>(graph.device_count(), kNoShard),
               .outgoing = std::vector<std::vector<LinkId>>(count),
               .incoming = std::vector<std::vector<LinkId>>(count)};
  for (DeviceId id{0}; id < graph.device_count(); ++id) {
    if (!graph.IsInServer(id)) continue;
    map.of_device[id] = static_cast<uint32_t>(uint64_t{graph.device(id).server} * count / servers);
  }
  SwitchPlacement(graph, map).Place();
  for (LinkId id{0}; id < graph.link_count(); ++id) {
    const uint32_t from = map.of_device[graph.link_source(id)];
    const uint32_t to = map.of_device[graph.link_target(id)];
    if (from == to) continue;
    map.outgoing[from].push_back(id);
    map.incoming[to].push_back(id);
    map.lookahead_ps = std::min(map.lookahead_ps, graph.link(id).propagation_ps);
  }
  return map;
}

}  // namespace railyard
