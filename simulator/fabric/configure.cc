// SPDX-License-Identifier: GPL-2.0-only
// From attributes to the records that packets touch.
#include "simulator/diagnostics/check.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {
namespace {

bool IsNetwork(Tier tier) { return tier != Tier::kNvlink && tier != Tier::kHost; }

}  // namespace

void FabricNetwork::Configure() {
  SIM_CHECK(packets_.live_count() == 0 && counters_.packets == 0 && groups_.empty() &&
                aggregation_nodes_.empty(),
            "a network is configured before its first group and packet");
  const uint32_t link_count = graph_->link_count();
  links_.assign(link_count, Link{});
  links_base_ = reinterpret_cast<const char*>(links_.data());
  accounts_.assign(uint64_t{link_count} * classes_->count(), {});
  pauses_.assign(accounts_.size(), {});
  egress_bytes_.assign(link_count, 0);
  is_held_.assign(link_count, 0);
  is_up_.assign(link_count, true);
  port_of_link_.assign(link_count, Packet::kNone);
  ports_.clear();
  rates_bps_.resize(link_count);
  for (LinkId id = 0; id < link_count; ++id) rates_bps_[id] = graph_->link(id).rate_bps;

  // The first buffer is of the links that end in none: it has no limit.
  buffers_.assign(1, {});
  pools_.assign(1, {});
  buffer_of_device_.assign(graph_->device_count(), kNoBuffer);
  if (network_flow_control_ != FlowControl::kCredits) {
    for (DeviceId id = 0; id < graph_->device_count(); ++id) AddBuffer(id);
  }
  buffer_of_source_.resize(link_count);
  for (LinkId id = 0; id < link_count; ++id) ConfigureLink(id);
  if (telemetry_enabled_) EnableTelemetry();
}

const BufferSettings& FabricNetwork::SettingsOf(DeviceId device) const {
  return switches_[device] != nullptr ? switches_[device]->buffer_settings() : receive_buffers_;
}

void FabricNetwork::AddBuffer(DeviceId device) {
  const DeviceKind kind = graph_->device(device).kind;
  if (kind != DeviceKind::kSwitch && kind != DeviceKind::kNic) return;
  const BufferSettings& settings = SettingsOf(device);
  const bool is_lossless = network_flow_control_ == FlowControl::kPfc && settings.lossless_data;
  buffer_of_device_[device] = static_cast<uint32_t>(buffers_.size());
  buffers_.push_back(MakeSharedBuffer(device, settings, is_lossless));
  // A lossy buffer decides at its egress queues, for every packet.
  pools_.push_back(
      {.bytes = 0, .calm_bytes = is_lossless ? buffers_.back().calm_bytes : INT64_MAX});
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
  if (load_balancing_ != LoadBalancing::kEcmp && target.kind == DeviceKind::kSwitch) {
    link.arrival_flags |= Link::kBalanced;
  }
}

void FabricNetwork::ConfigureLink(LinkId id) {
  const LinkProperties& properties = graph_->link(id);
  const DeviceId source_id = graph_->link_source(id);
  const DeviceId target_id = graph_->link_target(id);
  const Device& source = graph_->device(source_id);
  const Device& target = graph_->device(target_id);
  Link& link = links_[id];
  ConfigureArrival(properties, target, link);
  if (source.kind == DeviceKind::kGpu && target.kind == DeviceKind::kGpu) {
    link.arrival = Link::Arrival::kGpuOfMesh;
  }
  if (hashes_trajectory_) link.arrival_flags |= Link::kHashed;
  if (form_ == PortForm::kGeneral) {
    link.send_flags |= Link::kGeneralForm;
    PortOf(id);
  }
  SetMarking(id);

  // Out of a buffer.
  buffer_of_source_[id] = buffer_of_device_[source_id];
  SharedBuffer& out_of = buffers_[buffer_of_source_[id]];
  if (buffer_of_source_[id] != kNoBuffer) {
    out_of.egress.push_back(id);
    if (!out_of.is_lossless) {
      link.send_flags |= Link::kTailDrop;
      link.arrival_flags |= Link::kFromLossyBuffer;
    }
  }

  if (classes_->count() > 1 && source.kind == DeviceKind::kSwitch) {
    link.send_flags |= Link::kClassed;
  }

  // Into a buffer, or onto a link with credits.
  IngressAccount account;
  uint64_t credit_bytes = 0;
  if (target.kind == DeviceKind::kGpu) {
    // Takes all that comes.
  } else if (properties.tier == Tier::kNvlink) {
    credit_bytes = uint64_t{nvlink_credit_bytes_} * properties.lanes;
  } else if (target.kind == DeviceKind::kPcieSwitch || target.kind == DeviceKind::kHostBridge) {
    credit_bytes = pcie_credit_bytes_;
  } else if (IsNetwork(properties.tier) && network_flow_control_ == FlowControl::kCredits) {
    credit_bytes = credit_bytes_;
  } else if (IsNetwork(properties.tier)) {
    account.set_buffer_or_limit(buffer_of_device_[target_id]);
    const bool may_drop = !buffers_[account.buffer()].is_lossless;
    if (link.arrival == Link::Arrival::kNic && may_drop) link.arrival = Link::Arrival::kLossyNic;
  }
  if (credit_bytes != 0) {
    account.has_credits = 1;
    account.set_buffer_or_limit(std::min(credit_bytes, IngressAccount::kCreditBytesMax));
    link.send_flags |= Link::kNeedsCredit;
  }
  for (uint32_t of = 0; of < classes_->count(); ++of) accounts_[ChannelOf(id, of)] = account;
  if (credit_bytes != 0 || account.buffer() == kNoBuffer) return;
  const BufferSettings& settings = SettingsOf(target_id);
  const LinkId reverse = graph_->ReverseLink(id);
  const uint64_t computed_bytes =
      HeadroomBytes({.rate_bps = properties.rate_bps,
                     .reverse_rate_bps = graph_->link(reverse).rate_bps,
                     .delay_ps = link.delay_ps,
                     .reverse_propagation_ps = graph_->link(reverse).propagation_ps,
                     .pause_response_ps = pause_response_ps_,
                     .mtu_bytes = settings.mtu_bytes});
  const uint64_t bytes = settings.headroom_bytes != 0 ? settings.headroom_bytes : computed_bytes;
  for (uint32_t of = 0; of < classes_->count(); ++of) {
    pauses_[ChannelOf(id, of)].headroom_bytes_max =
        static_cast<uint32_t>(static_cast<double>(bytes) * settings.headroom_scale);
  }
}

}  // namespace railyard
