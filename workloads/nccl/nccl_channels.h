// SPDX-License-Identifier: GPL-2.0-only
// Determines the channels that NCCL builds for a communicator: a ring per channel, and the channels
// of Send/Recv. The model covers the outcome of NCCL's graph search (src/graph/search.cc,
// connect.cc, paths.cc) for H100 servers with one 400 or 200 Gb/s NIC per GPU behind a common PCIe
// switch. It leaves out the search itself; for layouts on which the search was not run, an
// analogous rule applies and `assumptions` gets a sentence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/nccl/communicator_layout.h"
#include "workloads/nccl/nccl_settings.h"

namespace railyard {

// Holds the channels of one communicator: each is a ring over its ranks.
struct CommunicatorChannels {
  // rings[channel][position] → communicator rank; position 0 is rank 0, as NCCL prints rings.
  std::vector<std::vector<uint32_t>> rings;
  // sending_nic[channel][rank] is the local index of the GPU whose NIC carries the channel out of
  // the rank's server. It is meaningful if the ring's next rank is on another node, and differs
  // from the rank's local index if the data is relayed (PXN).
  std::vector<std::vector<uint32_t>> sending_nic;
  // For a mesh (CommunicatorLayout::mesh_lanes): the order of a node's GPUs on each ring that was
  // found, before duplication.
  std::vector<std::vector<uint32_t>> mesh_rings;
  uint32_t graph_channel_count = 0;  // rings that the search found, before duplication
  uint32_t p2p_channel_count = 0;    // a power of two; may exceed the number of rings
  uint32_t p2p_channels_per_peer = 0;
  std::vector<std::string> assumptions;  // one sentence per rule that does not cover this layout
};

// Returns the channels; a communicator of one rank has none. Precondition: the layout's nodes are
// numbered as in RankPlace, with distinct local indices.
CommunicatorChannels BuildChannels(const CommunicatorLayout& layout, const NcclSettings& settings);

}  // namespace railyard
