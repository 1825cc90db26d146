// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/torus.h"

#include "simulator/diagnostics/check.h"
#include "topologies/graph/fabric_builder.h"
#include "topologies/graph/lattice.h"

namespace railyard {

std::vector<SpecProblem> CheckTorus(const TorusSpec& spec) {
  SpecChecker check;
  CheckNetwork(spec.network, check);
  CheckDimensions(spec.dimensions, check);
  check.Count("nics_per_router", spec.nics_per_router, 1, kMaxFabricGpus);
  check.Links("direct", spec.direct);
  if (!check.Clean()) return check.Take();
  const uint64_t routers = LatticeSize(spec.dimensions);
  check.Capacity("dimensions", spec.network.nic_count(), routers * spec.nics_per_router);
  check.Totals("dimensions", routers,
               spec.network.cables_in_servers() + spec.network.nic_count() +
                   SaturatingProduct(routers, spec.dimensions.size() * spec.direct.count));
  return check.Take();
}

FabricGraph MakeTorus(const TorusSpec& spec) {
  SIM_CHECK(CheckTorus(spec).empty(), "a torus that fails its check");
  FabricBuilder builder(spec.network);
  const std::vector<BuiltNic> nics = builder.AddServers();
  std::vector<DeviceId> routers(LatticeSize(spec.dimensions));
  for (size_t i = 0; i < routers.size(); ++i) {
    const std::vector<uint16_t> position = PositionOf(i, spec.dimensions);
    routers[i] = builder.AddSwitch(PositionName("router", position), position);
  }
  builder.AttachInOrder(nics, routers, spec.nics_per_router);
  for (size_t i = 0; i < routers.size(); ++i) {
    const std::vector<uint16_t> position = PositionOf(i, spec.dimensions);
    for (size_t dimension = 0; dimension < position.size(); ++dimension) {
      std::vector<uint16_t> next = position;
      next[dimension] =
          static_cast<uint16_t>((position[dimension] + 1u) % spec.dimensions[dimension]);
      // In a dimension of two, the cable in the other direction exists already.
      if (spec.dimensions[dimension] == 2 && position[dimension] == 1) continue;
      builder.Join(routers[i], routers[IndexOf(next, spec.dimensions)], Tier::kDirect, spec.direct);
    }
  }
  builder.fabric().routing =
      spec.valiant ? RoutingPolicy::kValiantDimensionOrder : RoutingPolicy::kDimensionOrder;
  builder.fabric().deadlock_avoidance = DeadlockAvoidance::kDateline;
  return std::move(builder).Take();
}

}  // namespace railyard
