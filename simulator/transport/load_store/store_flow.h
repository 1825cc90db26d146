// SPDX-License-Identifier: GPL-2.0-only
// Defines the record of a flow inside a server: stores of a GPU, loads of a GPU, or a member's part
// in a group.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "simulator/fabric/tables/packet.h"
#include "simulator/state/field_table.h"

namespace railyard {

// At most this many messages are in flight on one flow: NCCL's slots (NCCL_STEPS).
inline constexpr uint32_t kStoreSlots = 8;

// Says over what a flow's packets travel.
enum class StoreWay : uint8_t {
  kPaths,      // over NVLinks
  kAllPlanes,  // over all NVSwitches of both its GPUs, which are the same
  kPcie,
};

// Holds the state of a flow in one cache line, because every packet accesses its flow.
struct alignas(64) StoreFlow {
  static constexpr uint32_t kNone = UINT32_MAX;  // no next flow

  uint32_t port = 0;
  uint32_t next_active = kNone;
  // For kAllPlanes, this is the index of the destination's first link in down_links_. Otherwise
  // it is the path over plane 0; the path over plane p is path_links * p behind it.
  uint32_t target = 0;
  uint32_t user = 0;  // the user's number of this flow, or the group's number
  uint16_t interleave = 0;
  uint16_t position = 0;  // in the interleaving, of the next packet
  uint8_t posted = 0;     // message counters modulo 256
  uint8_t sent = 0;
  uint8_t delivered = 0;
  bool active : 1 = false;
  bool has_sizes : 1 = false;  // its messages are in sizes_
  uint8_t sink : 6 = 0;        // in sinks_
  uint8_t path_links = 2;  // 1: a cable from GPU to GPU; a group's: one up and all down. A load's
                           // are those of the request; the answer's precede them
  PacketKind kind = PacketKind::kNvlinkWrite;
  StoreWay way = StoreWay::kPaths;
  uint8_t start = 0;          // in the interleaving, of a program's first packet
  uint32_t unsent_bytes = 0;  // of the message being sent; 0 before its first packet
  std::array<uint32_t, kStoreSlots> missing_bytes{};  // not yet arrived

  bool is_of_group() const {
    return kind == PacketKind::kNvlinkMulticast || kind == PacketKind::kNvlinkOperand;
  }

  static constexpr auto Fields() {
    constexpr std::string_view kFixed = "it is set when the flow is opened";
    constexpr std::string_view kNumbers = "numbers of messages name slots, and nothing else";
    constexpr std::string_view kNothing = "no message is under way";
    const auto any = [](const StoreFlow&) { return true; };
    return FieldTable(
        "flow", field::NoState("port", &StoreFlow::port, kFixed),
        field::NoState("next_active", &StoreFlow::next_active, kNothing),
        field::NoState("target", &StoreFlow::target, kFixed),
        field::NoState("user", &StoreFlow::user, kFixed),
        field::NoState("interleave", &StoreFlow::interleave, kFixed),
        field::NoState("position", &StoreFlow::position, "a program begins with `start`"),
        field::NoState("posted", &StoreFlow::posted, kNumbers),
        field::Follows("sent", &StoreFlow::sent, &StoreFlow::posted),
        field::NoState("delivered", &StoreFlow::delivered, kNumbers),
        field::Bits<StoreFlow>("active", [](const StoreFlow& flow) { return !flow.active; }),
        field::Bits<StoreFlow>("has_sizes", any), field::Bits<StoreFlow>("sink", any),
        field::NoState("path_links", &StoreFlow::path_links, kFixed),
        field::NoState("kind", &StoreFlow::kind, kFixed),
        field::NoState("way", &StoreFlow::way, kFixed),
        field::NoState("start", &StoreFlow::start, kFixed),
        field::NoState("unsent_bytes", &StoreFlow::unsent_bytes, kNothing),
        field::NoState("missing_bytes", &StoreFlow::missing_bytes, kNothing));
  }
};
static_assert(sizeof(StoreFlow) == 64);

}  // namespace railyard
