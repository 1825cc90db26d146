// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "simulator/fabric/tables/packet.h"
#include "simulator/fabric/tables/packet_pool.h"
#include "simulator/state/field_table.h"
#include "topologies/routing/lossless_classes.h"

namespace railyard {

// Lists packets in order, linked by Packet::next.
struct PacketQueue {
  PacketId first = PacketId::kNone;
  PacketId last = PacketId::kNone;

  bool empty() const { return first == PacketId::kNone; }
  void Append(PacketPool& packets, PacketId index) {
    packets[index].next = PacketId::kNone;
    if (empty()) {
      first = index;
    } else {
      packets[last].next = index;
    }
    last = index;
  }
  PacketId Pop(PacketPool& packets) {
    const PacketId index = first;
    first = packets[index].next;
    return index;
  }
};

// Holds the packets that wait at a port in one lossless class.
struct DataQueue : PacketQueue {
  bool check_pending = false;
  int64_t held_since_ps = 0;
};

// Describes a port in the general form. The record, with its counters, remains when the port
// returns to the short form. Control and data wait, and one packet is in service: the last of the
// link's timed packets. Data that is not held leaves in order of arrival, regardless of its class,
// so a port that nothing holds is a FIFO.
struct Port {
  PacketQueue control;
  std::array<DataQueue, LosslessClasses::kMax> data;
  uint8_t waiting_classes = 0;  // one bit per class: it has packets
  uint8_t paused_by_frame = 0;
  uint8_t paused_classes = 0;   // by pause frames or a storm
  uint8_t starved_classes = 0;  // lack credit for the packet that is first
  bool is_serving = false;      // a departure event is pending
  bool is_in_storm = false;
  uint32_t waiting_packets = 0;
  int64_t waiting_ps = 0;  // time to send all waiting packets
  uint64_t waiting_data_bytes = 0;
  int64_t joined = 0;     // data packets so far; arrival_ps of a waiting one is its number
  int64_t paused_ps = 0;  // in pauses that are over, summed over all classes
  uint64_t general_hops = 0;

  static constexpr auto Fields() {
    const auto has_no_data = [](const Port& port) {
      return std::ranges::all_of(port.data, &DataQueue::empty);
    };
    return FieldTable(
        "port", field::Idle("control", &Port::control),
        field::IdleIf("data", &Port::data, has_no_data),
        field::Idle("waiting_classes", &Port::waiting_classes),
        field::Idle("paused_by_frame", &Port::paused_by_frame),
        field::Idle("paused_classes", &Port::paused_classes),
        field::Idle("starved_classes", &Port::starved_classes),
        field::Idle("is_serving", &Port::is_serving),
        field::Idle("is_in_storm", &Port::is_in_storm),
        field::Idle("waiting_packets", &Port::waiting_packets),
        field::Idle("waiting_ps", &Port::waiting_ps),
        field::Idle("waiting_data_bytes", &Port::waiting_data_bytes),
        field::NoState("joined", &Port::joined, "only its differences order waiting packets"),
        field::Count("paused_ps", &Port::paused_ps),
        field::Count("general_hops", &Port::general_hops));
  }

  static constexpr uint8_t BitOf(uint32_t lossless_class) {
    return static_cast<uint8_t>(1u << lossless_class);
  }
  bool is_idle() const { return !is_serving && waiting_packets == 0; }
  uint8_t held_classes() const { return paused_classes | starved_classes; }
  // Returns the class, among `classes`, of the data packet that arrived first. Precondition: one of
  // these classes has a packet.
  uint32_t FirstOf(const PacketPool& packets, uint8_t classes) const {
    auto left = static_cast<uint32_t>(waiting_classes & classes);
    auto first = static_cast<uint32_t>(std::countr_zero(left));
    for (left &= left - 1; left != 0; left &= left - 1) {
      const auto other = static_cast<uint32_t>(std::countr_zero(left));
      if (packets[data[other].first].arrival_ps < packets[data[first].first].arrival_ps) {
        first = other;
      }
    }
    return first;
  }
};

}  // namespace railyard
