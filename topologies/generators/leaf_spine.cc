// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/leaf_spine.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "topologies/graph/fabric_builder.h"

namespace railyard {

namespace {

uint64_t SpineCount(const LeafSpineSpec& spec) {
  if (spec.spines) return *spec.spines;
  uint64_t nic_bps = 0;
  for (const ServerSpec& kind : spec.network.servers) {
    nic_bps = std::max(nic_bps, kind.nic_rate_bps);
  }
  const uint64_t up_bps = SaturatingProduct(
      SaturatingProduct(spec.leaf_spine.rate_bps, spec.leaf_spine.count), spec.oversubscription);
  return std::max<uint64_t>(1, DivideUp(nic_bps * spec.nics_per_leaf, up_bps));
}

uint64_t NicsOfPlane(const LeafSpineSpec& spec, uint32_t plane) {
  uint64_t nics = 0;
  for (const ServerSpec& kind : spec.network.servers) {
    const uint32_t count = kind.nic_count();
    if (count > plane) nics += uint64_t{kind.count} * DivideUp(count - plane, spec.planes);
  }
  return nics;
}

}  // namespace

std::vector<SpecProblem> CheckLeafSpine(const LeafSpineSpec& spec) {
  SpecChecker check;
  CheckNetwork(spec.network, check);
  if (check.Clean()) check.Count("planes", spec.planes, 1, spec.network.most_nics_per_server());
  check.Count("nics_per_leaf", spec.nics_per_leaf, 1, kMaxFabricGpus);
  if (spec.spines) check.Count("spines", *spec.spines, 1, kMaxFabricSpines);
  check.Count("oversubscription", spec.oversubscription, 1, 1'024);
  check.Links("leaf_spine", spec.leaf_spine);
  if (!check.Clean()) return check.Take();
  if (spec.spines && spec.oversubscription != 1) {
    check.Add("oversubscription", "has no effect where spines are given (expected one of the two)");
  }
  uint64_t switches = 0;
  uint64_t cables = spec.network.cables_in_servers() + spec.network.nic_count();
  for (uint32_t plane = 0; plane < spec.planes; ++plane) {
    const uint64_t leaves = DivideUp(NicsOfPlane(spec, plane), spec.nics_per_leaf);
    switches += leaves + SpineCount(spec);
    cables += SaturatingProduct(SaturatingProduct(leaves, SpineCount(spec)), spec.leaf_spine.count);
  }
  check.Totals("nics_per_leaf", switches, cables);
  return check.Take();
}

FabricGraph MakeLeafSpine(const LeafSpineSpec& spec) {
  SIM_CHECK(CheckLeafSpine(spec).empty(), "a leaf-spine fabric that fails its check");
  FabricBuilder builder(spec.network);
  const std::vector<BuiltNic> nics = builder.AddServers();
  for (uint32_t plane = 0; plane < spec.planes; ++plane) {
    const std::string prefix = spec.planes == 1 ? std::string() : fmt::format("plane{}/", plane);
    std::vector<BuiltNic> nics_of_plane;
    for (const BuiltNic& nic : nics) {
      if (nic.index % spec.planes == plane) nics_of_plane.push_back(nic);
    }
    std::vector<DeviceId> leaves(DivideUp(nics_of_plane.size(), spec.nics_per_leaf));
    for (size_t i = 0; i < leaves.size(); ++i) {
      leaves[i] = builder.AddSwitch(fmt::format("{}leaf{}", prefix, i));
    }
    builder.AttachInOrder(nics_of_plane, leaves, spec.nics_per_leaf);
    for (uint64_t i = 0; i < SpineCount(spec); ++i) {
      const DeviceId spine = builder.AddSwitch(fmt::format("{}spine{}", prefix, i));
      for (const DeviceId leaf : leaves) {
        builder.Join(leaf, spine, Tier::kLeafSpine, spec.leaf_spine);
      }
    }
  }
  builder.fabric().routing = RoutingPolicy::kUpDown;
  return std::move(builder).Take();
}

}  // namespace railyard
