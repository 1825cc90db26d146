// SPDX-License-Identifier: GPL-2.0-only
// Parts of the network in which some collectives are independent of the rest. Plain state.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/execution/connections/nic_group.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// GPUs whose calls, on some communicators, are independent of the rest of the network, and the
// resources they use: either GPUs of one server with their NVLinks, or GPUs on servers of their own
// with their NICs at one switch.
struct Partition {
  std::vector<GpuIndex> gpus;     // by place
  std::vector<LinkId> links{};    // NVLinks
  uint32_t shape = 0;             // NvlinkPartition's
  bool of_nics = false;           // else of NVLinks
  NicGroup nics{};                // as of when the host last looked at it
  std::vector<bool> may_touch{};  // by communicator: some of its calls may use the NICs
  std::vector<bool> is_near{};    // by GPU: some such communicator has it
  bool is_in_turn = true;         // each rank uses its NVLinks in one operation after the other
  bool is_faulty = false;         // some fault may do something to it

  // Returns the place of a GPU among them.
  uint32_t PlaceOf(GpuIndex gpu) const {
    uint32_t place = 0;
    while (place < gpus.size() && gpus[place] != gpu) ++place;
    return place;
  }
};

}  // namespace railyard
