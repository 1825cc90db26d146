// SPDX-License-Identifier: GPL-2.0-only
// The state of a network without packets, or of NVLinks without. Which form a port has is left out:
// no result depends on it.
#include "simulator/fabric/fabric_network.h"

namespace railyard {

void FabricNetwork::Visit(StateArchive& archive) {
  // What the ports and the switches then decide by is more than this walk knows.
  archive.Require(load_balancing_ == LoadBalancing::kEcmp && !telemetry_enabled_ &&
                  !hashes_trajectory_);
  archive.Require(packets_.live_count() == 0);
  archive.Constant(conditions_);
  for (LinkId id = 0; id < links_.size(); ++id) Visit(id, archive);
  for (VirtualChannelId id = 0; id < accounts_.size(); ++id) {
    archive.Require(accounts_[id].bytes == 0 && !pauses_[id].is_xoff);
    archive.Instant(pauses_[id].last_frame_end_ps);
  }
  for (const Pool& pool : pools_) archive.Require(pool.bytes == 0);
  archive.Constant(ports_.size());
  archive.Constant(in_switch_.size());
  archive.Section();
  for (Port& port : ports_) Visit(port, archive);
  archive.Section();
  for (InSwitchCounters& counters : in_switch_) Visit(counters, archive);
  archive.Section();
  VisitCounters(archive);
}

void FabricNetwork::VisitCounters(StateArchive& archive) {
  archive.Count(counters_.packets);
  archive.Count(counters_.packet_hops);
  archive.Count(counters_.control_hops);
  archive.Count(counters_.injected_bytes);
  archive.Count(counters_.delivered_bytes);
  archive.Count(counters_.replicated_bytes);
  archive.Count(counters_.reduced_bytes);
  archive.Count(counters_.ecn_marked);
  archive.Count(counters_.xoff_frames);
  archive.Count(counters_.xon_frames);
  archive.Count(counters_.pfc_pause_ps);
  archive.Count(counters_.general_hops);
  archive.Count(counters_.draws);
  archive.Unrepeatable(counters_.draws);
  archive.Unrepeatable(hold_reports_.size());
  for (const uint64_t packets : counters_.dropped_packets) archive.Unrepeatable(packets);
}

void FabricNetwork::Visit(LinkId id, StateArchive& archive) {
  Link& link = links_[id];
  archive.Require(is_held_[id] == 0);
  archive.Instant(link.busy_until_ps);
  archive.Constant(is_up_[id] ? 0 : 1);
  archive.Constant(rates_bps_[id] ^ graph_->link(id).rate_bps);
  archive.Constant(static_cast<uint64_t>(link.delay_ps));
  archive.Count(link.payload_bytes);
  archive.Count(link.wire_bytes);
  archive.Count(link.packets);
  archive.Count(link.sent);
}

// No filter is at work on the link.
void FabricNetwork::VisitCold(LinkId id, StateArchive& archive) {
  const auto cold = cold_links_.find(id);
  if (cold == cold_links_.end()) return;
  archive.Require(!cold->second.is_lost && !cold->second.extra_delay_ps &&
                  cold->second.late.empty());
  archive.Unrepeatable(cold->second.dropped_packets);
}

// Only ports that were in the general form have a record.
void FabricNetwork::VisitPortOf(LinkId id, StateArchive& archive) {
  Port none;
  Port& port = port_of_link_[id] != Packet::kNone ? ports_[port_of_link_[id]] : none;
  archive.Require(port.is_idle() && port.held_classes() == 0 && !port.is_in_storm);
  Visit(port, archive);
  if (none.paused_ps == 0 && none.general_hops == 0) return;
  Port& made = PortOf(id);
  made.paused_ps = none.paused_ps;
  made.general_hops = none.general_hops;
}

void FabricNetwork::Visit(Port& port, StateArchive& archive) {
  archive.Count(port.paused_ps);
  archive.Count(port.general_hops);
}

void FabricNetwork::Visit(InSwitchCounters& counters, StateArchive& archive) {
  archive.Count(counters.replicated_bytes);
  archive.Count(counters.reduced_bytes);
  archive.Count(counters.requests);
  archive.Count(counters.request_copies);
  archive.Count(counters.packets);
}

// What they end in has the same settings on like rails: it is of the same switches and NICs.
void FabricNetwork::VisitNicLinks(std::span<const LinkId> links, StateArchive& archive) {
  archive.Require(load_balancing_ == LoadBalancing::kEcmp && !telemetry_enabled_ &&
                  !hashes_trajectory_ && classes_->count() == 1);
  for (const LinkId id : links) {
    const Link& link = links_[id];
    const IngressAccount& account = accounts_[id];
    VisitCold(id, archive);
    archive.Require(is_up_[id] && link.timed == 0 && account.bytes == 0 && !pauses_[id].is_xoff &&
                    (link.send_flags & Link::kTailDrop) == 0);
    archive.Instant(pauses_[id].last_frame_end_ps);
    archive.Constant(rates_bps_[id]);
    archive.Constant(link.mark_above);
    archive.Constant(account.has_credits ? account.credit_limit() : 0);
    if (!account.has_credits && account.buffer() != kNoBuffer) {
      const SharedBuffer& buffer = buffers_[account.buffer()];
      archive.Constant(static_cast<uint64_t>(buffer.bytes_max));
      archive.Constant(static_cast<uint64_t>(buffer.alpha_128ths));
      archive.Constant(static_cast<uint64_t>(buffer.xon_offset_bytes));
      archive.Constant(pauses_[id].headroom_bytes_max);
    }
    Visit(id, archive);
    VisitPortOf(id, archive);
  }
}

// NVLinks are in one lossless class, the first, and end in no shared buffer.
void FabricNetwork::VisitNvlinks(std::span<const LinkId> links, StateArchive& archive) {
  archive.Require(!telemetry_enabled_ && !hashes_trajectory_);
  archive.Unrepeatable(hold_reports_.size());
  const NetworkCounters before = archive.adds() ? SumOverNvlinks(links) : NetworkCounters{};
  for (const LinkId id : links) {
    VisitCold(id, archive);
    archive.Require(links_[id].timed == 0 && accounts_[id].bytes == 0);
    Visit(id, archive);
    VisitPortOf(id, archive);
    archive.Constant(in_switch_.size());
    if (!in_switch_.empty()) Visit(in_switch_[id], archive);
  }
  if (!archive.adds()) return;
  const NetworkCounters after = SumOverNvlinks(links);
  for (const auto count : {&NetworkCounters::packets, &NetworkCounters::packet_hops,
                           &NetworkCounters::control_hops, &NetworkCounters::injected_bytes,
                           &NetworkCounters::delivered_bytes, &NetworkCounters::replicated_bytes,
                           &NetworkCounters::reduced_bytes, &NetworkCounters::general_hops}) {
    counters_.*count += after.*count - before.*count;
  }
}

// What the network's counters have of these NVLinks at rest, where nothing was lost: all that left
// GPUs but requests was injected, and what came of it is in memory.
NetworkCounters FabricNetwork::SumOverNvlinks(std::span<const LinkId> links) const {
  NetworkCounters sum;
  for (const LinkId id : links) {
    const Link& link = links_[id];
    const InSwitchCounters made = in_switch_.empty() ? InSwitchCounters{} : in_switch_[id];
    const uint64_t request_hops = made.requests + made.request_copies;
    sum.control_hops += request_hops;
    sum.packet_hops += link.packets;
    sum.packet_hops -= request_hops;  // some of them on other links: the sum alone is right
    sum.replicated_bytes += made.replicated_bytes;
    sum.reduced_bytes += made.reduced_bytes;
    if (port_of_link_[id] != Packet::kNone) {
      sum.general_hops += ports_[port_of_link_[id]].general_hops;
    }
    if (graph_->device(graph_->link_source(id)).kind != DeviceKind::kGpu) continue;
    sum.packets += link.packets - made.requests;
    sum.injected_bytes += link.payload_bytes;
  }
  sum.delivered_bytes = sum.injected_bytes + sum.replicated_bytes - sum.reduced_bytes;
  return sum;
}

}  // namespace railyard
