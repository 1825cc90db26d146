// SPDX-License-Identifier: GPL-2.0-only
// Messages inside a server as flows (flow mode). A message's bytes leave at the flow's rate over
// all planes at once. Its last packet then takes the path's latency, and the serialization of a
// packet on each link beyond that on the slowest, which the rate contains.
//
// A load from a host's memory, or of a sum, is a flow of what is loaded; the request adds its
// latency. All operands of a sum flow at one rate, and so do all copies of a multicast.
#include <algorithm>

#include "simulator/transport/load_store/load_store_transport.h"
#include "simulator/units/units.h"

namespace railyard {

FlowRoute LoadStoreTransport::RouteOf(FlowId flow_id) const {
  FlowRoute route;
  for (const PlanePath& plane : PathsOf(flow_id)) {
    route.push_back({.links = network_.paths().LinksOf(plane.path), .weight = plane.weight});
  }
  const Flow& flow = flows_[flow_id];
  if (flow.kind != PacketKind::kNvlinkOperand) return route;
  const size_t members = groups_[flow.user].pieces_sent.size();
  for (uint32_t member = 1; member < members; ++member) {
    const std::vector<PlanePath> planes = PathsOf(FlowId{flow_id + member});
    for (size_t plane = 0; plane < planes.size(); ++plane) {
      // The links down to the head are the same.
      route[plane].links.push_back(network_.paths().LinkOf(planes[plane].path, 0));
    }
  }
  return route;
}

uint64_t LoadStoreTransport::WireBytesOf(const Flow& flow, uint64_t bytes) const {
  if (flow.way == Way::kPcie) return bytes;
  const uint64_t rest = bytes % packet_payload_bytes_;
  return bytes / packet_payload_bytes_ * full_packet_wire_bytes_ + (rest > 0 ? WireBytes(rest) : 0);
}

// Returns the time from the departure of a message's last byte to the arrival of its last packet.
int64_t LoadStoreTransport::LatencyPs(FlowId flow_id, uint64_t packet_bytes) const {
  const Flow& flow = flows_[flow_id];
  const auto wire_bytes = static_cast<uint32_t>(WireBytesOf(flow, packet_bytes));
  PathRef path = PathsOf(flow_id).front().path;
  const bool is_of_group =
      flow.kind == PacketKind::kNvlinkMulticast || flow.kind == PacketKind::kNvlinkOperand;
  if (is_of_group) path.hop_count = 2;  // a multicast's has all links down
  int64_t latency_ps = network_.PathLatencyPs(path, wire_bytes) -
                       TransferTimePs(wire_bytes, carrier_of_flow_[flow_id].rate_alone_bps);
  if (flow.kind == PacketKind::kHostRead) {
    latency_ps += network_.PathLatencyPs({flow.target, flow.path_links},
                                         ReadRequestWireBytes(static_cast<uint32_t>(packet_bytes)));
  } else if (flow.kind == PacketKind::kNvlinkOperand) {
    latency_ps +=
        network_.PathLatencyPs({groups_[flow.user].request_path, 2}, kGroupReadRequestWireBytes);
  }
  return std::max<int64_t>(latency_ps, 0);
}

void LoadStoreTransport::OpenCarrier(FlowId flow_id) {
  if (carrier_of_flow_.size() <= flow_id) carrier_of_flow_.resize(flows_.size());
  if (carrier_of_flow_[flow_id].pipe == PipeId::kNone) {
    const PipeId pipe = carriers_->Open(*this, flow_id, RouteOf(flow_id));
    carrier_of_flow_[flow_id].pipe = pipe;
  } else if (carrier_of_flow_[flow_id].rate_changes == carriers_->rate_changes()) {
    return;
  }
  Carrier& carrier = carrier_of_flow_[flow_id];
  carrier.rate_changes = carriers_->rate_changes();
  carrier.rate_alone_bps = carriers_->RateAloneBps(carrier.pipe);
  carrier.full_packet_ps = LatencyPs(flow_id, packet_payload_bytes_);
}

void LoadStoreTransport::Carry(FlowId flow_id, uint32_t slot, uint64_t bytes) {
  OpenCarrier(flow_id);
  const Flow& flow = flows_[flow_id];
  const Carrier& carrier = carrier_of_flow_[flow_id];
  const uint64_t payload_bytes = flow.has_sizes ? sizes_[flow_id][slot].data_bytes : bytes;
  const uint64_t copies =
      flow.kind == PacketKind::kNvlinkOperand ? groups_[flow.user].pieces_sent.size() : 1;
  network_.flows().CountInjected(copies * payload_bytes);
  carriers_->Send(carrier.pipe,
                  {.wire_bytes = WireBytesOf(flow, bytes),
                   .payload_bytes = payload_bytes,
                   .latency_ps = bytes < packet_payload_bytes_ ? LatencyPs(flow_id, bytes)
                                                               : carrier.full_packet_ps});
}

void LoadStoreTransport::OnLeft(uint32_t flow_id) {
  Flow& flow = flows_[flow_id];
  ++flow.sent;
  if (flow.kind != PacketKind::kNvlinkWrite) return;
  MessageSink* const sink = sinks_[flow.sink];
  if (std::ranges::find(notified_sinks_, sink) == notified_sinks_.end())
    notified_sinks_.push_back(sink);
  sink->OnInjected(flow.user, network_.engine().NowPs());
}

void LoadStoreTransport::OnAllLeft() {
  const std::vector<MessageSink*> notified = std::exchange(notified_sinks_, {});
  for (MessageSink* const sink : notified) sink->OnTurnEnded();
}

void LoadStoreTransport::OnArrived(uint32_t flow_id) {
  Flow& flow = flows_[flow_id];
  const uint32_t slot = flow.delivered++ % kMessageSlots;
  if (flow.kind == PacketKind::kNvlinkMulticast || flow.kind == PacketKind::kNvlinkOperand) {
    DeliverToGroup(flow);
    return;
  }
  network_.flows().CountDelivered(flow.has_sizes ? sizes_[flow_id][slot].data_bytes
                                                 : flow.missing_bytes[slot]);
  sinks_[flow.sink]->OnDelivered(flow.user);
}

// Sinks may open groups, which moves the groups' records.
void LoadStoreTransport::DeliverToGroup(const Flow& flow) {
  const uint32_t id = flow.user;
  const bool is_copy = flow.kind == PacketKind::kNvlinkMulticast;
  const size_t receivers = groups_[id].receivers.size();
  for (size_t member = 0; member < receivers; ++member) {
    Receiver& receiver = groups_[id].receivers[member];
    const uint32_t bytes = groups_[id].message_bytes[receiver.delivered++ % kMessageSlots];
    if (!is_copy) {
      network_.flows().CountReduced((groups_[id].pieces_sent.size() - 1) * bytes);
    } else if (member > 0) {
      network_.flows().CountReplicated(bytes);
    }
    network_.flows().CountDelivered(bytes);
    sinks_[receiver.sink]->OnDelivered(receiver.user);
  }
}

}  // namespace railyard
