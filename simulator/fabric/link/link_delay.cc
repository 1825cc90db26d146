// SPDX-License-Identifier: GPL-2.0-only
// Links that hold back what they carry, in order.
#include <utility>

#include "simulator/event_order/event_order.h"
#include "simulator/fabric/fabric_network.h"

namespace railyard {

void FabricNetwork::SetDelayFilter(LinkId id, DelayFilter extra_delay_ps) {
  links_[id].arrival_flags |= Link::kDelayed;
  cold_links_[id].extra_delay_ps = std::move(extra_delay_ps);
}

bool FabricNetwork::IsHeldBack(uint32_t index) {
  Packet& packet = packets_[index];
  ColdLink& cold = cold_links_.at(packet.link);
  const int64_t now_ps = engine_->NowPs();
  int64_t release_ps = now_ps;
  if (cold.extra_delay_ps) release_ps += cold.extra_delay_ps(packet);
  if (!cold.late.empty()) release_ps = std::max(release_ps, cold.late.back().release_ps);
  if (release_ps == now_ps && cold.late.empty()) return false;
  // One event lets go of all that is due.
  if (cold.late.empty() || cold.late.back().release_ps != release_ps) {
    engine_->ScheduleFabric(release_ps, event_order::kLateArrival, packet.link, packet.link);
  }
  packet.ingress = Packet::kNone;  // it has left the device it came from
  cold.late.push_back({index, release_ps});
  return true;
}

void FabricNetwork::HandleLateArrival(void* self, uint32_t id) {
  auto& network = *static_cast<FabricNetwork*>(self);
  const int64_t now_ps = network.engine_->NowPs();
  // What a packet does may make links cold for the first time, which moves none of them.
  ColdLink& cold = network.cold_links_.at(id);
  while (!cold.late.empty() && cold.late.front().release_ps <= now_ps) {
    const uint32_t index = cold.late.front().packet;
    cold.late.pop_front();
    const bool is_balanced = (network.links_[id].arrival_flags & Link::kBalanced) != 0;
    if (is_balanced && !network.ChooseNextLink(index)) continue;
    network.TakeInLate(index);
  }
}

}  // namespace railyard
