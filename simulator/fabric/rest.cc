// SPDX-License-Identifier: GPL-2.0-only
// The state of a network without packets. Which form a port has is left out: no result depends on
// it.
#include "simulator/fabric/fabric_network.h"

namespace railyard {

void FabricNetwork::Visit(StateArchive& archive) {
  // What the ports and the switches then decide by is more than this walk knows.
  archive.Require(load_balancing_ == LoadBalancing::kEcmp && !telemetry_enabled_ &&
                  !hashes_trajectory_);
  archive.Require(packets_.live_count() == 0);
  archive.Constant(conditions_);
  for (LinkId id = 0; id < links_.size(); ++id) {
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
  for (VirtualChannelId id = 0; id < accounts_.size(); ++id) {
    archive.Require(accounts_[id].bytes == 0 && !pauses_[id].is_xoff);
    archive.Instant(pauses_[id].last_frame_end_ps);
  }
  for (const Pool& pool : pools_) archive.Require(pool.bytes == 0);
  archive.Constant(ports_.size());
  for (Port& port : ports_) archive.Count(port.paused_ps);
  for (uint32_t& made : made_packets_) archive.Count(made);
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
  archive.Unrepeatable(counters_.draws);
  archive.Unrepeatable(hold_reports_.size());
  for (const uint64_t packets : counters_.dropped_packets) archive.Unrepeatable(packets);
}

}  // namespace railyard
