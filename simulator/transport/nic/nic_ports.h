// SPDX-License-Identifier: GPL-2.0-only
// Gives the queues of NICs' ports their turns. A port serves the queues that may send in a ring; a
// queue whose rate is limited waits outside of the ring until its time. Each port has at most one
// event (event_order::kQueuePort, by port) that counts: that of its next turn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "simulator/event_order/event_order.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/state/field_table.h"
#include "simulator/transport/nic/nic_port.h"
#include "simulator/transport/nic/queue_state.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class NicPorts {
 public:
  // A link or a NIC without a port has this one.
  static constexpr uint32_t kNone = SendQueue::kNone;

  // The references must outlive this object.
  NicPorts(const FabricGraph& graph, FabricNetwork& network)
      : graph_(graph),
        engine_(network.engine()),
        port_of_link_(graph.link_count(), kNone),
        first_port_of_device_(graph.device_count(), kNone) {}

  // Holds what the ports of a NIC need to know of its settings.
  struct Settings {
    uint32_t full_wire_bytes = 0;  // of a packet of the MTU that does not begin a message
    uint32_t burst_packets = 1;    // that a queue sends in its turn
  };
  // Adds a port for each wire of a NIC.
  void AddNic(DeviceId nic, const FabricNetwork& network, const Settings& settings);

  NicPort& operator[](uint32_t port) { return ports_[port]; }
  const NicPort& operator[](uint32_t port) const { return ports_[port]; }
  // Returns the port that sends over a link, or kNone.
  uint32_t PortOf(LinkId link) const { return port_of_link_[link]; }
  uint32_t FirstPortOf(DeviceId nic) const { return first_port_of_device_[nic]; }

  // Adds a queue at the end of the port's ring. `queues` has all queues by their numbers.
  static void Append(NicPort& port, QueueId queue, std::span<SendQueue> queues) {
    queues[queue].next_active = QueueId::kNone;
    if (port.first_active == QueueId::kNone) {
      port.first_active = queue;
    } else {
      queues[port.last_active].next_active = queue;
    }
    port.last_active = queue;
  }
  // Takes the queue out of the ring whose turn it is. Precondition: the ring has one.
  static QueueId TakeFirst(NicPort& port, std::span<SendQueue> queues) {
    const QueueId queue = port.first_active;
    port.first_active = queues[queue].next_active;
    return queue;
  }
  // Makes a queue wait until its time.
  static void AddPaced(NicPort& port, const PacedTurn& turn);
  // Moves the queues that are due to the ring.
  void TakePaced(NicPort& port, std::span<SendQueue> queues) const;

  // Schedules the port's next turn, if a queue waits for one: as soon as the wire is free and, if
  // the ring is empty, the first paced queue is due.
  void ScheduleNextTurn(uint32_t port_id) {
    const NicPort& port = ports_[port_id];
    if (port.first_active != QueueId::kNone) [[likely]] {
      Schedule(port_id, port.free_ps);
    } else if (port.next_paced_ps != kNeverPs) {
      Schedule(port_id, std::max(port.free_ps, port.next_paced_ps));
    }
  }
  // Must be called when the link is no longer held (FabricNetwork::IsHeld).
  void OnLinkReleased(LinkId link) {
    if (port_of_link_[link] != kNone) ScheduleNextTurn(port_of_link_[link]);
  }

  // Visits the state of all ports, or that of a NIC's ports.
  void Visit(StateArchive& archive) { VisitFields(ports_, archive); }
  void VisitNic(DeviceId nic, StateArchive& archive);

 private:
  void Schedule(uint32_t port_id, int64_t time_ps) {
    NicPort& port = ports_[port_id];
    time_ps = std::max(time_ps, engine_.NowPs());
    if (port.event_ps <= time_ps) return;
    port.event_ps = time_ps;
    engine_.ScheduleFabric(time_ps, event_order::kQueuePort, port_id, port_id);
  }

  const FabricGraph& graph_;
  FabricSimulatorImpl& engine_;
  std::vector<NicPort> ports_;
  std::vector<uint32_t> port_of_link_;
  std::vector<uint32_t> first_port_of_device_;
};

}  // namespace railyard
