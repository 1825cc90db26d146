// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/fault_injector.h"

#include <utility>

namespace railyard {
namespace {

// Transition 2f is the beginning of fault f, 2f+1 its end.
constexpr uint32_t BeginOf(uint32_t fault) { return 2 * fault; }
constexpr uint32_t EndOf(uint32_t fault) { return 2 * fault + 1; }
constexpr bool IsEnd(uint32_t transition) { return transition % 2 == 1; }
// At one instant ends come before beginnings, for one fault of a link may follow upon another.
constexpr uint64_t IdOf(uint32_t transition, size_t fault_count) {
  return IsEnd(transition) ? transition / 2 : fault_count + transition / 2;
}

}  // namespace

FaultInjector::FaultInjector(const FabricGraph& graph, const std::vector<FaultSpec>& faults,
                             const RoutingDelays& delays, FabricNetwork& network,
                             EcmpRouting& routing, Hooks hooks)
    : graph_(graph),
      faults_(faults),
      delays_(delays),
      network_(network),
      routing_(routing),
      hooks_(std::move(hooks)),
      hops_(2 * faults.size()) {
  FabricSimulatorImpl& engine = network.engine();
  engine.SetHandler(EventClass::kFault, &FaultInjector::HandleFault, this);
  engine.SetHandler(EventClass::kRouting, &FaultInjector::HandleRouting, this);
  const auto schedule_fault = [&](int64_t time_ps, uint32_t transition) {
    engine.ScheduleFabric(time_ps, EventClass::kFault, IdOf(transition, faults.size()), transition);
  };
  const int64_t routing_delay_ps = delays.detection_ps + delays.convergence_ps;
  for (uint32_t f = 0; f < faults.size(); ++f) {
    const FaultSpec& fault = faults[f];
    schedule_fault(fault.at_ps, BeginOf(f));
    const bool ends = fault.until_ps != kNeverPs;
    if (ends) schedule_fault(fault.until_ps, EndOf(f));
    // What is over before it is detected changes no route.
    if (ends && fault.until_ps - fault.at_ps <= delays.detection_ps) continue;
    ScheduleRouting(fault.at_ps + routing_delay_ps, BeginOf(f));
    if (ends) ScheduleRouting(fault.until_ps + routing_delay_ps, EndOf(f));
  }
}

void FaultInjector::ScheduleRouting(int64_t time_ps, uint32_t transition) {
  network_.engine().ScheduleFabric(time_ps, EventClass::kRouting, IdOf(transition, faults_.size()),
                                   transition);
}

void FaultInjector::HandleFault(void* self, uint32_t transition) {
  static_cast<FaultInjector*>(self)->Apply(transition);
}

void FaultInjector::HandleRouting(void* self, uint32_t transition) {
  static_cast<FaultInjector*>(self)->ApplyRoutes(transition);
}

void FaultInjector::Apply(uint32_t transition) {
  if (!has_begun_ && !disarmed_) {
    has_begun_ = true;
    if (hooks_.before_first_fault) hooks_.before_first_fault();
  }
  if (disarmed_) return;
  const uint32_t index = transition / 2;
  const FaultSpec& fault = faults_[index];
  const Cable& cable = graph_.cables()[fault.cable];
  for (const auto& [is_hit, link] :
       {std::pair(fault.forward, cable.forward), std::pair(fault.backward, cable.backward)}) {
    if (!is_hit) continue;
    network_.SetLinkUp(link, IsEnd(transition));
    last_fault_of_link_[link] = static_cast<int32_t>(index);
  }
}

void FaultInjector::ApplyRoutes(uint32_t transition) {
  if (disarmed_) return;
  const uint32_t index = transition / 2;
  const FaultSpec& fault = faults_[index];
  const Cable& cable = graph_.cables()[fault.cable];
  const int64_t hop_ps = delays_.HopPs();
  const uint32_t farthest = routing_.FarthestFrom(cable.forward);
  // Both ends know of a direction that fails: one sees no light, and tells the other.
  uint32_t& hops = hops_[transition];
  do {
    if (fault.forward) routing_.SpreadLinkState(cable.forward, IsEnd(transition), hops);
    if (fault.backward) routing_.SpreadLinkState(cable.backward, IsEnd(transition), hops);
  } while (hops++ < farthest && hop_ps == 0);
  if (hops <= farthest) ScheduleRouting(network_.engine().NowPs() + hop_ps, transition);
  last_routed_fault_ = static_cast<int32_t>(index);
  routes_have_changed_ = true;
  if (hooks_.on_routes_changed) hooks_.on_routes_changed();
}

int32_t FaultInjector::FaultOfLoss(LinkId link) const {
  const auto it = last_fault_of_link_.find(link);
  return it != last_fault_of_link_.end() ? it->second : last_routed_fault_;
}

}  // namespace railyard
