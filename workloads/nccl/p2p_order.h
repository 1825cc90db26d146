// SPDX-License-Identifier: GPL-2.0-only
// Determines the order in which the ranks of a communicator serve each other with Send and Recv: in
// each of n rounds every rank sends to one peer and receives from one peer, and both ranks of a
// message do so in the same round. Sources: ncclP2pSchedule (src/init.cc),
// ncclP2pChannelBaseForRound (src/include/channel.h) and ncclP2pChannelForPart
// (src/include/device.h).
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/nccl/communicator_layout.h"

namespace railyard {

// The largest number of works in a batch, NCCL_MAX_DEV_WORK_P2P_PER_BATCH (src/include/device.h).
inline constexpr uint32_t kWorksPerBatch = 8;

class P2pOrder {
 public:
  // `channel_count` is a power of two; 0 for a communicator of one rank.
  P2pOrder(const CommunicatorLayout& layout, uint32_t version, uint32_t channel_count);

  uint32_t round_count() const { return static_cast<uint32_t>(place_.size()); }
  // Returns the round in which one rank sends to another; from == to is round 0.
  uint32_t RoundOf(RankIndex from, RankIndex to) const;
  // Returns the channel of a part of the messages of a round.
  uint32_t ChannelOfPart(uint32_t round, uint32_t part) const;

 private:
  struct Place {
    uint32_t group = 0;
    uint32_t local = 0;  // within the group
  };
  void MakeGroups(const CommunicatorLayout& layout);
  void OrderGroups();

  uint32_t version_;
  uint32_t channel_count_;
  uint32_t node_count_;
  uint32_t group_size_ = 1;
  uint32_t base_group_size_ = 1;          // as in ncclP2pChannelBaseForRound
  std::vector<Place> place_;              // by rank
  std::vector<uint32_t> place_of_delta_;  // of the distances between groups, in the order of rounds
};

}  // namespace railyard
