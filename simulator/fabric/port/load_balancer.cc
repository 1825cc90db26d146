// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/fabric/port/load_balancer.h"

#include <algorithm>
#include <utility>

#include "simulator/diagnostics/check.h"
#include "simulator/units/mix64.h"

namespace railyard {

LoadBalancer::LoadBalancer(const EcmpRouting& routing, const Settings& settings,
                           BacklogPs backlog_ps)
    : routing_(&routing), settings_(settings), backlog_ps_(std::move(backlog_ps)) {}

LinkId LoadBalancer::Choose(DeviceId at, DeviceId nic, uint32_t hops, const Packet& packet,
                            int64_t now_ps) {
  SIM_CHECK(routing_ != nullptr, "switches that balance need routes");
  const NextHops& next = NextHopsOf(at, nic);
  if (next.links.empty() || next.hops != hops) return LinkId::kNone;
  if (next.links.size() == 1) return next.links.front();
  const uint64_t which = uint64_t{packet.flow} << 32 | packet.sequence;
  // The time, for a packet that is sent again.
  const uint64_t when = Mix64(settings_.seed ^ static_cast<uint64_t>(now_ps));
  const uint64_t draw = Mix64(Mix64(when ^ at) ^ which);
  switch (settings_.policy) {
    case LoadBalancing::kFlowlet:
      return ChooseFlowlet(at, next.links, packet, draw, now_ps);
    case LoadBalancing::kAdaptive:
      return ChooseLeastQueued(next.links, draw);
    default:
      return next.links[ScaleTo(draw, next.links.size())];
  }
}

const NextHops& LoadBalancer::NextHopsOf(DeviceId at, DeviceId nic) {
  const auto [entry, is_new] = next_hops_.try_emplace(uint64_t{at} << 32 | nic);
  if (is_new) entry->second = routing_->NextHopsTo(at, nic);
  return entry->second;
}

LinkId LoadBalancer::ChooseLeastQueued(const std::vector<LinkId>& links, uint64_t draw) const {
  // Round from a drawn one on, so that among equals each is as likely.
  const size_t first = ScaleTo(draw, links.size());
  LinkId chosen = links[first];
  int64_t least_ps = backlog_ps_(chosen);
  for (size_t i = 1; i < links.size(); ++i) {
    const LinkId link = links[(first + i) % links.size()];
    const int64_t backlog_ps = backlog_ps_(link);
    if (backlog_ps >= least_ps) continue;
    chosen = link;
    least_ps = backlog_ps;
  }
  return chosen;
}

LinkId LoadBalancer::ChooseFlowlet(DeviceId at, const std::vector<LinkId>& links,
                                   const Packet& packet, uint64_t draw, int64_t now_ps) {
  Flowlet& flowlet = flowlets_[uint64_t{at} << 32 | packet.flow];
  const bool goes_on = flowlet.link != LinkId::kNone &&
                       now_ps - flowlet.last_ps <= settings_.flowlet_gap_ps &&
                       std::find(links.begin(), links.end(), flowlet.link) != links.end();
  if (!goes_on) flowlet.link = links[ScaleTo(draw, links.size())];
  flowlet.last_ps = now_ps;
  return flowlet.link;
}

}  // namespace railyard
