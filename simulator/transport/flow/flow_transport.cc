// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/flow/flow_transport.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/units/divide_up.h"
#include "simulator/units/units.h"

namespace railyard {

FlowTransport::FlowTransport(const Parts& parts, const NicSettings& nic, const NetIbSettings& ib)
    : graph_(parts.graph),
      network_(parts.network),
      carriers_(parts.flows),
      paths_(parts.graph, parts.network, parts.routing, false),
      layout_(parts.graph, nic, ib),
      mtu_bytes_(nic.mtu_bytes),
      framing_(RdmaFraming(nic)) {
  network_.engine().Register(event_order::kFlowAnswer,
                             {.name = "answers to flows", .state = {.owner = this}},
                             &FlowTransport::HandleAnswer, this);
}

FlowId FlowTransport::Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
                           uint64_t entropy) {
  Flow flow;
  flow.user = sink;
  FlowRoute route;
  for (const PairEnds& ends : layout_.EndsOf(source_gpu, destination_gpu, entropy)) {
    const QueuePaths::Ways ways = paths_.Resolve(ends, true, {});
    if (flow.paths.empty()) {
      flow.ends = ends;
      flow.ack_path = ways.acks;
    }
    flow.paths.push_back(ways.packets);
    route.push_back({.links = network_.paths().LinksOf(ways.packets), .weight = 1});
    SIM_CHECK(!route.back().links.empty(), "a flow without a route");
  }
  const FlowId id{flows_.size()};
  flow.pipe = carriers_.Open(*this, id, route);
  FollowRates(flow);
  flows_.push_back(std::move(flow));
  return id;
}

void FlowTransport::FollowRates(Flow& flow) const {
  if (flow.rate_changes == carriers_.rate_changes()) return;
  flow.rate_changes = carriers_.rate_changes();
  flow.rate_alone_bps = carriers_.RateAloneBps(flow.pipe);
  const auto grant_bytes = static_cast<uint32_t>(framing_.WireBytes(kClearToSendBytes, mtu_bytes_));
  flow.grant_latency_ps = network_.PathLatencyPs(flow.ack_path, grant_bytes);
  // The NIC acknowledges a message that then goes on to memory.
  const PathRef path = flow.paths.front();
  PathRef to_nic = path;
  to_nic.hop_count = static_cast<uint8_t>(network_.LinksToNic(path));
  const int64_t behind_nic_ps = network_.PathLatencyPs(path, FullPacketBytes()) -
                                network_.PathLatencyPs(to_nic, FullPacketBytes());
  const uint32_t ack_bytes = framing_.header_bytes + framing_.ack_bytes;
  flow.ack_latency_ps =
      std::max<int64_t>(0, network_.PathLatencyPs(flow.ack_path, ack_bytes) - behind_nic_ps);
}

int64_t FlowTransport::LatencyPs(const Flow& flow, uint64_t packet_bytes) const {
  const auto bytes = static_cast<uint32_t>(packet_bytes);
  return std::max<int64_t>(0, network_.PathLatencyPs(flow.paths.front(), bytes) -
                                  TransferTimePs(bytes, flow.rate_alone_bps));
}

void FlowTransport::Post(FlowId id, const PostedMessage& message) {
  Flow& flow = flows_[id];
  if (flow.is_closed) return;
  FollowRates(flow);
  // Each queue pair carries a part, with headers of its own.
  const uint64_t parts = flow.paths.size();
  const uint64_t part_bytes = DivideUp(message.size.bytes, parts);
  const uint64_t part_wire_bytes = framing_.WireBytes(part_bytes, mtu_bytes_);
  const uint64_t wire_bytes = message.size.bytes + parts * (part_wire_bytes - part_bytes);
  flow.payload_bytes.push_back(message.size.data_bytes);
  ++flow.unacknowledged;
  network_.flows().CountInjected(message.size.data_bytes);
  carriers_.Send(flow.pipe, {.wire_bytes = wire_bytes,
                             .payload_bytes = message.size.data_bytes,
                             .latency_ps = LatencyPs(
                                 flow, std::min<uint64_t>(part_wire_bytes, FullPacketBytes()))});
}

void FlowTransport::Grant(FlowId id, bool tells_sender) {
  Flow& flow = flows_[id];
  if (!tells_sender || flow.is_closed) return;
  FollowRates(flow);
  flow.last_grant_ps =
      std::max(network_.engine().NowPs() + flow.grant_latency_ps, flow.last_grant_ps + 1);
  ScheduleAnswer(flow.last_grant_ps, id, Answer::kGrant);
}

void FlowTransport::OnArrived(uint32_t number) {
  const FlowId id{number};
  Flow& flow = flows_[id];
  const uint64_t bytes = flow.payload_bytes.front();
  flow.payload_bytes.erase(flow.payload_bytes.begin());
  payload_count_.Add(id, bytes);
  network_.flows().CountDelivered(bytes);
  ScheduleAnswer(network_.engine().NowPs() + flow.ack_latency_ps, id, Answer::kAcknowledgement);
  const SinkRef user = flow.user;
  user.sink->OnDelivered(user.number);
}

void FlowTransport::ScheduleAnswer(int64_t time_ps, FlowId flow, Answer answer) {
  const uint32_t target = 2 * flow + static_cast<uint32_t>(answer);
  network_.engine().ScheduleFabric(time_ps, event_order::kFlowAnswer, target, target);
}

void FlowTransport::HandleAnswer(void* self, uint32_t target) {
  auto& transport = *static_cast<FlowTransport*>(self);
  Flow& flow = transport.flows_[target / 2];
  const SinkRef user = flow.user;
  if (static_cast<Answer>(target % 2) == Answer::kGrant) {
    user.sink->OnGranted(user.number);
    return;
  }
  --flow.unacknowledged;
  user.sink->OnCompleted(user.number);
}

void FlowTransport::OnRoutesChanged() {
  SIM_CHECK(flows_.empty(), "routes that change under flows");
}

std::vector<LinkId> FlowTransport::LinksOf(FlowId flow) const {
  return network_.paths().LinksOf(flows_[flow].paths.front());
}

std::vector<LinkShare> FlowTransport::LinkSharesOf(FlowId id) const {
  return EvenSharesOf(network_, flows_[id].paths);
}

FlowStatus FlowTransport::StatusOf(FlowId id) const {
  const Flow& flow = flows_[id];
  return {.is_under_way = flow.unacknowledged > 0,
          .description = fmt::format("{} ({} messages under way as flows)",
                                     NamesOf(graph_, flow.ends), flow.unacknowledged)};
}

// Events of answers are pending while one is under way.
void FlowTransport::Visit(StateArchive& archive) {
  archive.Named("flows").Constant(flows_.size());
  payload_count_.Visit(archive);
  archive.Section();
  VisitFields(flows_, archive);
}

}  // namespace railyard
