// SPDX-License-Identifier: GPL-2.0-only
// Stores packets as records of one growing array, identified by their index. The records move when
// the array grows, so a reference to a packet is valid until the next Allocate().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/fabric/tables/packet.h"

namespace railyard {

class PacketPool {
 public:
  // Returns a record with default values.
  PacketId Allocate() {
    if (free_count_ == 0) [[unlikely]]
      Grow();
    const PacketId index = free_[--free_count_];
    // A free record may have left the cache, so one of those that will be allocated soon is
    // prefetched.
    __builtin_prefetch(&packets_[free_[free_count_ - std::min(free_count_, kFetchedAhead)]], 1);
    packets_[index] = Packet{};
    return index;
  }
  void Free(PacketId index) { free_[free_count_++] = index; }
  // Copies the packet to a new record and returns that. The old record stays as a tombstone until
  // the event that refers to it calls FreeTombstone().
  PacketId MoveAway(PacketId index);
  void FreeTombstone(PacketId index) {
    --tombstone_count_;
    Free(index);
  }

  Packet& operator[](PacketId index) { return packets_[index]; }
  const Packet& operator[](PacketId index) const { return packets_[index]; }
  uint64_t live_count() const { return packets_.size() - free_count_ - tombstone_count_; }
  size_t size() const { return packets_.size(); }
  // Returns the start of the array, which moves when the array grows.
  const char* const* base() const { return &base_; }
  // Returns the payload of the data packets that are not free, by walking all of them.
  uint64_t PayloadBytes() const;

 private:
  static constexpr size_t kFetchedAhead = 4;  // a burst of a GPU's port

  void Grow();

  std::vector<Packet> packets_;
  const char* base_ = nullptr;
  std::vector<PacketId> free_;  // as many entries as packets, of which the first free_count_ count
  size_t free_count_ = 0;
  size_t tombstone_count_ = 0;
};

}  // namespace railyard
