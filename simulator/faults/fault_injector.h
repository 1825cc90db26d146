// SPDX-License-Identifier: GPL-2.0-only
// Makes faults happen: links go down and come back at their instants, and the fabric's routes
// follow after detection and convergence, at each switch and NIC in its turn. A fault loses
// packets; it never pauses time.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/fabric/routing_delays.h"
#include "simulator/faults/fault_spec.h"
#include "topologies/routing.h"

namespace railyard {

class FaultInjector {
 public:
  struct Hooks {
    std::function<void()> before_first_fault;  // at its instant, before anything changes
    std::function<void()> on_routes_changed;
  };
  // All references must outlive this. Schedules every transition.
  FaultInjector(const FabricGraph& graph, const std::vector<FaultSpec>& faults,
                const RoutingDelays& delays, FabricNetwork& network, EcmpRouting& routing,
                Hooks hooks);

  // From now on no fault happens: what the paired fault-free run is.
  void Disarm() { disarmed_ = true; }
  bool has_begun() const { return has_begun_; }
  bool routes_have_changed() const { return routes_have_changed_; }

  // The fault to which a loss on `link` now is due; for a missing route (UINT32_MAX) the last one
  // that changed routes. -1: none.
  int32_t FaultOfLoss(LinkId link) const;

 private:
  static void HandleFault(void* self, uint32_t transition);
  static void HandleRouting(void* self, uint32_t transition);
  void Apply(uint32_t transition);
  void ApplyRoutes(uint32_t transition);
  void ScheduleRouting(int64_t time_ps, uint32_t transition);

  const FabricGraph& graph_;
  const std::vector<FaultSpec>& faults_;
  RoutingDelays delays_;
  FabricNetwork& network_;
  EcmpRouting& routing_;
  Hooks hooks_;
  std::unordered_map<LinkId, int32_t> last_fault_of_link_;
  std::vector<uint32_t> hops_;  // by transition: how far its news goes next
  int32_t last_routed_fault_ = -1;
  bool disarmed_ = false;
  bool has_begun_ = false;
  bool routes_have_changed_ = false;
};

}  // namespace railyard
