// SPDX-License-Identifier: GPL-2.0-only
// One direction between two ranks on one channel of a communicator: a FIFO of messages with NCCL's
// slots as credits. Plain state; lanes and proxies move it. What every slice touches is apart from
// the rest: at a thousand GPUs cache misses are what a slice costs.
#pragma once

#include <array>
#include <cstdint>

#include "simulator/units/identifier.h"

namespace railyard {

class Transport;

using ConnectionId = Identifier<struct ConnectionIdTag>;

inline constexpr uint32_t kConnectionSlots = 8;  // NCCL_STEPS
// Of a run; as many take more than 16 GiB.
inline constexpr uint32_t kConnectionsMax = 1u << 26;

// What a connection joins and has carried.
struct Connection {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint64_t tie = 0;  // orders its events; a function of what it connects
  uint32_t from_gpu = 0;
  uint32_t to_gpu = 0;
  uint32_t injecting_gpu = 0;      // whose NIC and proxy send; from_gpu where nothing is relayed
  uint32_t flow = 0;               // of the transport, or of stores
  uint32_t relay_flow = 0;         // NVLink flow to the relaying GPU
  uint32_t load_flow = kNone;      // by which the receiver loads from a host's memory: SHM
  Transport* transport = nullptr;  // of a network connection
  uint32_t communicator = 0;
  uint32_t staged = kNone;          // of a network connection: StagedMessages
  uint32_t aggregations = kNone;    // of a sum: what is staged is
  uint32_t collective = kNone;      // that used either side last
  uint32_t loss_tolerance_ppm = 0;  // of what its sender sends
  bool network = false;             // over `transport`; else NVLink or PCIe
  bool is_buffered = false;         // Transport::BuffersMessages
  bool is_detoured = false;         // around a NIC that has failed: NicDetours
  bool is_relayed = false;          // PXN: first over NVLink to the GPU whose NIC injects
  // Of NVLink SHARP: `flow` is a group, opened when first used; of operands, only that of the first
  // connection of a head.
  bool is_switch_operand = false;
  bool is_switch_result = false;
  // Of a sum by the network's switches: from a rank to itself; `flow` is its place in an
  // aggregation tree, opened when first used.
  bool is_network_sum = false;
};

// What the sender of a network connection has written for its proxy, in slots of its own: they are
// free again when a message is acknowledged, whether its receiver has used it or not.
struct StagedMessages {
  std::array<uint32_t, kConnectionSlots> bytes{};
  std::array<int64_t, kConnectionSlots> time_ps{};  // the copy is complete
};

// How many of a network connection's messages got how far, modulo 256.
struct NetworkProgress {
  uint8_t relayed = 0;        // PXN: arrived at the relaying GPU
  uint8_t staged = 0;         // the proxy has seen them
  uint8_t clear_to_send = 0;  // the receiver's element for them has arrived
  uint8_t queued = 0;         // staged and clear to send: the proxy will post them
  uint8_t sent = 0;           // the proxy has posted them
  uint8_t completed = 0;      // acknowledged
  uint8_t granted = 0;        // the receiver has posted their clear-to-send
};

// Of a message's size what fits: 0 for none, and for others 15 bits that differ where sizes do, but
// for one pair in 32,768. Enough to notice that a schedule's two sides disagree.
using SizeMark = uint16_t;
inline SizeMark MarkOf(uint32_t bytes) {
  return bytes == 0 ? 0 : static_cast<SizeMark>(0x8000u | (bytes * 0x9E3779B1u) >> 17);
}

// Messages under way. Their counters run freely modulo 256; differences of at most kConnectionSlots
// are what is looked at.
struct alignas(128) MessageSlots {
  uint8_t posted = 0;           // a channel has begun to write their slice
  uint8_t delivered = 0;        // in the receiver's memory
  uint8_t consumed = 0;         // the receiver's channel has begun to read them
  bool network = false;         // as of the connection
  bool sender_waits = false;    // for a slot
  bool receiver_waits = false;  // for a message
  uint8_t costs = 0;            // class of the lane that sent last (CtaClock::AddCosts)
  bool is_closed = false;       // its programs were ended; nothing of it counts any more
  NetworkProgress progress;
  uint32_t sender = Connection::kNone;    // lane that owns the sending side
  uint32_t receiver = Connection::kNone;  // lane that owns the receiving side
  std::array<SizeMark, kConnectionSlots> sizes{};
  int64_t flag_latency_ps = 0;  // NVLink: a flag's way, there or back
  // Of a lane that waits for a message, so that its arrival need not touch the lane: when its CTA
  // is done with the slice before, and its tie.
  int64_t receiver_free_ps = 0;
  uint64_t receiver_tie = 0;
  // When the last thing known of a message happens: over NVLink, the sender's copy is complete;
  // after its arrival, the receiver sees it; NVLink: after its consumption, the sender sees its
  // slot free.
  std::array<int64_t, kConnectionSlots> time_ps{};
};
static_assert(sizeof(MessageSlots) == 128);

// Of two counters modulo 256, how far the first is ahead.
inline uint8_t Ahead(uint8_t a, uint8_t b) { return static_cast<uint8_t>(a - b); }

}  // namespace railyard
