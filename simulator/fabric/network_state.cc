// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/network_state.h"

#include <functional>

namespace railyard {

void NetworkState::Visit(StateArchive& archive) {
  FabricTables& tables = network_.tables;
  const ChannelAccounts& accounts = network_.accounts;
  network_.flows.Settle();
  // Otherwise ports and switches decide by more than this walk knows.
  archive.Require(tables.settings.load_balancing == LoadBalancing::kEcmp &&
                  !network_.telemetry.is_enabled() && !tables.settings.hashes_trajectory);
  archive.Require(tables.packets.live_count() == 0 && network_.flows.bytes_in_flight() == 0);
  archive.Constant(conditions_);
  for (LinkId id{0}; id < tables.links.size(); ++id) VisitLink(id, archive);
  for (VirtualChannelId id{0}; id < accounts.size(); ++id) {
    archive.Require(accounts[id].bytes == 0 && !network_.buffers.PauseOf(id).is_xoff);
    network_.pause_frames.Visit(id, archive);
  }
  for (BufferId id{0}; id < accounts.pool_count(); ++id) {
    archive.Require(accounts.pool(id).bytes == 0);
  }
  archive.Constant(tables.ports.size());
  archive.Constant(network_.reduction.counted_links());
  archive.Section();
  VisitFields(tables.ports, archive);
  archive.Section();
  network_.reduction.Visit(archive);
  archive.Section();
  VisitCounters(archive);
  if (archive.is_checking()) CheckBuffers(archive);
}

std::string NetworkState::WhyNeverReplayed() const {
  const FabricSettings& settings = network_.tables.settings;
  if (settings.hashes_trajectory) return "every packet enters the trajectory hash";
  if (settings.load_balancing != LoadBalancing::kEcmp) {
    return "load balancing chooses a packet's link by queues, instants or draws";
  }
  return {};
}

// The walk above requires only a part of what the tables of buffers have.
void NetworkState::CheckBuffers(StateArchive& archive) const {
  const ChannelAccounts& accounts = network_.accounts;
  for (VirtualChannelId id{0}; id < accounts.size(); ++id) {
    CheckFields(accounts[id], id, archive);
    CheckFields(network_.buffers.PauseOf(id), id, archive);
  }
  for (BufferId id{0}; id < accounts.pool_count(); ++id) {
    CheckFields(accounts.pool(id), id, archive);
    CheckFields(network_.buffers[id], id, archive);
  }
}

void NetworkState::VisitCounters(StateArchive& archive) {
  if (archive.is_naming()) archive.BeginRecord("network", 0);
  VisitFields(network_.tables.counters, archive);
  archive.Unrepeatable(network_.holds.reports().size());
}

void NetworkState::VisitLink(LinkId id, StateArchive& archive) {
  FabricTables& tables = network_.tables;
  archive.Require(tables.is_held[id] == 0);
  VisitFields(tables.links[id], id, archive);
  archive.Named("is_down").Constant(network_.states.IsUp(id) ? 0 : 1);
  archive.Named("rate").Constant(tables.rates_bps[id] ^ tables.graph->link(id).rate_bps);
}

void NetworkState::VisitHistory(LinkId id, StateArchive& archive) {
  network_.states.Visit(id, archive);
  if (const DelayLine* const line = network_.delays.Find(id)) archive.Require(line->is_idle());
}

// Only ports that were in the general form have a record.
void NetworkState::VisitPortOf(LinkId id, StateArchive& archive) {
  FabricTables& tables = network_.tables;
  Port none;
  Port& port = tables.FindPort(id) != nullptr ? tables.PortOf(id) : none;
  archive.Require(port.is_idle() && port.held_classes() == 0 && !port.is_in_storm);
  VisitFields(port, id, archive);
  if (none.paused_ps == 0 && none.general_hops == 0) return;
  Port& made = tables.PortOf(id);
  made.paused_ps = none.paused_ps;
  made.general_hops = none.general_hops;
}

void NetworkState::VisitReceiverOf(LinkId id, StateArchive& archive) {
  const VirtualChannelId channel = FirstChannelOf(id);
  const IngressAccount& account = network_.accounts[channel];
  archive.Constant(account.has_credits ? account.credit_limit() : 0);
  if (account.has_credits || account.buffer() == kNoBuffer) return;
  const SharedBuffer& buffer = network_.buffers[account.buffer()];
  archive.Constant(static_cast<uint64_t>(buffer.bytes_max));
  archive.Constant(static_cast<uint64_t>(buffer.alpha_128ths));
  archive.Constant(static_cast<uint64_t>(buffer.xon_offset_bytes));
  archive.Constant(network_.buffers.PauseOf(channel).headroom_bytes_max);
}

// Rails whose switches have buffers of other sizes are not alike: the settings of the buffers that
// the links end in are part of the state.
void NetworkState::VisitNicLinks(std::span<const LinkId> links, StateArchive& archive) {
  const FabricTables& tables = network_.tables;
  archive.Require(tables.settings.load_balancing == LoadBalancing::kEcmp &&
                  !network_.telemetry.is_enabled() && !tables.settings.hashes_trajectory &&
                  tables.classes->count() == 1);
  for (const LinkId id : links) {
    const LinkRecord& link = tables.links[id];
    const VirtualChannelId channel = FirstChannelOf(id);
    VisitHistory(id, archive);
    archive.Require(network_.states.IsUp(id) && network_.accounts[channel].bytes == 0 &&
                    !network_.buffers.PauseOf(channel).is_xoff &&
                    (link.send_flags & LinkRecord::kTailDrop) == 0);
    network_.pause_frames.Visit(channel, archive);
    archive.Constant(tables.rates_bps[id]);
    archive.Constant(link.mark_above);
    VisitReceiverOf(id, archive);
    VisitLink(id, archive);
    VisitPortOf(id, archive);
  }
}

// NVLinks are in one lossless class, the first, and end in no shared buffer.
void NetworkState::VisitNvlinks(std::span<const LinkId> links, StateArchive& archive) {
  FabricTables& tables = network_.tables;
  archive.Require(!network_.telemetry.is_enabled() && !tables.settings.hashes_trajectory);
  archive.Unrepeatable(network_.holds.reports().size());
  const NetworkCounters before = archive.adds() ? SumOverNvlinks(links) : NetworkCounters{};
  for (const LinkId id : links) {
    VisitHistory(id, archive);
    archive.Require(network_.accounts[FirstChannelOf(id)].bytes == 0);
    VisitLink(id, archive);
    VisitPortOf(id, archive);
    network_.reduction.Visit(id, archive);
  }
  if (!archive.adds()) return;
  CombineFields(tables.counters, SumOverNvlinks(links), std::plus<>());
  CombineFields(tables.counters, before, std::minus<>());
}

// Returns the share of these quiescent NVLinks in the network's counters if they lost nothing: all
// that left GPUs, except requests, was injected, and all of its results are in memory.
NetworkCounters NetworkState::SumOverNvlinks(std::span<const LinkId> links) const {
  const FabricTables& tables = network_.tables;
  NetworkCounters sum;
  for (const LinkId id : links) {
    const LinkRecord& link = tables.links[id];
    const InSwitchCounters made = network_.reduction.CountersOf(id);
    const uint64_t request_hops = made.requests + made.request_copies;
    sum.control_hops += request_hops;
    sum.packet_hops += link.packets;
    sum.packet_hops -= request_hops;  // some of them on other links: the sum alone is right
    sum.replicated_bytes += made.replicated_bytes;
    sum.reduced_bytes += made.reduced_bytes;
    if (const Port* const port = tables.FindPort(id)) sum.general_hops += port->general_hops;
    if (tables.graph->device(tables.graph->link_source(id)).kind != DeviceKind::kGpu) continue;
    sum.packets += link.packets - made.requests;
    sum.injected_bytes += link.payload_bytes;
  }
  sum.delivered_bytes = sum.injected_bytes + sum.replicated_bytes - sum.reduced_bytes;
  return sum;
}

}  // namespace railyard
