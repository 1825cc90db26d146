// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/hyperx.h"

#include "simulator/diagnostics/check.h"
#include "topologies/graph/fabric_builder.h"
#include "topologies/graph/lattice.h"

namespace railyard {

std::vector<SpecProblem> CheckHyperX(const HyperXSpec& spec) {
  SpecChecker check;
  CheckNetwork(spec.network, check);
  CheckDimensions(spec.dimensions, check);
  check.Count("nics_per_switch", spec.nics_per_switch, 1, kMaxFabricGpus);
  check.Links("local", spec.local);
  check.Links("global", spec.global);
  if (!check.Clean()) return check.Take();
  const uint64_t switches = LatticeSize(spec.dimensions);
  check.Capacity("dimensions", spec.network.nic_count(), switches * spec.nics_per_switch);
  uint64_t cables = spec.network.cables_in_servers() + spec.network.nic_count();
  for (size_t i = 0; i < spec.dimensions.size(); ++i) {
    const uint64_t links = (i == 0 ? spec.local : spec.global).count;
    cables += SaturatingProduct(switches, (spec.dimensions[i] - 1) * links) / 2;
  }
  check.Totals("dimensions", switches, cables);
  return check.Take();
}

FabricGraph MakeHyperX(const HyperXSpec& spec) {
  SIM_CHECK(CheckHyperX(spec).empty(), "a HyperX that fails its check");
  FabricBuilder builder(spec.network);
  const std::vector<BuiltNic> nics = builder.AddServers();
  std::vector<DeviceId> switches(LatticeSize(spec.dimensions));
  for (size_t i = 0; i < switches.size(); ++i) {
    const std::vector<uint16_t> position = PositionOf(i, spec.dimensions);
    switches[i] = builder.AddSwitch(PositionName("switch", position), position);
  }
  builder.AttachInOrder(nics, switches, spec.nics_per_switch);
  for (size_t i = 0; i < switches.size(); ++i) {
    std::vector<uint16_t> position = PositionOf(i, spec.dimensions);
    for (size_t dimension = 0; dimension < position.size(); ++dimension) {
      const uint16_t own = position[dimension];
      for (uint32_t other = own + 1u; other < spec.dimensions[dimension]; ++other) {
        position[dimension] = static_cast<uint16_t>(other);
        const DeviceId peer = switches[IndexOf(position, spec.dimensions)];
        if (dimension == 0) {
          builder.Join(switches[i], peer, Tier::kLocal, spec.local);
        } else {
          builder.Join(switches[i], peer, Tier::kGlobal, spec.global);
        }
      }
      position[dimension] = own;
    }
  }
  builder.fabric().routing =
      spec.valiant ? RoutingPolicy::kValiantDimensionOrder : RoutingPolicy::kDimensionOrder;
  return std::move(builder).Take();
}

}  // namespace railyard
