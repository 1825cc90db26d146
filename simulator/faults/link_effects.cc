// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/link_effects.h"

#include <algorithm>
#include <cmath>

#include "simulator/faults/keyed_draw.h"
#include "simulator/units/mix64.h"

namespace railyard {
namespace {

constexpr uint64_t kLinkJitterStream = 4;

uint64_t SeedOnLink(const FaultSpec& fault, LinkId link) { return Mix64(fault.seed ^ Mix64(link)); }

bool Holds(const FaultInterval& interval, int64_t time_ps) {
  return interval.from_ps <= time_ps && time_ps < interval.until_ps;
}

}  // namespace

LinkEffects::LinkEffects(const FabricGraph& graph, const std::vector<FaultSpec>& faults,
                         FabricNetwork& network)
    : graph_(graph), faults_(faults), network_(network) {}

void LinkEffects::Begin(FaultIndex fault) { Set(fault, true); }

void LinkEffects::End(FaultIndex fault) { Set(fault, false); }

void LinkEffects::Set(FaultIndex fault, bool holds) {
  const FaultSpec& spec = faults_[fault];
  for (const LinkId link : spec.links) {
    switch (spec.kind) {
      case FaultKind::kLinkDown:
      case FaultKind::kSwitchReboot:
        SetDown(link, fault, holds);
        break;
      case FaultKind::kDegrade:
        SetDegraded(link, fault, holds);
        break;
      case FaultKind::kLoss:
        SetLossy(link, fault, holds);
        break;
      case FaultKind::kDelay:
        SetDelayed(link, fault, holds);
        break;
      case FaultKind::kPauseStorm:
        SetStorm(link, holds);
        break;
      case FaultKind::kBackgroundLoad:
      case FaultKind::kStraggler:
        break;
    }
  }
}

void LinkEffects::SetDown(LinkId link, FaultIndex fault, bool down) {
  OnLink& on_link = on_link_[link];
  const bool was_up = on_link.cutting.empty();
  if (down) {
    on_link.cutting.push_back(fault);
  } else {
    on_link.cutting.erase(std::ranges::find(on_link.cutting, fault));
  }
  const bool is_up = on_link.cutting.empty();
  if (!is_up) on_link.last_down_fault = on_link.cutting.back();
  if (is_up != was_up) network_.SetLinkUp(link, is_up);
}

void LinkEffects::SetDegraded(LinkId link, FaultIndex fault, bool degraded) {
  OnLink& on_link = on_link_[link];
  if (degraded) {
    on_link.degrading.push_back(fault);
  } else {
    std::erase(on_link.degrading, fault);
  }
  const uint64_t own_bps = graph_.link(link).rate_bps;
  uint64_t rate_bps = own_bps;
  for (const FaultIndex other : on_link.degrading) {
    const FaultSpec& spec = faults_[other];
    const auto share_bps =
        static_cast<uint64_t>(std::llround(spec.rate_share * static_cast<double>(own_bps)));
    rate_bps = std::min(rate_bps, spec.rate_bps != 0 ? spec.rate_bps : share_bps);
  }
  network_.SetLinkRate(link, std::max<uint64_t>(1, rate_bps));
}

void LinkEffects::SetLossy(LinkId link, FaultIndex fault, bool lossy) {
  OnLink& on_link = on_link_[link];
  const int64_t now_ps = network_.engine().NowPs();
  if (on_link.losses.empty()) {
    network_.SetLossFilter(link,
                           [this, link](const Packet& packet) { return IsLost(link, packet); });
  }
  auto loss = std::find_if(on_link.losses.begin(), on_link.losses.end(),
                           [fault](const Loss& known) { return known.fault == fault; });
  if (!lossy) {
    loss->interval.until_ps = now_ps;
    return;
  }
  if (loss == on_link.losses.end()) {
    const FaultSpec& spec = faults_[fault];
    constexpr FaultInterval kNone = {0, 0};
    on_link.losses.push_back({fault, PacketLoss(spec.loss, SeedOnLink(spec, link)), kNone, kNone});
    loss = std::prev(on_link.losses.end());
  }
  loss->before = loss->interval;
  loss->interval = {now_ps, kNeverPs};
}

bool LinkEffects::IsLost(LinkId link, const Packet& packet) {
  const int64_t last_bit_ps = network_.LastBitPs(packet);
  bool is_lost = false;
  // Every model sees every packet of its interval, so that its draws do not depend on other models.
  for (Loss& loss : on_link_.at(link).losses) {
    if (!Holds(loss.interval, last_bit_ps) && !Holds(loss.before, last_bit_ps)) continue;
    network_.NoteDraw();
    if (!loss.model.Loses(packet) || is_lost) continue;
    is_lost = true;
    lossy_link_ = link;
    loss_ps_ = network_.engine().NowPs();
    lossy_fault_ = loss.fault;
  }
  return is_lost;
}

void LinkEffects::SetDelayed(LinkId link, FaultIndex fault, bool delayed) {
  OnLink& on_link = on_link_[link];
  if (delayed) {
    on_link.delaying.push_back(fault);
  } else {
    std::erase(on_link.delaying, fault);
  }
  if (on_link.delaying.empty()) {
    network_.SetDelayFilter(link, {});
    return;
  }
  network_.SetDelayFilter(link, [this, link](const Packet&) { return ExtraDelayPs(link); });
}

int64_t LinkEffects::ExtraDelayPs(LinkId link) {
  OnLink& on_link = on_link_.at(link);
  network_.NoteDraw();
  const uint64_t number = on_link.delayed_packets++;
  int64_t delay_ps = 0;
  for (const FaultIndex fault : on_link.delaying) {
    const FaultSpec& spec = faults_[fault];
    network_.NoteDraw();
    const KeyedDraw jitter(SeedOnLink(spec, link), kLinkJitterStream, number);
    delay_ps += spec.delay_ps + jitter.BelowPs(spec.jitter_ps);
  }
  return delay_ps;
}

void LinkEffects::SetStorm(LinkId link, bool storms) {
  OnLink& on_link = on_link_[link];
  if (storms ? on_link.storm_count++ == 0 : --on_link.storm_count == 0) {
    network_.SetPauseStorm(link, storms);
  }
}

std::optional<FaultIndex> LinkEffects::FaultOfBitError(LinkId link) const {
  const bool is_reported = link == lossy_link_ && network_.engine().NowPs() == loss_ps_;
  return is_reported ? std::optional(lossy_fault_) : std::nullopt;
}

std::optional<FaultIndex> LinkEffects::LastFaultOfDownLink(LinkId link) const {
  const auto it = on_link_.find(link);
  return it == on_link_.end() ? std::nullopt : it->second.last_down_fault;
}

}  // namespace railyard
