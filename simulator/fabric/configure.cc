// SPDX-License-Identifier: GPL-2.0-only
// Turns attributes into the records that packets touch.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/diagnostics/check.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {
namespace {

bool IsNetwork(Tier tier) { return tier != Tier::kNvlink && tier != Tier::kHost; }

// Sets up the records of devices and links; the tables have default rows before.
class RecordSetup {
 public:
  // Has null for a device that is not a switch.
  using Switches = std::vector<ns3::Ptr<Switch>>;
  RecordSetup(FabricTables& tables, ChannelAccounts& accounts, SharedBuffers& buffers,
              const Switches& switches)
      : tables_(tables),
        graph_(*tables.graph),
        accounts_(accounts),
        buffers_(buffers),
        switches_(switches) {}

  void AddBuffer(DeviceId device);
  void ConfigureLink(LinkId id);

 private:
  const BufferSettings& SettingsOf(DeviceId device) const {
    return switches_[device] != nullptr ? switches_[device]->buffer_settings()
                                        : tables_.settings.receive_buffers;
  }
  void ConfigureArrival(LinkId id);
  // Returns the credit of a link's sender; 0 if the link has no credits.
  uint64_t CreditBytesOf(LinkId id) const;
  void ConfigureAccounts(LinkId id);
  void SetHeadroom(LinkId id);

  FabricTables& tables_;
  const FabricGraph& graph_;
  ChannelAccounts& accounts_;
  SharedBuffers& buffers_;
  const Switches& switches_;
};

void RecordSetup::AddBuffer(DeviceId device) {
  const FlowControl flow_control = tables_.settings.flow_control;
  const DeviceKind kind = graph_.device(device).kind;
  if (flow_control == FlowControl::kCredits) return;
  if (kind != DeviceKind::kSwitch && kind != DeviceKind::kNic) return;
  const BufferSettings& settings = SettingsOf(device);
  buffers_.Add(device, settings, flow_control == FlowControl::kPfc && settings.lossless_data);
}

void RecordSetup::ConfigureLink(LinkId id) {
  LinkRecord& link = tables_.links[id];
  ConfigureArrival(id);
  if (tables_.settings.hashes_trajectory) link.arrival_flags |= LinkRecord::kObserved;
  if (tables_.settings.form == PortForm::kGeneral) {
    link.send_flags |= LinkRecord::kGeneralForm;
    tables_.PortOf(id);
  }
  buffers_.AddEgress(id);
  const bool leaves_switch = graph_.device(graph_.link_source(id)).kind == DeviceKind::kSwitch;
  if (tables_.classes->count() > 1 && leaves_switch) link.send_flags |= LinkRecord::kClassed;
  ConfigureAccounts(id);
}

void RecordSetup::ConfigureArrival(LinkId id) {
  const LinkProperties& properties = graph_.link(id);
  const Device& target = graph_.device(graph_.link_target(id));
  LinkRecord& link = tables_.links[id];
  link.delay_ps = properties.propagation_ps;
  if (target.kind == DeviceKind::kGpu) {
    const bool leaves_gpu = graph_.device(graph_.link_source(id)).kind == DeviceKind::kGpu;
    link.arrival = leaves_gpu ? LinkRecord::Arrival::kGpuOfMesh : LinkRecord::Arrival::kGpu;
  } else if (target.kind == DeviceKind::kNic && properties.tier != Tier::kHost) {
    link.arrival = LinkRecord::Arrival::kNic;
  } else {
    link.arrival = target.kind == DeviceKind::kHostBridge ? LinkRecord::Arrival::kHostBridge
                                                          : LinkRecord::Arrival::kForward;
    link.delay_ps += target.forwarding_latency_ps;
  }
  if (tables_.settings.load_balancing != LoadBalancing::kEcmp &&
      target.kind == DeviceKind::kSwitch) {
    link.arrival_flags |= LinkRecord::kBalanced;
  }
}

uint64_t RecordSetup::CreditBytesOf(LinkId id) const {
  const LinkProperties& properties = graph_.link(id);
  const DeviceKind target = graph_.device(graph_.link_target(id)).kind;
  const FabricSettings& settings = tables_.settings;
  if (target == DeviceKind::kGpu) return 0;  // takes all that comes
  if (properties.tier == Tier::kNvlink) {
    return uint64_t{settings.nvlink_credit_bytes} * properties.lanes;
  }
  if (target == DeviceKind::kPcieSwitch || target == DeviceKind::kHostBridge) {
    return settings.pcie_credit_bytes;
  }
  const bool has_credits =
      IsNetwork(properties.tier) && settings.flow_control == FlowControl::kCredits;
  return has_credits ? settings.credit_bytes : 0;
}

// A link leads into a buffer, or has credits, or neither.
void RecordSetup::ConfigureAccounts(LinkId id) {
  LinkRecord& link = tables_.links[id];
  IngressAccount account;
  BufferId buffer = kNoBuffer;
  if (const uint64_t credit_bytes = CreditBytesOf(id); credit_bytes != 0) {
    account.has_credits = 1;
    account.set_buffer_or_limit(std::min(credit_bytes, IngressAccount::kCreditBytesMax));
    link.send_flags |= LinkRecord::kNeedsCredit;
  } else if (IsNetwork(graph_.link(id).tier)) {
    buffer = buffers_.OfDevice(graph_.link_target(id));
    account.set_buffer_or_limit(buffer);
    const bool may_drop = !buffers_[buffer].is_lossless;
    if (link.arrival == LinkRecord::Arrival::kNic && may_drop)
      link.arrival = LinkRecord::Arrival::kLossyNic;
  }
  for (uint32_t of = 0; of < tables_.classes->count(); ++of) {
    accounts_[tables_.ChannelOf(id, of)] = account;
  }
  if (buffer != kNoBuffer) SetHeadroom(id);
}

void RecordSetup::SetHeadroom(LinkId id) {
  const BufferSettings& settings = SettingsOf(graph_.link_target(id));
  const LinkProperties& reverse = graph_.link(graph_.ReverseLink(id));
  const uint64_t computed_bytes =
      HeadroomBytes({.rate_bps = graph_.link(id).rate_bps,
                     .reverse_rate_bps = reverse.rate_bps,
                     .delay_ps = tables_.links[id].delay_ps,
                     .reverse_propagation_ps = reverse.propagation_ps,
                     .pause_response_ps = tables_.settings.pause_response_ps,
                     .mtu_bytes = settings.mtu_bytes});
  const uint64_t bytes = settings.headroom_bytes != 0 ? settings.headroom_bytes : computed_bytes;
  for (uint32_t of = 0; of < tables_.classes->count(); ++of) {
    buffers_.SetHeadroom(
        tables_.ChannelOf(id, of),
        static_cast<uint32_t>(static_cast<double>(bytes) * settings.headroom_scale));
  }
}

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
  RecordSetup setup(tables_, accounts_, buffers_, switches_);
  std::vector<const BufferSettings*> marking(graph.device_count());
  for (DeviceId id{0}; id < graph.device_count(); ++id) {
    if (switches_[id] != nullptr) marking[id] = &switches_[id]->buffer_settings();
    setup.AddBuffer(id);
  }
  marking_.SetSettings(std::move(marking));
  for (LinkId id{0}; id < graph.link_count(); ++id) {
    setup.ConfigureLink(id);
    marking_.SetThreshold(id);
  }
  if (telemetry_.is_enabled()) telemetry_.Enable();
}

}  // namespace railyard
