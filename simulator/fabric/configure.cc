// SPDX-License-Identifier: GPL-2.0-only
// Turns attributes into the records that packets touch.
#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {
namespace {

bool IsNetwork(Tier tier) { return tier != Tier::kNvlink && tier != Tier::kHost; }

}  // namespace

void FabricNetwork::Configure() {
  SIM_CHECK(
      tables_.packets.live_count() == 0 && tables_.counters.packets == 0 && reduction_.empty(),
      "a network is configured before its first group and packet");
  const FabricGraph& graph = *tables_.graph;
  tables_.ResetRows();
  links_base_ = reinterpret_cast<const char*>(tables_.links.data());
  accounts_.Reset(tables_.channel_count());
  buffers_.Reset();
  pause_frames_.Reset();
  states_.ResetUp();
  taps_.Reset();
  std::vector<const BufferSettings*> marking(graph.device_count());
  for (DeviceId id{0}; id < graph.device_count(); ++id) {
    if (switches_[id] != nullptr) marking[id] = &switches_[id]->buffer_settings();
    AddBuffer(id);
  }
  marking_.SetSettings(std::move(marking));
  for (LinkId id{0}; id < graph.link_count(); ++id) ConfigureLink(id);
  if (telemetry_.is_enabled()) telemetry_.Enable();
}

const BufferSettings& FabricNetwork::SettingsOf(DeviceId device) const {
  return switches_[device] != nullptr ? switches_[device]->buffer_settings()
                                      : tables_.settings.receive_buffers;
}

void FabricNetwork::AddBuffer(DeviceId device) {
  const FlowControl flow_control = tables_.settings.flow_control;
  const DeviceKind kind = tables_.graph->device(device).kind;
  if (flow_control == FlowControl::kCredits) return;
  if (kind != DeviceKind::kSwitch && kind != DeviceKind::kNic) return;
  const BufferSettings& settings = SettingsOf(device);
  buffers_.Add(device, settings, flow_control == FlowControl::kPfc && settings.lossless_data);
}

void FabricNetwork::ConfigureArrival(const LinkProperties& properties, const Device& target,
                                     Link& link) const {
  link.delay_ps = properties.propagation_ps;
  if (target.kind == DeviceKind::kGpu) {
    link.arrival = Link::Arrival::kGpu;
  } else if (target.kind == DeviceKind::kNic && properties.tier != Tier::kHost) {
    link.arrival = Link::Arrival::kNic;
  } else {
    link.arrival = target.kind == DeviceKind::kHostBridge ? Link::Arrival::kHostBridge
                                                          : Link::Arrival::kForward;
    link.delay_ps += target.forwarding_latency_ps;
  }
  if (tables_.settings.load_balancing != LoadBalancing::kEcmp &&
      target.kind == DeviceKind::kSwitch) {
    link.arrival_flags |= Link::kBalanced;
  }
}

void FabricNetwork::ConfigureLink(LinkId id) {
  const LinkProperties& properties = tables_.graph->link(id);
  const DeviceId source_id = tables_.graph->link_source(id);
  const DeviceId target_id = tables_.graph->link_target(id);
  const Device& source = tables_.graph->device(source_id);
  const Device& target = tables_.graph->device(target_id);
  Link& link = tables_.links[id];
  ConfigureArrival(properties, target, link);
  if (source.kind == DeviceKind::kGpu && target.kind == DeviceKind::kGpu) {
    link.arrival = Link::Arrival::kGpuOfMesh;
  }
  if (tables_.settings.hashes_trajectory) link.arrival_flags |= Link::kObserved;
  if (tables_.settings.form == PortForm::kGeneral) {
    link.send_flags |= Link::kGeneralForm;
    tables_.PortOf(id);
  }
  marking_.SetThreshold(id);

  buffers_.AddEgress(id);
  if (tables_.classes->count() > 1 && source.kind == DeviceKind::kSwitch) {
    link.send_flags |= Link::kClassed;
  }

  // Into a buffer, or onto a link with credits.
  IngressAccount account;
  uint64_t credit_bytes = 0;
  if (target.kind == DeviceKind::kGpu) {
    // Takes all that comes.
  } else if (properties.tier == Tier::kNvlink) {
    credit_bytes = uint64_t{tables_.settings.nvlink_credit_bytes} * properties.lanes;
  } else if (target.kind == DeviceKind::kPcieSwitch || target.kind == DeviceKind::kHostBridge) {
    credit_bytes = tables_.settings.pcie_credit_bytes;
  } else if (IsNetwork(properties.tier) && tables_.settings.flow_control == FlowControl::kCredits) {
    credit_bytes = tables_.settings.credit_bytes;
  } else if (IsNetwork(properties.tier)) {
    account.set_buffer_or_limit(buffers_.OfDevice(target_id));
    const bool may_drop = !buffers_[account.buffer()].is_lossless;
    if (link.arrival == Link::Arrival::kNic && may_drop) link.arrival = Link::Arrival::kLossyNic;
  }
  if (credit_bytes != 0) {
    account.has_credits = 1;
    account.set_buffer_or_limit(std::min(credit_bytes, IngressAccount::kCreditBytesMax));
    link.send_flags |= Link::kNeedsCredit;
  }
  for (uint32_t of = 0; of < tables_.classes->count(); ++of) {
    accounts_[tables_.ChannelOf(id, of)] = account;
  }
  if (credit_bytes != 0 || account.buffer() == kNoBuffer) return;
  const BufferSettings& settings = SettingsOf(target_id);
  const LinkId reverse = tables_.graph->ReverseLink(id);
  const uint64_t computed_bytes =
      HeadroomBytes({.rate_bps = properties.rate_bps,
                     .reverse_rate_bps = tables_.graph->link(reverse).rate_bps,
                     .delay_ps = link.delay_ps,
                     .reverse_propagation_ps = tables_.graph->link(reverse).propagation_ps,
                     .pause_response_ps = tables_.settings.pause_response_ps,
                     .mtu_bytes = settings.mtu_bytes});
  const uint64_t bytes = settings.headroom_bytes != 0 ? settings.headroom_bytes : computed_bytes;
  for (uint32_t of = 0; of < tables_.classes->count(); ++of) {
    buffers_.SetHeadroom(
        tables_.ChannelOf(id, of),
        static_cast<uint32_t>(static_cast<double>(bytes) * settings.headroom_scale));
  }
}

}  // namespace railyard
