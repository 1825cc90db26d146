// SPDX-License-Identifier: GPL-2.0-only
// The state of a network without packets, or of NVLinks without. Which form a port has is left out:
// no result depends on it.
#include <functional>

#include "simulator/fabric/fabric_network.h"

namespace railyard {

void FabricNetwork::Visit(StateArchive& archive) {
  static_assert(NamesEveryMember<IngressAccount>() && NamesEveryMember<Pool>() &&
                NamesEveryMember<IngressPause>() && NamesEveryMember<SharedBuffer>());
  flows_.Settle();
  // Otherwise ports and switches decide by more than this walk knows.
  archive.Require(tables_.settings.load_balancing == LoadBalancing::kEcmp &&
                  !telemetry_.is_enabled() && !tables_.settings.hashes_trajectory);
  archive.Require(tables_.packets.live_count() == 0 && flows_.bytes_in_flight() == 0);
  archive.Constant(conditions_);
  for (LinkId id{0}; id < tables_.links.size(); ++id) VisitLink(id, archive);
  for (VirtualChannelId id{0}; id < accounts_.size(); ++id) {
    archive.Require(accounts_[id].bytes == 0 && !buffers_.PauseOf(id).is_xoff);
    pause_frames_.Visit(id, archive);
  }
  for (BufferId id{0}; id < accounts_.pool_count(); ++id) {
    archive.Require(accounts_.pool(id).bytes == 0);
  }
  archive.Constant(tables_.ports.size());
  archive.Constant(reduction_.counted_links());
  archive.Section();
  VisitFields(tables_.ports, archive);
  archive.Section();
  reduction_.Visit(archive);
  archive.Section();
  VisitCounters(archive);
}

void FabricNetwork::VisitCounters(StateArchive& archive) {
  if (archive.is_naming()) archive.BeginRecord("network", 0);
  VisitFields(tables_.counters, archive);
  archive.Unrepeatable(holds_.reports().size());
}

void FabricNetwork::VisitLink(LinkId id, StateArchive& archive) {
  archive.Require(tables_.is_held[id] == 0);
  VisitFields(tables_.links[id], id, archive);
  archive.Named("is_down").Constant(states_.IsUp(id) ? 0 : 1);
  archive.Named("rate").Constant(tables_.rates_bps[id] ^ tables_.graph->link(id).rate_bps);
}

void FabricNetwork::VisitHistory(LinkId id, StateArchive& archive) {
  states_.Visit(id, archive);
  if (const DelayLine* const line = delays_.Find(id)) archive.Require(line->is_idle());
}

// Only ports that were in the general form have a record.
void FabricNetwork::VisitPortOf(LinkId id, StateArchive& archive) {
  Port none;
  Port& port = tables_.FindPort(id) != nullptr ? tables_.PortOf(id) : none;
  archive.Require(port.is_idle() && port.held_classes() == 0 && !port.is_in_storm);
  VisitFields(port, id, archive);
  if (none.paused_ps == 0 && none.general_hops == 0) return;
  Port& made = tables_.PortOf(id);
  made.paused_ps = none.paused_ps;
  made.general_hops = none.general_hops;
}

// Rails whose switches have buffers of other sizes are not alike: the settings of the buffers that
// the links end in are part of the state.
void FabricNetwork::VisitNicLinks(std::span<const LinkId> links, StateArchive& archive) {
  archive.Require(tables_.settings.load_balancing == LoadBalancing::kEcmp &&
                  !telemetry_.is_enabled() && !tables_.settings.hashes_trajectory &&
                  tables_.classes->count() == 1);
  for (const LinkId id : links) {
    const Link& link = tables_.links[id];
    const VirtualChannelId channel = FirstChannelOf(id);
    const IngressAccount& account = accounts_[channel];
    VisitHistory(id, archive);
    archive.Require(states_.IsUp(id) && account.bytes == 0 && !buffers_.PauseOf(channel).is_xoff &&
                    (link.send_flags & Link::kTailDrop) == 0);
    pause_frames_.Visit(channel, archive);
    archive.Constant(tables_.rates_bps[id]);
    archive.Constant(link.mark_above);
    archive.Constant(account.has_credits ? account.credit_limit() : 0);
    if (!account.has_credits && account.buffer() != kNoBuffer) {
      const SharedBuffer& buffer = buffers_[account.buffer()];
      archive.Constant(static_cast<uint64_t>(buffer.bytes_max));
      archive.Constant(static_cast<uint64_t>(buffer.alpha_128ths));
      archive.Constant(static_cast<uint64_t>(buffer.xon_offset_bytes));
      archive.Constant(buffers_.PauseOf(channel).headroom_bytes_max);
    }
    VisitLink(id, archive);
    VisitPortOf(id, archive);
  }
}

// NVLinks are in one lossless class, the first, and end in no shared buffer.
void FabricNetwork::VisitNvlinks(std::span<const LinkId> links, StateArchive& archive) {
  archive.Require(!telemetry_.is_enabled() && !tables_.settings.hashes_trajectory);
  archive.Unrepeatable(holds_.reports().size());
  const NetworkCounters before = archive.adds() ? SumOverNvlinks(links) : NetworkCounters{};
  for (const LinkId id : links) {
    VisitHistory(id, archive);
    archive.Require(accounts_[FirstChannelOf(id)].bytes == 0);
    VisitLink(id, archive);
    VisitPortOf(id, archive);
    reduction_.Visit(id, archive);
  }
  if (!archive.adds()) return;
  CombineFields(tables_.counters, SumOverNvlinks(links), std::plus<>());
  CombineFields(tables_.counters, before, std::minus<>());
}

// Returns the share of these quiescent NVLinks in the network's counters if they lost nothing: all
// that left GPUs, except requests, was injected, and all of its results are in memory.
NetworkCounters FabricNetwork::SumOverNvlinks(std::span<const LinkId> links) const {
  NetworkCounters sum;
  for (const LinkId id : links) {
    const Link& link = tables_.links[id];
    const InSwitchCounters made = reduction_.CountersOf(id);
    const uint64_t request_hops = made.requests + made.request_copies;
    sum.control_hops += request_hops;
    sum.packet_hops += link.packets;
    sum.packet_hops -= request_hops;  // some of them on other links: the sum alone is right
    sum.replicated_bytes += made.replicated_bytes;
    sum.reduced_bytes += made.reduced_bytes;
    if (const Port* const port = tables_.FindPort(id)) sum.general_hops += port->general_hops;
    if (tables_.graph->device(tables_.graph->link_source(id)).kind != DeviceKind::kGpu) continue;
    sum.packets += link.packets - made.requests;
    sum.injected_bytes += link.payload_bytes;
  }
  sum.delivered_bytes = sum.injected_bytes + sum.replicated_bytes - sum.reduced_bytes;
  return sum;
}

}  // namespace railyard
