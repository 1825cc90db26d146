// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/circuit_scheduler.h"

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
    if (!graph.circuits->IsThere(cable, 0)) SetLight({cable}, false);
  }
  ScheduleNext(Step::kDrain, 0);
}

void CircuitScheduler::ScheduleNext(Step step, uint64_t slot) {
  const CircuitSchedule& circuits = *graph_.circuits;
  const int64_t slot_ends_ps = static_cast<int64_t>(slot + 1) * circuits.slot_ps;
  const int64_t time_ps = step == Step::kDrain  ? slot_ends_ps - circuits.drain_ps
                          : step == Step::kTurn ? slot_ends_ps
                                                : slot_ends_ps + circuits.dark_ps;
  ns3::Simulator::Schedule(ns3::PicoSeconds(time_ps - network_.engine().NowPs()),
                           &CircuitScheduler::Take, this, step, slot);
}

void CircuitScheduler::Take(Step step, uint64_t slot) {
  if (network_.engine().IsFinished()) return;
  switch (step) {
    case Step::kDrain:
      SetRoutes(Lost(slot, slot + 1), false);
      ScheduleNext(Step::kTurn, slot);
      break;
    case Step::kTurn:
      SetLight(Lost(slot, slot + 1), false);
      ScheduleNext(Step::kLight, slot);
      break;
    case Step::kLight:
      SetLight(Lost(slot + 1, slot), true);
      SetRoutes(Lost(slot + 1, slot), true);
      ScheduleNext(Step::kDrain, slot + 1);
  }
}

std::vector<uint32_t> CircuitScheduler::Lost(uint64_t from, uint64_t to) const {
  const CircuitSchedule& circuits = *graph_.circuits;
  std::vector<uint32_t> lost;
  for (const auto& [cable, slots] : circuits.slots_of_cable) {
    if (circuits.IsThere(cable, static_cast<uint32_t>(from % circuits.slots)) &&
        !circuits.IsThere(cable, static_cast<uint32_t>(to % circuits.slots))) {
      lost.push_back(cable);
    }
  }
  return lost;
}

void CircuitScheduler::SetRoutes(const std::vector<uint32_t>& cables, bool is_up) {
  for (const uint32_t cable : cables) {
    routing_.SetLinkUp(graph_.cables()[cable].forward, is_up);
    routing_.SetLinkUp(graph_.cables()[cable].backward, is_up);
  }
  if (!cables.empty()) on_routes_changed_();
}

void CircuitScheduler::SetLight(const std::vector<uint32_t>& cables, bool is_up) {
  for (const uint32_t cable : cables) {
    network_.SetLinkUp(graph_.cables()[cable].forward, is_up);
    network_.SetLinkUp(graph_.cables()[cable].backward, is_up);
  }
}

}  // namespace railyard
