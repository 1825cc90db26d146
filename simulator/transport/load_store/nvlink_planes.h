// SPDX-License-Identifier: GPL-2.0-only
// Knows the planes of NVSwitches that join GPUs, and the orders in which packets use them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

class NvlinkPlanes {
 public:
  // Holds the order in which consecutive packets use the planes that join a pair. Pairs with the
  // same weights share it.
  struct Interleave {
    std::vector<uint8_t> plane_of_position;
    std::vector<uint32_t> weights;
  };

  explicit NvlinkPlanes(const FabricGraph& graph);

  // Returns whether the paths are those over all NVSwitches of both GPUs, in order.
  bool AreAll(GpuIndex source_gpu, GpuIndex destination_gpu,
              const std::vector<FabricGraph::NvlinkPath>& paths) const;
  // Returns the place of a GPU's first plane in the tables of links. The GPU's others follow.
  uint32_t FirstPlaceOf(GpuIndex gpu) const { return gpu * planes_max_; }
  // These return the link between the GPU and the NVSwitch of a place.
  LinkId Up(uint32_t place) const { return up_links_[place]; }
  LinkId Down(uint32_t place) const { return down_links_[place]; }

  // Returns the number of the order in which planes are used in the ratio of these weights.
  uint16_t InterleaveOf(const std::vector<uint32_t>& weights);
  const Interleave& interleave(uint16_t number) const { return interleaves_[number]; }

 private:
  // The links of each GPU to and from its NVSwitches, in the order of the switches' numbers. Paths
  // between two GPUs with the same NVSwitches are composed of these instead of being stored, which
  // saves memory.
  std::vector<LinkId> up_links_;
  std::vector<LinkId> down_links_;
  uint32_t planes_max_ = 0;
  std::vector<Interleave> interleaves_;
  std::map<std::vector<uint32_t>, uint16_t> interleave_of_weights_;
};

}  // namespace railyard
