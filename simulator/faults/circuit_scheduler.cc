// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/circuit_scheduler.h"

#include <algorithm>
#include <utility>

#include <ns3/nstime.h>
#include <ns3/simulator.h>

namespace railyard {

CircuitScheduler::CircuitScheduler(const FabricGraph& graph, FabricNetwork& network,
                                   EcmpRouting& routing, std::function<void()> on_routes_changed)
    : graph_(graph),
      network_(network),
      routing_(routing),
      on_routes_changed_(std::move(on_routes_changed)) {
  if (!graph.circuits) return;
  for (const auto& [cable, slots] : graph.circuits->slots_of_cable) {
    if (IsThere(cable, 0)) continue;
    network_.SetLinkUp(graph_.cables()[cable].forward, false);
    network_.SetLinkUp(graph_.cables()[cable].backward, false);
  }
  Schedule({.slot = 0, .phase = Phase::kDrain});
}

CircuitScheduler::Step CircuitScheduler::Step::Next() const {
  if (phase == Phase::kLight) return {.slot = slot + 1, .phase = Phase::kDrain};
  return {.slot = slot, .phase = phase == Phase::kDrain ? Phase::kTurn : Phase::kLight};
}

CircuitScheduler::Step CircuitScheduler::Step::Before() const {
  if (phase == Phase::kDrain) return {.slot = slot - 1, .phase = Phase::kLight};
  return {.slot = slot, .phase = phase == Phase::kLight ? Phase::kTurn : Phase::kDrain};
}

int64_t CircuitScheduler::TimePs(const Step& step) const {
  const CircuitSchedule& circuits = *graph_.circuits;
  const int64_t slot_ends_ps = static_cast<int64_t>(step.slot + 1) * circuits.slot_ps;
  return step.phase == Phase::kDrain  ? slot_ends_ps - circuits.drain_ps
         : step.phase == Phase::kTurn ? slot_ends_ps
                                      : slot_ends_ps + circuits.dark_ps;
}

CircuitScheduler::Step CircuitScheduler::PassOver(const Step& next) const {
  if (network_.live_packets() > 0) return next;
  int64_t other_ps = kNeverPs;
  network_.engine().ForEachPending(
      [&](int64_t time_ps, EventClass) { other_ps = std::min(other_ps, time_ps); });
  // Nothing else is left to happen: the step finds that out.
  if (other_ps == kNeverPs) return next;
  other_ps = std::min(other_ps, kNeverPs - 2 * graph_.circuits->slot_ps);
  Step last = {.slot = static_cast<uint64_t>(other_ps / graph_.circuits->slot_ps),
               .phase = Phase::kLight};
  while (last > next && TimePs(last) >= other_ps) last = last.Before();
  return std::max(last, next);
}

void CircuitScheduler::Schedule(const Step& step) {
  const int64_t delay_ps = TimePs(step) - network_.engine().NowPs();
  ns3::Simulator::Schedule(ns3::PicoSeconds(static_cast<uint64_t>(delay_ps)),
                           &CircuitScheduler::Take, this, step);
}

void CircuitScheduler::Take(Step step) {
  if (network_.engine().IsFinished()) return;
  SetLight(step);
  SetRoutes(step);
  taken_ = step;
  Schedule(PassOver(step.Next()));
}

bool CircuitScheduler::IsThere(uint32_t cable, uint64_t slot) const {
  return graph_.circuits->IsThere(cable, static_cast<uint32_t>(slot % graph_.circuits->slots));
}

bool CircuitScheduler::HasLight(uint32_t cable, const Step& after) const {
  switch (after.phase) {
    case Phase::kDrain:
      return IsThere(cable, after.slot);
    case Phase::kTurn:
      return IsThere(cable, after.slot) && IsThere(cable, after.slot + 1);
    case Phase::kLight:
      return IsThere(cable, after.slot + 1);
  }
  return false;
}

bool CircuitScheduler::IsRouted(uint32_t cable, const Step& after) const {
  if (after.phase == Phase::kLight) return IsThere(cable, after.slot + 1);
  return IsThere(cable, after.slot) && IsThere(cable, after.slot + 1);
}

void CircuitScheduler::SetLight(const Step& step) {
  for (const auto& [cable, slots] : graph_.circuits->slots_of_cable) {
    const bool is_up = HasLight(cable, step);
    if (is_up == (taken_ ? HasLight(cable, *taken_) : IsThere(cable, 0))) continue;
    network_.SetLinkUp(graph_.cables()[cable].forward, is_up);
    network_.SetLinkUp(graph_.cables()[cable].backward, is_up);
  }
}

void CircuitScheduler::SetRoutes(const Step& step) {
  bool has_changed = false;
  for (const auto& [cable, slots] : graph_.circuits->slots_of_cable) {
    const bool is_up = IsRouted(cable, step);
    if (is_up == (taken_ ? IsRouted(cable, *taken_) : IsThere(cable, 0))) continue;
    routing_.SetLinkUp(graph_.cables()[cable].forward, is_up);
    routing_.SetLinkUp(graph_.cables()[cable].backward, is_up);
    has_changed = true;
  }
  if (has_changed) on_routes_changed_();
}

}  // namespace railyard
