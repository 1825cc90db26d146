// SPDX-License-Identifier: GPL-2.0-only
// Defines a packet as a plain record in a pool, identified by its index. It contains its route and
// sizes, but no payload.
#pragma once

#include <cstdint>

#include "simulator/fabric/tables/fabric_ids.h"

namespace railyard {

// Kinds inside servers come first, and those with data are contiguous.
enum class PacketKind : uint8_t {
  kNvlinkReadRequest,  // asks the GPUs of a group for their operands
  kHostReadRequest,    // asks a host's memory for what a GPU loads
  kHostRead,           // the answer to such a request
  kNvlinkOperand,      // a GPU's operand for an NVSwitch; after the switch, the result
  kNvlinkMulticast,    // a GPU's stores into all memories of a group
  kNvlinkWrite,        // stores of a GPU into another GPU's or a host's memory, over PCIe too
  kAggregateOperand,   // a NIC's operand for the switches of an aggregation tree
  kAggregateResult,    // the result of the root of that tree, on its way to every NIC
  kNetworkData,        // an RDMA write, whose last packet carries the immediate, or a TCP segment
  kClearToSend,        // a receiver's RDMA write of one credit element
  kAck,
  kNack,
  kCnp,             // congestion notification (RoCE v2 annex A17)
  kUnreliableSend,  // an immediate on an unreliable connection, without acknowledgement
  kEthernetFrame,   // a frame of an ns-3 node's network stack, from NIC to NIC
};
inline constexpr int kPacketKindCount = 15;
inline constexpr bool IsInServer(PacketKind kind) { return kind <= PacketKind::kNvlinkWrite; }
inline constexpr bool IsAggregate(PacketKind kind) {
  return kind == PacketKind::kAggregateOperand || kind == PacketKind::kAggregateResult;
}
inline constexpr bool IsData(PacketKind kind) {
  return kind >= PacketKind::kHostRead && kind <= PacketKind::kNetworkData;
}

// Ports serve control before data, without preemption. Data may be divided into lossless classes.
enum class TrafficClass : uint8_t { kControl, kData };
inline constexpr TrafficClass ClassOf(PacketKind kind) {
  return kind == PacketKind::kCnp ? TrafficClass::kControl : TrafficClass::kData;
}

// Identifies a packet by its place in the pool.
using PacketId = Identifier<struct PacketTag>;

// Holds a packet in one cache line. AllocatePacket() returns one with default values.
struct alignas(64) Packet {
  static constexpr uint8_t kLastOfMessage = 1;
  static constexpr uint8_t kRetransmitted = 2;
  // The receiving NIC has accepted the packet, which is on its way to memory.
  static constexpr uint8_t kAccepted = 4;
  static constexpr uint8_t kEcnMarked = 8;  // congestion experienced
  // The packet's departure from its buffer was counted before its arrival at the next device.
  static constexpr uint8_t kCountedOut = 16;
  // The packet was copied to another record when its port left the short form; its event frees this
  // record.
  static constexpr uint8_t kTombstone = 32;
  static constexpr uint8_t kForOne = 64;    // of an aggregation: one member alone gets the payload
  static constexpr uint8_t kCrossed = 128;  // copied to the process that simulates the link's end

  int64_t arrival_ps = 0;    // of the last bit at the far end of `link`, forwarding included
  int64_t timestamp_ps = 0;  // when its NIC sent it; an ACK echoes that of the packet it answers
  // NACK with selective repeat: bit i means that packet `sequence` + 1 + i was received. RDMA data
  // of a message that tolerates losses: the upper half is the number of its dispensable packets,
  // the lower half the packet's number in it; from the receiver's NIC to memory, the number of
  // messages it completes. Aggregation: the member of its tree that gives or gets a payload, if
  // there is one.
  uint64_t acknowledged = 0;
  uint32_t flow = 0;      // queue or NVLink connection of the transport, NVLink group, or node or
                          // member of an aggregation tree
  uint32_t sequence = 0;  // PSN of data, expected PSN of ACK and NACK, message slot on NVLink,
                          // number of an operand's piece in its group or tree,
                          // immediate of an unreliable send
  uint32_t path = 0;      // index of its first link in the fabric's path table
  LinkId link{};          // that it crosses or waits for
  LinkId next_link{};     // the link after it; undefined at the end of the path
  VirtualChannelId ingress = VirtualChannelId::kNone;  // of its arrival; kNone at its sender
  PacketId next{};  // in the pool's free list or a port's queue; on a link, the one before
  uint16_t wire_bytes = 0;
  uint16_t payload_bytes = 0;  // of its message: data, and flags between them
  PacketKind kind = PacketKind::kNvlinkWrite;
  uint8_t hop = 0;        // links crossed so far
  uint8_t hop_count = 0;  // links of the path
  uint8_t flags = 0;
  uint16_t echo = 0;  // ACK: packets that arrived marked since the last one.
                      // Aggregation: payload where it is not empty.
                      // Other data, and a host read's request: payload bytes that are flags.
                      // An Ethernet frame: whether its sender reacts to marks.
  uint16_t tag = 0;   // NVLink groups: the GPU that a copy is for; an operand's message slot.
                      // A host read's request: the bytes that it asks for.
                      // On the network: the packet's lossless class.
};
static_assert(sizeof(Packet) == 64);

// Returns the bytes of a collective's data in a data packet. Flags count as headers.
inline uint32_t DataBytes(const Packet& packet) {
  return IsAggregate(packet.kind) ? packet.payload_bytes
                                  : static_cast<uint32_t>(packet.payload_bytes - packet.echo);
}

// Returns whether the packet's sender reacts to marks, so that switches mark it.
inline bool IsEcnCapable(const Packet& packet) {
  return packet.kind == PacketKind::kNetworkData ||
         (packet.kind == PacketKind::kEthernetFrame && packet.echo != 0);
}

// Names the reason for the loss of a packet. Every code path that loses a packet reports one of
// these.
enum class DropReason : uint8_t {
  kLinkDown,        // on the wire, or sent into it, while the link was down
  kNoRoute,         // the fabric has no path to the destination
  kOutOfSequence,   // behind a gap; go-back-N keeps nothing out of order
  kDuplicate,       // received before
  kBufferFull,      // a lossy class found no room at a switch
  kHeadroomFull,    // a lossless class arrived after its pause frame, beyond the headroom
  kBitError,        // the link's loss filter
  kQueuePairError,  // the packet's queue pair is in the error state
};
inline constexpr int kDropReasonCount = 8;
const char* DropReasonName(DropReason reason);  // "LINK_DOWN", …

}  // namespace railyard
