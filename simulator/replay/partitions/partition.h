// SPDX-License-Identifier: GPL-2.0-only
// Describes parts of the network in which some collectives are independent of the rest, as plain
// state.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/execution/connections/nic_groups.h"
#include "simulator/replay/episodes/episode_place.h"
#include "simulator/units/job_ids.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Describes GPUs whose calls, on some communicators, are independent of the rest of the network,
// and the resources that they use: either GPUs of one server with their NVLinks, or GPUs on
// different servers with their NICs at one switch.
struct Partition {
  std::vector<GpuIndex> gpus;                      // by place
  std::vector<LinkId> links{};                     // NVLinks
  uint32_t shape = 0;                              // that of the NvlinkPartition
  bool of_nics = false;                            // else it consists of NVLinks
  std::vector<CommunicatorIndex> communicators{};  // of its NICs: those of exactly these GPUs
  NicGroup nics{};                                 // as of the host's last Renew()
  std::vector<bool> may_touch{};                   // by communicator: its calls may use the NICs
  std::vector<bool> is_near{};                     // by GPU: it is in such a communicator
  bool is_in_turn = true;  // each rank's operations use its NVLinks one after the other
  bool is_faulty = false;  // a fault may affect it

  // Returns the place of a GPU in `gpus`.
  EpisodePlace PlaceOf(GpuIndex gpu) const {
    EpisodePlace place{};
    while (place < gpus.size() && gpus[place] != gpu) ++place;
    return place;
  }
};

}  // namespace railyard
