// SPDX-License-Identifier: GPL-2.0-only
// Links that go down, change their rate, or lose packets.
#include <utility>

#include "simulator/fabric/fabric_network.h"

namespace railyard {

void FabricNetwork::SetLinkUp(LinkId id, bool up) {
  if (is_up_[id] == up) return;
  is_up_[id] = up;
  links_[id].arrival_flags |= Link::kMayLose;
  if (up) {
    cold_links_[id].downtimes.back().until_ps = engine_->NowPs();
  } else {
    ForgetPast(id);
    cold_links_[id].downtimes.push_back({engine_->NowPs(), kNeverPs});
  }
  link_state_changed_({engine_->NowPs(), id, up});
}

// Of what a link was, that which no packet met that has still to arrive: it departed no earlier
// than the link's delay ago.
void FabricNetwork::ForgetPast(LinkId id) {
  ColdLink& cold = cold_links_[id];
  const int64_t departure_ps = engine_->NowPs() - links_[id].delay_ps;
  uint64_t rate_bps = rates_bps_[id];
  for (const RateChange& change : cold.rate_changes) {
    rate_bps = std::min(rate_bps, change.rate_before_bps);
  }
  const int64_t first_bit_ps = departure_ps - TransferTimePs(UINT16_MAX, rate_bps);
  std::erase_if(cold.rate_changes,
                [&](const RateChange& change) { return change.departure_ps < departure_ps; });
  std::erase_if(cold.downtimes,
                [&](const Downtime& down) { return down.until_ps <= first_bit_ps; });
}

void FabricNetwork::SetLossFilter(LinkId id, LossFilter is_lost) {
  links_[id].arrival_flags |= Link::kMayLose;
  cold_links_[id].is_lost = std::move(is_lost);
}

void FabricNetwork::SetLinkRate(LinkId id, uint64_t rate_bps) {
  if (rates_bps_[id] == rate_bps) return;
  if (IsShort(id)) LeaveShortForm(id);
  Link& link = links_[id];
  Port& port = PortOf(id);
  ForgetPast(id);
  cold_links_[id].rate_changes.push_back(
      {std::max(link.busy_until_ps, engine_->NowPs()), rates_bps_[id]});
  rates_bps_[id] = rate_bps;
  link.usual_wire_bytes = 0;
  SetMarking(id);
  port.waiting_ps = 0;
  ForEachWaiting(port, [&](uint32_t index) {
    port.waiting_ps += TransmissionPs(id, packets_[index].wire_bytes);
  });
  Resume(id, port);
}

bool FabricNetwork::IsLost(uint32_t index) {
  const Packet& packet = packets_[index];
  const auto cold = cold_links_.find(packet.link);
  if (cold == cold_links_.end()) return false;
  if (WasDown(packet, cold->second)) {
    Lose(index, DropReason::kLinkDown);
    return true;
  }
  if (!cold->second.is_lost) return false;
  if (!cold->second.is_lost(packet)) return false;
  Lose(index, DropReason::kBitError);
  return true;
}

void FabricNetwork::Lose(uint32_t index, DropReason reason) {
  const LinkId id = packets_[index].link;
  ++cold_links_[id].dropped_packets;
  const uint32_t credit_bytes = CreditBytesOf(packets_[index]);
  const VirtualChannelId channel = ChannelOn(packets_[index]);
  Drop(index, reason, id);
  if (credit_bytes != 0) ReturnCredit(channel, credit_bytes);
}

bool FabricNetwork::WasDown(const Packet& packet, const ColdLink& cold) const {
  // The packet was on the wire from its first bit leaving to its last bit arriving.
  const LinkId id = packet.link;
  const int64_t departure_ps = DeparturePs(packet);
  const int64_t last_bit_ps = departure_ps + graph_->link(id).propagation_ps;
  uint64_t rate_bps = rates_bps_[id];
  for (auto it = cold.rate_changes.rbegin(); it != cold.rate_changes.rend(); ++it) {
    if (departure_ps <= it->departure_ps) rate_bps = it->rate_before_bps;
  }
  const int64_t first_bit_ps = departure_ps - TransferTimePs(packet.wire_bytes, rate_bps);
  const auto& downtimes = cold.downtimes;
  for (auto it = downtimes.rbegin(); it != downtimes.rend() && it->until_ps > first_bit_ps; ++it) {
    if (it->from_ps <= last_bit_ps) return true;
  }
  return false;
}

}  // namespace railyard
