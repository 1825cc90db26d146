// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/fat_tree.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "topologies/graph/fabric_builder.h"

namespace railyard {

namespace {

struct Shape {
  uint32_t nics_per_leaf = 0;
  uint32_t leaves_per_pod = 0;
  uint32_t spines_per_pod = 0;
  uint32_t cores_per_spine = 0;  // of a pod; 0 with two tiers
  uint32_t pods_max = 0;
  uint32_t pods = 0;
};

Shape ShapeOf(const FatTreeSpec& spec) {
  Shape shape;
  const uint32_t uplinks = spec.radix / (spec.oversubscription + 1);
  shape.nics_per_leaf = spec.radix - uplinks;
  shape.spines_per_pod = uplinks / spec.leaf_spine.count;
  const uint64_t nics = spec.network.nic_count();
  if (spec.tiers == 2) {
    const uint32_t leaves_max = spec.radix / spec.leaf_spine.count;
    shape.leaves_per_pod =
        static_cast<uint32_t>(std::min<uint64_t>(leaves_max, DivideUp(nics, shape.nics_per_leaf)));
    shape.pods = shape.pods_max = 1;
    return shape;
  }
  shape.leaves_per_pod = spec.radix / 2 / spec.leaf_spine.count;
  shape.cores_per_spine = spec.radix / 2 / spec.spine_core.count;
  shape.pods_max = spec.radix / spec.spine_core.count;
  const uint64_t nics_per_pod = uint64_t{shape.leaves_per_pod} * shape.nics_per_leaf;
  const uint64_t needed = std::min<uint64_t>(shape.pods_max, DivideUp(nics, nics_per_pod));
  shape.pods = spec.pods.value_or(static_cast<uint32_t>(needed));
  return shape;
}

}  // namespace

std::vector<SpecProblem> CheckFatTree(const FatTreeSpec& spec) {
  SpecChecker check;
  CheckNetwork(spec.network, check);
  check.Count("radix", spec.radix, 2, 4'096);
  check.Count("tiers", spec.tiers, 2, 3);
  check.Count("oversubscription", spec.oversubscription, 1, 1'024);
  check.Links("leaf_spine", spec.leaf_spine);
  check.Links("spine_core", spec.spine_core);
  if (!check.Clean()) return check.Take();
  if (spec.radix % 2 != 0) {
    check.Add("radix", fmt::format("{} is odd (expected as many ports up as down)", spec.radix));
  }
  if (spec.radix % (spec.oversubscription + 1) != 0) {
    check.Add("oversubscription",
              fmt::format("a leaf of {} ports cannot be split {}:1 (expected a divisor of the "
                          "radix, less one)",
                          spec.radix, spec.oversubscription));
  }
  const uint32_t uplinks = spec.radix / (spec.oversubscription + 1);
  const bool is_three_tier = spec.tiers == 3;
  if (uplinks % spec.leaf_spine.count != 0 ||
      (is_three_tier && spec.radix / 2 % spec.leaf_spine.count != 0)) {
    check.Add("leaf_spine.count",
              fmt::format("bundles of {} do not fit {} uplinks (expected a divisor)",
                          spec.leaf_spine.count, uplinks));
  }
  if (is_three_tier && spec.radix / 2 % spec.spine_core.count != 0) {
    check.Add("spine_core.count",
              fmt::format("bundles of {} do not fit {} uplinks (expected a divisor)",
                          spec.spine_core.count, spec.radix / 2));
  }
  if (!is_three_tier && spec.pods) {
    check.Add("pods", "two tiers have no pods (expected tiers: 3, or no pods)");
  }
  if (!check.Clean()) return check.Take();

  const Shape shape = ShapeOf(spec);
  check.Count("pods", shape.pods, 1, shape.pods_max);
  check.Capacity("radix", spec.network.nic_count(),
                 uint64_t{shape.pods} * shape.leaves_per_pod * shape.nics_per_leaf);
  const uint64_t cores = uint64_t{shape.spines_per_pod} * shape.cores_per_spine;
  const uint64_t per_pod = shape.leaves_per_pod + shape.spines_per_pod;
  check.Totals("radix", shape.pods * per_pod + cores,
               spec.network.cables_in_servers() + spec.network.nic_count() +
                   uint64_t{shape.pods} * shape.leaves_per_pod * shape.spines_per_pod *
                       spec.leaf_spine.count +
                   uint64_t{shape.pods} * cores * spec.spine_core.count);
  return check.Take();
}

FabricGraph MakeFatTree(const FatTreeSpec& spec) {
  SIM_CHECK(CheckFatTree(spec).empty(), "a fat-tree that fails its check");
  const Shape shape = ShapeOf(spec);
  FabricBuilder builder(spec.network);
  const std::vector<BuiltNic> nics = builder.AddServers();
  std::vector<DeviceId> leaves;
  std::vector<DeviceId> spines;
  for (uint32_t pod = 0; pod < shape.pods; ++pod) {
    const std::string prefix = spec.tiers == 2 ? std::string() : fmt::format("pod{}/", pod);
    for (uint32_t i = 0; i < shape.leaves_per_pod; ++i) {
      leaves.push_back(builder.AddSwitch(fmt::format("{}leaf{}", prefix, i)));
    }
    for (uint32_t i = 0; i < shape.spines_per_pod; ++i) {
      spines.push_back(builder.AddSwitch(fmt::format("{}spine{}", prefix, i)));
      for (uint32_t leaf = 0; leaf < shape.leaves_per_pod; ++leaf) {
        builder.Join(leaves[pod * shape.leaves_per_pod + leaf], spines.back(), Tier::kLeafSpine,
                     spec.leaf_spine);
      }
    }
  }
  builder.AttachInOrder(nics, leaves, shape.nics_per_leaf);
  for (uint32_t i = 0; i < shape.spines_per_pod * shape.cores_per_spine; ++i) {
    const DeviceId core = builder.AddSwitch(fmt::format("core{}", i));
    for (uint32_t pod = 0; pod < shape.pods; ++pod) {
      builder.Join(spines[pod * shape.spines_per_pod + i / shape.cores_per_spine], core,
                   Tier::kSpineCore, spec.spine_core);
    }
  }
  builder.fabric().routing = RoutingPolicy::kUpDown;
  return std::move(builder).Take();
}

}  // namespace railyard
