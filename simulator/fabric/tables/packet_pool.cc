// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/tables/packet_pool.h"

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

constexpr size_t kFirstSize = 4096;

}  // namespace

void PacketPool::Grow() {
  const size_t old_size = packets_.size();
  const size_t new_size = old_size == 0 ? kFirstSize : old_size * 2;
  SIM_CHECK(new_size < PacketId::kNone, "more than 2^31 packets under way");
  packets_.resize(new_size);
  base_ = reinterpret_cast<const char*>(packets_.data());
  free_.resize(new_size);
  for (size_t i = new_size; i > old_size; --i) Free(PacketId{i - 1});
}

PacketId PacketPool::MoveAway(PacketId index) {
  const PacketId copy = Allocate();
  packets_[copy] = packets_[index];
  packets_[index].flags = Packet::kTombstone;
  ++tombstone_count_;
  return copy;
}

uint64_t PacketPool::PayloadBytes() const {
  std::vector<bool> is_packet(packets_.size(), true);
  for (size_t i = 0; i < free_count_; ++i) is_packet[free_[i]] = false;
  uint64_t bytes = 0;
  for (size_t i = 0; i < packets_.size(); ++i) {
    const Packet& packet = packets_[i];
    const bool is_tombstone = (packet.flags & Packet::kTombstone) != 0;
    if (is_packet[i] && !is_tombstone && IsData(packet.kind)) bytes += DataBytes(packet);
  }
  return bytes;
}

}  // namespace railyard
