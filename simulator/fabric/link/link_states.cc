// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/link/link_states.h"

#include <algorithm>

namespace railyard {

bool LinkStates::SetUp(LinkId link, bool up) {
  if (is_up_[link] == up) return false;
  is_up_[link] = up;
  tables_.links[link].arrival_flags |= LinkRecord::kMayLose;
  History& history = histories_[link];
  if (up) {
    history.downtimes.back().until_ps = tables_.NowPs();
  } else {
    ForgetPast(link, history);
    history.downtimes.push_back({tables_.NowPs(), kNeverPs});
  }
  return true;
}

// Forgets what no packet met that has still to arrive: it departed no earlier than the link's delay
// ago.
void LinkStates::ForgetPast(LinkId link, History& history) const {
  const int64_t departure_ps = tables_.NowPs() - tables_.links[link].delay_ps;
  uint64_t rate_bps = tables_.rates_bps[link];
  for (const RateChange& change : history.rate_changes) {
    rate_bps = std::min(rate_bps, change.rate_before_bps);
  }
  const int64_t first_bit_ps = departure_ps - TransferTimePs(UINT16_MAX, rate_bps);
  std::erase_if(history.rate_changes,
                [&](const RateChange& change) { return change.departure_ps < departure_ps; });
  std::erase_if(history.downtimes,
                [&](const Downtime& down) { return down.until_ps <= first_bit_ps; });
}

void LinkStates::SetLossFilter(LinkId link, LossFilter is_lost) {
  tables_.links[link].arrival_flags |= LinkRecord::kMayLose;
  histories_[link].is_lost = std::move(is_lost);
}

void LinkStates::SetRate(LinkId id, uint64_t rate_bps) {
  LinkRecord& link = tables_.links[id];
  History& history = histories_[id];
  ForgetPast(id, history);
  history.rate_changes.push_back(
      {std::max(link.busy_until_ps, tables_.NowPs()), tables_.rates_bps[id]});
  tables_.rates_bps[id] = rate_bps;
  link.usual_wire_bytes = 0;
}

std::optional<DropReason> LinkStates::LossOf(const Packet& packet) const {
  const auto history = histories_.find(packet.link);
  if (history == histories_.end()) return std::nullopt;
  if (WasDown(packet, history->second)) return DropReason::kLinkDown;
  const LossFilter& is_lost = history->second.is_lost;
  if (is_lost && is_lost(packet)) return DropReason::kBitError;
  return std::nullopt;
}

bool LinkStates::WasDown(const Packet& packet, const History& history) const {
  // The packet was on the wire from its first bit leaving to its last bit arriving.
  const int64_t departure_ps = tables_.DeparturePs(packet);
  const int64_t last_bit_ps = departure_ps + tables_.graph->link(packet.link).propagation_ps;
  uint64_t rate_bps = tables_.rates_bps[packet.link];
  for (auto it = history.rate_changes.rbegin(); it != history.rate_changes.rend(); ++it) {
    if (departure_ps <= it->departure_ps) rate_bps = it->rate_before_bps;
  }
  const int64_t first_bit_ps = departure_ps - TransferTimePs(packet.wire_bytes, rate_bps);
  const auto& downtimes = history.downtimes;
  for (auto it = downtimes.rbegin(); it != downtimes.rend() && it->until_ps > first_bit_ps; ++it) {
    if (it->from_ps <= last_bit_ps) return true;
  }
  return false;
}

uint64_t LinkStates::DroppedPackets(LinkId link) const {
  const auto history = histories_.find(link);
  return history == histories_.end() ? 0 : history->second.dropped_packets;
}

uint64_t LinkStates::RetransmittedBytes(LinkId link) const {
  const auto history = histories_.find(link);
  return history == histories_.end() ? 0 : history->second.retransmitted_bytes;
}

void LinkStates::Visit(LinkId link, StateArchive& archive) {
  const auto history = histories_.find(link);
  if (history == histories_.end()) return;
  VisitFields(history->second, link, archive);
}

}  // namespace railyard
