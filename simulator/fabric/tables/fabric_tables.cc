// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/tables/fabric_tables.h"

#include <fmt/format.h>

namespace railyard {

void FabricTables::Attach(const FabricGraph& of, FabricSimulatorImpl& with) {
  graph = &of;
  engine = &with;
  classes.emplace(of);
}

void FabricTables::ResetRows() {
  const uint32_t link_count = graph->link_count();
  links.assign(link_count, LinkRecord{});
  is_held.assign(link_count, 0);
  port_of_link.assign(link_count, kNoPort);
  ports.clear();
  rates_bps.resize(link_count);
  for (LinkId id{0}; id < link_count; ++id) rates_bps[id] = graph->link(id).rate_bps;
}

std::string FabricTables::NameOf(VirtualChannelId channel) const {
  const LinkId link = LinkOf(channel);
  const std::string& name = graph->link(link).name;
  return ClassCountOf(link) == 1 ? name
                                 : fmt::format("{} class {}", name, LosslessClassOf(channel));
}

int64_t FabricTables::LearnTransmission(LinkId id, uint32_t wire_bytes) {
  LinkRecord& link = links[id];
  const int64_t transmission_ps = TransmissionPs(id, wire_bytes);
  if (wire_bytes > link.usual_wire_bytes && transmission_ps <= UINT32_MAX) {
    link.usual_wire_bytes = static_cast<uint16_t>(wire_bytes);
    link.usual_transmission_ps = static_cast<uint32_t>(transmission_ps);
  }
  return transmission_ps;
}

int64_t FabricTables::BacklogPs(LinkId id) const {
  const int64_t timed_ps = std::max<int64_t>(0, links[id].busy_until_ps - NowPs());
  return IsShort(id) ? timed_ps : timed_ps + ports[port_of_link[id]].waiting_ps;
}

int64_t FabricTables::ServiceEndPs(LinkId id) const {
  const LinkRecord& link = links[id];
  const int64_t now_ps = NowPs();
  if (!IsShort(id)) return std::max(now_ps, link.busy_until_ps);
  int64_t end_ps = now_ps;
  ForEachTimed(link, [&](PacketId index) {
    const int64_t departure_ps = DeparturePs(packets[index]);
    if (departure_ps > now_ps) end_ps = departure_ps;
  });
  return end_ps;
}

Port& FabricTables::PortOf(LinkId id) {
  uint32_t& port = port_of_link[id];
  if (port == kNoPort) {
    port = static_cast<uint32_t>(ports.size());
    ports.emplace_back();
  }
  return ports[port];
}

}  // namespace railyard
