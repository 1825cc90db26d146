// SPDX-License-Identifier: GPL-2.0-only
// Defines the record of a flow inside a server: stores of a GPU, loads of a GPU, or a member's part
// in a group.
#pragma once

#include <array>
#include <cstdint>

#include "simulator/fabric/tables/packet.h"
#include "simulator/state/field_table.h"
#include "topologies/graph/graph_ids.h"

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

  // Returns the GPU that sends the flow's packets over NVLink. Precondition: the way is not kPcie;
  // the ports of NVLinks have the numbers of their GPUs.
  GpuIndex nvlink_gpu() const { return GpuIndex{port}; }

  bool is_of_group() const {
    return kind == PacketKind::kNvlinkMulticast || kind == PacketKind::kNvlinkOperand;
  }

  static constexpr auto Fields() {
    // Receivers of groups have their own counts.
    const auto has_delivered_all = [](const StoreFlow& flow) {
      return flow.is_of_group() || flow.delivered == flow.posted;
    };
    return FieldTable(
        "flow", field::Fixed("port", &StoreFlow::port),
        field::NoState("next_active", &StoreFlow::next_active,
                       "the flow sets it when it joins its port's list"),
        field::Fixed("target", &StoreFlow::target), field::Fixed("user", &StoreFlow::user),
        field::Fixed("interleave", &StoreFlow::interleave),
        field::NoState("position", &StoreFlow::position,
                       "the next program begins with `start`: ConnectionTable::StartOver"),
        field::NoState("posted", &StoreFlow::posted, "it names slots, and nothing else"),
        field::Follows("sent", &StoreFlow::sent, &StoreFlow::posted),
        field::IdleIf("delivered", &StoreFlow::delivered, has_delivered_all),
        field::Bits<StoreFlow>("active", [](const StoreFlow& flow) { return !flow.active; }),
        field::FixedBits<StoreFlow>("has_sizes",
                                    [](const StoreFlow& flow) { return flow.has_sizes; }),
        field::FixedBits<StoreFlow>("sink", [](const StoreFlow& flow) { return flow.sink; }),
        field::Fixed("path_links", &StoreFlow::path_links), field::Fixed("kind", &StoreFlow::kind),
        field::Fixed("way", &StoreFlow::way), field::Fixed("start", &StoreFlow::start),
        field::Idle("unsent_bytes", &StoreFlow::unsent_bytes),
        field::NoState("missing_bytes", &StoreFlow::missing_bytes,
                       "the next message in a slot sets it"));
  }
};
static_assert(sizeof(StoreFlow) == 64);

}  // namespace railyard
