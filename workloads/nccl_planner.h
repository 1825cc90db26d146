// SPDX-License-Identifier: GPL-2.0-only
// From one collective of a job to its schedule on one communicator, by NCCL's rules; and how two of
// its ranks are connected.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/job.h"
#include "workloads/nccl_channels.h"
#include "workloads/p2p_order.h"
#include "workloads/ring_schedule.h"
#include "workloads/schedule.h"

namespace railyard {

// How the data of a connection gets from one rank to another.
struct ConnectionRoute {
  bool network = false;  // else NVLink inside the server
  // PXN: local index of the GPU of the sender's server whose NIC injects; equals the sender's own
  // where there is no relay.
  uint32_t sending_local_index = 0;
};

// The plans of one communicator. Modelled: Ring with Simple, and Send/Recv with Simple (what NCCL
// uses on networks by default; its LL for messages up to 16 KiB per channel inside a server is left
// out, and so are registered user buffers).
class NcclPlanner {
 public:
  // Preconditions: the layout as BuildChannels wants it; buffsize_bytes at least 64 KiB and the
  // p2p chunk sizes at least 4 KiB.
  NcclPlanner(CommunicatorLayout layout, NcclSettings settings);

  const CommunicatorLayout& layout() const { return layout_; }
  const CommunicatorChannels& channels() const { return channels_; }
  const P2pOrder& p2p_order() const { return p2p_order_; }

  // Ring, Simple. Precondition: a collective that is not is_p2p(). One rank, or no bytes: no steps.
  std::shared_ptr<const CollectiveSchedule> PlanRing(const JobCollective& collective) const;
  // One rank's grouped sends and receives; only that rank's lanes are defined. Sends to itself are
  // local copies: no steps.
  std::shared_ptr<const CollectiveSchedule> PlanP2p(uint32_t rank, const P2pCall* calls,
                                                    uint32_t call_count) const;
  // `p2p`: the connection serves Send/Recv (ncclTopoGetNetDev's PXN rule) rather than a ring, whose
  // connections are those to the next rank.
  ConnectionRoute RouteOf(uint32_t channel, uint32_t from, uint32_t to, bool p2p) const;

 private:
  CommunicatorLayout layout_;
  NcclSettings settings_;
  CommunicatorChannels channels_;
  std::shared_ptr<const RingTable> rings_;
  P2pOrder p2p_order_;
  std::vector<bool> gpu_taken_;  // [node * gpus_per_server + local_index]: a rank of ours is there
};

}  // namespace railyard
