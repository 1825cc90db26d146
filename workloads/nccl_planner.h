// SPDX-License-Identifier: GPL-2.0-only
// NCCL's choices, apart from the algorithms themselves: channels and their rings for a
// communicator, the split of a collective over channels, and how two ranks are connected.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workloads/job.h"
#include "workloads/schedule.h"

namespace railyard {

// Where a communicator's ranks are: what NCCL's topology detection would find.
struct RankPlace {
  uint32_t node = 0;         // nodes numbered in order of first appearance in rank order
  uint32_t local_index = 0;  // the GPU's index in its server
};
struct CommunicatorLayout {
  std::vector<RankPlace> ranks;
  uint32_t gpus_per_server = 8;  // of the platform, not of the communicator
  uint32_t node_count() const;
};

// NCCL's variables, by its own names (without NCCL_), with the defaults of the stated version.
struct NcclSettings {
  uint32_t version = 22705;  // as ncclGetVersion: 2.27.5
  uint64_t buffsize_bytes = 4u << 20;
  uint32_t cross_nic = 2;
  uint32_t min_nchannels = 0;  // 0: not set
  uint32_t max_nchannels = 0;
  bool pxn_disable = false;
  uint64_t p2p_net_chunksize_bytes = 128u << 10;
  uint64_t p2p_nvl_chunksize_bytes = 512u << 10;
  uint32_t nchannels_per_net_peer = 0;  // 0: not set
};
std::optional<uint32_t> ParseNcclVersion(const std::string& text);  // "2.27.5" → 22705

// The channels of one communicator: each is a ring over its ranks.
struct CommunicatorChannels {
  std::vector<std::vector<uint32_t>> rings;  // rings[channel][position] → communicator rank
  uint32_t p2p_channel_count = 0;
  uint32_t p2p_channels_per_peer = 0;
  std::vector<std::string> assumptions;  // where the rules do not cover this layout
};

// How the data of a connection gets from one rank to another.
struct ConnectionRoute {
  bool network = false;  // else NVLink inside the server
  // PXN: local index of the GPU of the sender's server whose NIC injects; equals the sender's own
  // where there is no relay.
  uint32_t sending_local_index = 0;
};

class NcclPlanner {
 public:
  NcclPlanner(CommunicatorLayout layout, NcclSettings settings);

  const CommunicatorLayout& layout() const { return layout_; }
  const CommunicatorChannels& channels() const { return channels_; }

  // Ring, Simple. Precondition: a kind other than kSend, kRecv and kAllToAll.
  std::shared_ptr<const CollectiveSchedule> PlanRing(const JobCollective& collective) const;
  // One rank's grouped sends and receives; only that rank's lanes are defined.
  std::shared_ptr<const CollectiveSchedule> PlanP2p(uint32_t rank, const P2pCall* calls,
                                                    uint32_t call_count) const;
  // `p2p`: the connection serves Send/Recv (PXN rule §2.11) rather than a ring.
  ConnectionRoute RouteOf(uint32_t channel, uint32_t from, uint32_t to, bool p2p) const;

 private:
  CommunicatorLayout layout_;
  NcclSettings settings_;
  CommunicatorChannels channels_;
};

}  // namespace railyard
