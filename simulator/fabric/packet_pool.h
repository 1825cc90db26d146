// SPDX-License-Identifier: GPL-2.0-only
// Packets are records of one growing array, named by their index. Growing moves them: a reference
// to a packet is good until the next Allocate().
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/fabric/packet.h"

namespace railyard {

class PacketPool {
 public:
  // The record is zeroed.
  uint32_t Allocate() {
    if (free_ == Packet::kNone) [[unlikely]]
      Grow();
    const uint32_t index = free_;
    free_ = packets_[index].next;
    packets_[index] = Packet{};
    ++live_count_;
    return index;
  }
  void Free(uint32_t index) {
    packets_[index].next = free_;
    free_ = index;
    --live_count_;
  }
  // A copy of the packet in a record of its own. The old one is no packet any more: it stays, as a
  // tombstone, until the event that names it hands it to FreeTombstone().
  uint32_t MoveAway(uint32_t index);
  void FreeTombstone(uint32_t index) {
    ++live_count_;
    Free(index);
  }

  Packet& operator[](uint32_t index) { return packets_[index]; }
  const Packet& operator[](uint32_t index) const { return packets_[index]; }
  uint64_t live_count() const { return live_count_; }
  size_t size() const { return packets_.size(); }
  // Where the array starts; moves when it grows.
  const char* const* base() const { return &base_; }
  // Payload of the data packets that are not free, by walking all.
  uint64_t PayloadBytes() const;

 private:
  void Grow();

  std::vector<Packet> packets_;
  const char* base_ = nullptr;
  uint32_t free_ = Packet::kNone;
  uint64_t live_count_ = 0;
};

}  // namespace railyard
