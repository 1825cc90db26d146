// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/load_store/stores_as_flows.h"

#include <algorithm>
#include <utility>

#include "simulator/transport/load_store/load_store_transport.h"
#include "simulator/units/units.h"

namespace railyard {

FlowRoute StoresAsFlows::RouteOf(FlowId flow_id) const {
  FlowRoute route;
  for (const LoadStoreTransport::PlanePath& plane : flows_.PathsOf(flow_id)) {
    route.push_back({.links = network_.paths().LinksOf(plane.path), .weight = plane.weight});
  }
  const StoreFlow& flow = flows_.flow(flow_id);
  if (flow.kind != PacketKind::kNvlinkOperand) return route;
  const size_t members = flows_.groups().OperandCount(FlowId{flow.user});
  for (uint32_t member = 1; member < members; ++member) {
    const auto planes = flows_.PathsOf(FlowId{flow_id + member});
    for (size_t plane = 0; plane < planes.size(); ++plane) {
      // The links down to the head are the same.
      route[plane].links.push_back(network_.paths().LinkOf(planes[plane].path, 0));
    }
  }
  return route;
}

uint64_t StoresAsFlows::WireBytesOf(const StoreFlow& flow, uint64_t bytes) const {
  if (flow.way == StoreWay::kPcie) return bytes;
  const uint64_t packet_bytes = flows_.packet_payload_bytes();
  const uint64_t rest = bytes % packet_bytes;
  return bytes / packet_bytes * flows_.WireBytes(packet_bytes) +
         (rest > 0 ? flows_.WireBytes(rest) : 0);
}

// Returns the time from the departure of a message's last byte to the arrival of its last packet.
int64_t StoresAsFlows::LatencyPs(FlowId flow_id, uint64_t packet_bytes) const {
  const StoreFlow& flow = flows_.flow(flow_id);
  const auto wire_bytes = static_cast<uint32_t>(WireBytesOf(flow, packet_bytes));
  PathRef path = flows_.PathsOf(flow_id).front().path;
  if (flow.is_of_group()) path.hop_count = 2;  // a multicast's has all links down
  int64_t latency_ps = network_.PathLatencyPs(path, wire_bytes) -
                       TransferTimePs(wire_bytes, carriers_[flow_id].rate_alone_bps);
  if (flow.kind == PacketKind::kHostRead) {
    latency_ps += flows_.RequestLatencyPs(flow, static_cast<uint32_t>(packet_bytes));
  } else if (flow.kind == PacketKind::kNvlinkOperand) {
    latency_ps += flows_.groups().RequestLatencyPs(FlowId{flow.user});
  }
  return std::max<int64_t>(latency_ps, 0);
}

const StoresAsFlows::Carrier& StoresAsFlows::CarrierOf(FlowId flow_id) {
  if (carriers_.size() <= flow_id) carriers_.resize(flow_id + 1);
  if (carriers_[flow_id].pipe == PipeId::kNone) {
    const PipeId pipe = pipes_.Open(*this, flow_id, RouteOf(flow_id));
    carriers_[flow_id].pipe = pipe;
  } else if (carriers_[flow_id].rate_changes == pipes_.rate_changes()) {
    return carriers_[flow_id];
  }
  Carrier& carrier = carriers_[flow_id];
  carrier.rate_changes = pipes_.rate_changes();
  carrier.rate_alone_bps = pipes_.RateAloneBps(carrier.pipe);
  carrier.full_packet_ps = LatencyPs(flow_id, flows_.packet_payload_bytes());
  return carrier;
}

void StoresAsFlows::Send(FlowId flow_id, uint32_t slot, uint64_t bytes) {
  const Carrier& carrier = CarrierOf(flow_id);
  const StoreFlow& flow = flows_.flow(flow_id);
  const uint64_t payload_bytes = flows_.PayloadBytes(flow_id, slot);
  const uint64_t copies =
      flow.kind == PacketKind::kNvlinkOperand ? flows_.groups().OperandCount(FlowId{flow.user}) : 1;
  network_.flows().CountInjected(copies * payload_bytes);
  pipes_.Send(carrier.pipe,
              {.wire_bytes = WireBytesOf(flow, bytes),
               .payload_bytes = payload_bytes,
               .latency_ps = bytes < flows_.packet_payload_bytes() ? LatencyPs(flow_id, bytes)
                                                                   : carrier.full_packet_ps});
}

void StoresAsFlows::OnLeft(uint32_t flow_id) {
  StoreFlow& flow = flows_.flow(FlowId{flow_id});
  ++flow.sent;
  if (flow.kind != PacketKind::kNvlinkWrite) return;
  const SinkRef user = flows_.FirstUserOf(FlowId{flow_id});
  if (std::ranges::find(notified_sinks_, user.sink) == notified_sinks_.end()) {
    notified_sinks_.push_back(user.sink);
  }
  user.sink->OnInjected(user.number, network_.engine().NowPs());
}

void StoresAsFlows::OnAllLeft() {
  const std::vector<MessageSink*> notified = std::exchange(notified_sinks_, {});
  for (MessageSink* const sink : notified) sink->OnTurnEnded();
}

void StoresAsFlows::OnArrived(uint32_t flow_id) {
  StoreFlow& flow = flows_.flow(FlowId{flow_id});
  const uint32_t slot = flow.delivered++ % kStoreSlots;
  if (flow.is_of_group()) {
    flows_.groups().Deliver(FlowId{flow.user});
    return;
  }
  network_.flows().CountDelivered(flows_.PayloadBytes(FlowId{flow_id}, slot));
  const SinkRef user = flows_.FirstUserOf(FlowId{flow_id});
  user.sink->OnDelivered(user.number);
}

void StoresAsFlows::Check(StateArchive& archive) { CheckFields(carriers_, archive); }

}  // namespace railyard
