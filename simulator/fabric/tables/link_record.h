// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

#include "simulator/fabric/tables/packet.h"
#include "simulator/state/field_table.h"

namespace railyard {

// Holds the fields of one direction of a cable, and of its sending port, that every packet's event
// accesses. They fill one cache line. Rarely used fields are in other arrays.
struct alignas(64) LinkRecord {
  // Names the part of the network that takes arriving packets.
  enum class Arrival : uint8_t {
    kForward,
    kNic,
    kLossyNic,  // a NIC that drops what its receive buffer has no room for
    kGpu,
    kGpuOfMesh,  // the memory of a GPU, from another GPU; the path may continue there
    kCombining,
    kHostBridge,  // the host's memory if the path ends there, else as kForward
    kElsewhere,   // another process, which has a copy of the packet: FabricPart
  };

  // Bits of send_flags; each means that sending requires more than timing a packet.
  static constexpr uint8_t kGeneralForm = 1;
  static constexpr uint8_t kNeedsCredit = 2;
  static constexpr uint8_t kTailDrop = 4;   // out of a lossy buffer
  static constexpr uint8_t kTelemetry = 8;  // packets collect the port's state
  static constexpr uint8_t kClassed = 16;   // packets are in one of several lossless classes
  // Bits of arrival_flags; each means that an arrival requires more than counting a packet.
  static constexpr uint8_t kMayLose = 1;   // has been down, or has a filter
  static constexpr uint8_t kObserved = 2;  // arrivals are hashed, or the link has a tap
  static constexpr uint8_t kFromLossyBuffer = 4;
  static constexpr uint8_t kBalanced = 8;  // the switch it ends at chooses the next link
  static constexpr uint8_t kDelayed = 16;  // holds packets back for an extra delay, or did

  // The time when the port has sent all its timed packets. In the short form these are all packets,
  // in the general form only the packet in service.
  int64_t busy_until_ps = 0;
  int64_t delay_ps = 0;  // propagation, and forwarding latency of the device at the end
  uint64_t payload_bytes = 0;
  uint64_t wire_bytes = 0;
  uint64_t packets = 0;                // arrived
  uint32_t usual_transmission_ps = 0;  // of a packet of usual_wire_bytes
  uint32_t timed = 0;                  // packets that are timed and have not arrived
  PacketId last = PacketId::kNone;     // the last of them; Packet::next is the one before it
  uint32_t sent = 0;                   // packets put on the link, modulo 2^32
  uint32_t mark_above = UINT32_MAX;    // Mark() is called from it on, in 2^kMarkUnitShift ps
  uint16_t usual_wire_bytes = 0;
  uint8_t send_flags = 0;
  uint8_t arrival_flags : 5 = 0;
  Arrival arrival : 3 = Arrival::kForward;

  static constexpr auto Fields() {
    using L = LinkRecord;
    return FieldTable(
        "link", field::Instant("busy_until_ps", &L::busy_until_ps),
        field::Constant("delay_ps", &L::delay_ps), field::Count("payload_bytes", &L::payload_bytes),
        field::Count("wire_bytes", &L::wire_bytes), field::Count("packets", &L::packets),
        field::NoState("usual_transmission_ps", &L::usual_transmission_ps,
                       "it follows from the rate, which NetworkState::VisitLink visits"),
        field::Quiescent("timed", &L::timed),
        field::NoState("last", &L::last, "it names a packet only while `timed` is not 0"),
        field::Count("sent", &L::sent), field::Fixed("mark_above", &L::mark_above),
        field::NoState("usual_wire_bytes", &L::usual_wire_bytes,
                       "it decides only how a time is computed"),
        field::NoState("send_flags", &L::send_flags,
                       "the form of a port changes no result, and the other flags are fixed"),
        field::FixedBits<L>("arrival_flags", [](const L& link) { return link.arrival_flags; }),
        field::FixedBits<L>("arrival", [](const L& link) { return link.arrival; }));
  }
};
static_assert(sizeof(LinkRecord) == 64);

inline constexpr int kMarkUnitShift = 10;

}  // namespace railyard
