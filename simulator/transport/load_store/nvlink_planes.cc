// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/load_store/nvlink_planes.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>

namespace railyard {
namespace {

// Spreads `weights[p]` packets of every round as evenly as possible over the round: each position
// gets the plane that is furthest behind its share.
std::vector<uint8_t> SpreadByWeight(const std::vector<uint32_t>& weights) {
  const uint32_t round = std::accumulate(weights.begin(), weights.end(), 0u);
  std::vector<uint8_t> plane_of_position;
  std::vector<int64_t> credit(weights.size());
  for (uint32_t position = 0; position < round; ++position) {
    for (size_t plane = 0; plane < weights.size(); ++plane) credit[plane] += weights[plane];
    const auto chosen = std::max_element(credit.begin(), credit.end()) - credit.begin();
    credit[static_cast<size_t>(chosen)] -= round;
    plane_of_position.push_back(static_cast<uint8_t>(chosen));
  }
  return plane_of_position;
}

}  // namespace

NvlinkPlanes::NvlinkPlanes(const FabricGraph& graph) {
  std::vector<std::vector<DeviceId>> planes;  // by GPU
  for (const DeviceId gpu : graph.gpus()) {
    std::set<DeviceId> of_gpu;
    for (const auto edge : boost::make_iterator_range(boost::out_edges(gpu, graph.graph()))) {
      const auto neighbour = static_cast<DeviceId>(boost::target(edge, graph.graph()));
      if (graph.device(neighbour).kind == DeviceKind::kNvSwitch) of_gpu.insert(neighbour);
    }
    planes.emplace_back(of_gpu.begin(), of_gpu.end());
    planes_max_ = std::max(planes_max_, static_cast<uint32_t>(of_gpu.size()));
  }
  up_links_.assign(planes.size() * planes_max_, LinkId::kNone);
  down_links_.assign(planes.size() * planes_max_, LinkId::kNone);
  for (GpuIndex gpu{0}; gpu < planes.size(); ++gpu) {
    for (size_t plane = 0; plane < planes[gpu].size(); ++plane) {
      const LinkId up = graph.FindLink(graph.gpus()[gpu], planes[gpu][plane]).value();
      const auto down = graph.FindLink(planes[gpu][plane], graph.gpus()[gpu]);
      const size_t place = size_t{gpu} * planes_max_ + plane;
      up_links_[place] = up;
      if (down) down_links_[place] = *down;
    }
  }
}

bool NvlinkPlanes::AreAll(GpuIndex source_gpu, GpuIndex destination_gpu,
                          const std::vector<FabricGraph::NvlinkPath>& paths) const {
  for (uint32_t plane = 0; plane < planes_max_; ++plane) {
    const LinkId up = up_links_[FirstPlaceOf(source_gpu) + plane];
    const LinkId down = down_links_[FirstPlaceOf(destination_gpu) + plane];
    if (plane >= paths.size()) {
      if (up != LinkId::kNone || down != LinkId::kNone) return false;
    } else if (paths[plane].links != std::vector<LinkId>{up, down}) {
      return false;
    }
  }
  return paths.size() <= planes_max_;
}

uint16_t NvlinkPlanes::InterleaveOf(const std::vector<uint32_t>& weights) {
  const auto [it, is_new] =
      interleave_of_weights_.try_emplace(weights, static_cast<uint16_t>(interleaves_.size()));
  if (is_new) interleaves_.push_back({SpreadByWeight(weights), weights});
  return it->second;
}

}  // namespace railyard
