// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/nic_ports.h"

namespace railyard {

void NicPorts::AddNic(DeviceId nic, const FabricNetwork& network, const Settings& settings) {
  for (const LinkId wire : graph_.WiresOfNic(nic)) {
    NicPort port;
    port.wire = wire;
    port.full_packet_ps = network.TransmissionPs(wire, settings.full_wire_bytes);
    port.backlog_max_ps = ReadAheadPs(graph_, network, wire, settings.full_wire_bytes);
    port.burst_packets = settings.burst_packets;
    const auto id = static_cast<uint32_t>(ports_.size());
    port_of_link_[wire] = id;
    first_port_of_device_[nic] = std::min(first_port_of_device_[nic], id);
    ports_.push_back(port);
  }
}

void NicPorts::AddPaced(NicPort& port, const PacedTurn& turn) {
  port.paced.push_back(turn);
  std::push_heap(port.paced.begin(), port.paced.end());
  port.next_paced_ps = port.paced.front().time_ps;
}

void NicPorts::TakePaced(NicPort& port, std::span<SendQueue> queues) const {
  const int64_t now_ps = engine_.NowPs();
  while (!port.paced.empty() && port.paced.front().time_ps <= now_ps) {
    Append(port, port.paced.front().queue, queues);
    std::pop_heap(port.paced.begin(), port.paced.end());
    port.paced.pop_back();
  }
  port.next_paced_ps = port.paced.empty() ? kNeverPs : port.paced.front().time_ps;
}

void NicPorts::VisitNic(DeviceId nic, StateArchive& archive) {
  for (const LinkId wire : graph_.WiresOfNic(nic)) {
    const uint32_t port = port_of_link_[wire];
    VisitFields(ports_[port], port, archive);
  }
}

}  // namespace railyard
