// SPDX-License-Identifier: GPL-2.0-only
// A packet: a plain record in a pool, named by its index. It carries where it goes, not what is in
// it.
#pragma once

#include <cstdint>

namespace railyard {

enum class PacketKind : uint8_t {
  kNvlinkWrite,  // stores of a GPU into another GPU's memory
  kRdmaWrite,    // RoCE v2 data; the last packet of a message carries the immediate
  kClearToSend,  // a receiver's RDMA write of one credit element
  kAck,
  kNack,
};
inline constexpr bool IsData(PacketKind kind) {
  return kind == PacketKind::kNvlinkWrite || kind == PacketKind::kRdmaWrite;
}

struct alignas(32) Packet {
  static constexpr uint8_t kLastOfMessage = 1;
  static constexpr uint8_t kRetransmitted = 2;
  static constexpr uint8_t kAccepted =
      4;  // the receiving NIC has taken it; it is on its way to memory

  uint32_t flow = 0;      // queue or NVLink connection of the transport
  uint32_t sequence = 0;  // PSN of data, expected PSN of ACK and NACK, message slot on NVLink
  uint32_t path = 0;      // index of its first link in the fabric's path table
  uint16_t wire_bytes = 0;
  uint16_t payload_bytes = 0;
  PacketKind kind = PacketKind::kNvlinkWrite;
  uint8_t hop = 0;        // links crossed so far
  uint8_t hop_count = 0;  // links of the path
  uint8_t flags = 0;
  uint32_t next_free = 0;  // in the pool's free list
};
static_assert(sizeof(Packet) <= 64);

// Why a packet was lost. Closed: every path that loses one reports one of these.
enum class DropReason : uint8_t {
  kLinkDown,       // on the wire, or sent into it, while the link was down
  kNoRoute,        // the fabric has no path to the destination
  kOutOfSequence,  // behind a gap; go-back-N keeps nothing out of order
  kDuplicate,      // received before
};
inline constexpr int kDropReasonCount = 4;
const char* DropReasonName(DropReason reason);  // "LINK_DOWN", …

}  // namespace railyard
