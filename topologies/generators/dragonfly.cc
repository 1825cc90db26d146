// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/dragonfly.h"

#include <numeric>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "topologies/graph/fabric_builder.h"

namespace railyard {
namespace {

// Returns the number of switches of a group at which GLOBAL cables end.
uint32_t GlobalSwitches(const DragonflySpec& spec) {
  return spec.spines_per_group == 0 ? spec.routers_per_group : spec.spines_per_group;
}

// Returns the number of a group's ends of GLOBAL cables.
uint64_t GlobalEnds(const DragonflySpec& spec) {
  return uint64_t{GlobalSwitches(spec)} * spec.global_cables_per_router;
}

// Returns the smallest number of cables at each switch, not below the given one, that the other
// groups share evenly.
uint64_t NextEvenCables(const DragonflySpec& spec) {
  const uint64_t others = spec.groups - 1;
  const uint64_t step = others / std::gcd(others, uint64_t{GlobalSwitches(spec)});
  return DivideUp(spec.global_cables_per_router, step) * step;
}

// Returns the number of cables between any two groups.
uint64_t CablesPerPair(const DragonflySpec& spec) {
  return spec.groups < 2 ? 0 : GlobalEnds(spec) / (spec.groups - 1);
}

class DragonflyBuilder {
 public:
  explicit DragonflyBuilder(const DragonflySpec& spec) : spec_(spec), builder_(spec.network) {}

  FabricGraph Build() && {
    const std::vector<BuiltNic> nics = builder_.AddServers();
    std::vector<DeviceId> attachments;
    global_switches_.resize(spec_.groups);
    for (uint32_t group = 0; group < spec_.groups; ++group) {
      const std::vector<DeviceId> routers = AddGroup(group);
      attachments.insert(attachments.end(), routers.begin(), routers.end());
    }
    builder_.AttachInOrder(nics, attachments, spec_.nics_per_router);
    AddGlobalCables();
    // Minimal routes take a local, a global and a local cable: three classes break every cycle.
    builder_.fabric().deadlock_avoidance = DeadlockAvoidance::kHopClasses;
    if (spec_.valiant) builder_.fabric().routing = RoutingPolicy::kValiant;
    return std::move(builder_).Take();
  }

 private:
  // The switches for NICs.
  std::vector<DeviceId> AddGroup(uint32_t group) {
    std::vector<DeviceId> routers;
    const char* const noun = spec_.spines_per_group == 0 ? "router" : "leaf";
    for (uint32_t i = 0; i < spec_.routers_per_group; ++i) {
      routers.push_back(builder_.AddSwitch(fmt::format("group{}/{}{}", group, noun, i)));
    }
    if (spec_.spines_per_group == 0) {
      for (size_t i = 0; i < routers.size(); ++i) {
        for (size_t j = i + 1; j < routers.size(); ++j) {
          builder_.Join(routers[i], routers[j], Tier::kLocal, spec_.local);
        }
      }
      global_switches_[group] = routers;
    }
    for (uint32_t i = 0; i < spec_.spines_per_group; ++i) {
      global_switches_[group].push_back(
          builder_.AddSwitch(fmt::format("group{}/spine{}", group, i)));
      for (const DeviceId leaf : routers) {
        builder_.Join(leaf, global_switches_[group].back(), Tier::kLocal, spec_.local);
      }
    }
    return routers;
  }

  // Group a's k-th cable to group b ends at a's end number k·(g-1) + (b-a-1 mod g), the
  // arrangement "relative" of Hastings et al., CLUSTER 2015.
  void AddGlobalCables() {
    const uint32_t groups = spec_.groups;
    for (uint64_t k = 0; k < CablesPerPair(spec_); ++k) {
      const auto switch_for = [&](uint32_t from, uint32_t to) {
        const uint64_t end = k * (groups - 1) + (to + groups - from - 1) % groups;
        return global_switches_[from][end / spec_.global_cables_per_router];
      };
      for (uint32_t a = 0; a < groups; ++a) {
        for (uint32_t b = a + 1; b < groups; ++b) {
          builder_.Join(switch_for(a, b), switch_for(b, a), Tier::kGlobal, spec_.global);
        }
      }
    }
  }

  const DragonflySpec& spec_;
  FabricBuilder builder_;
  std::vector<std::vector<DeviceId>> global_switches_;  // by group
};

}  // namespace

std::vector<SpecProblem> CheckDragonfly(const DragonflySpec& spec) {
  SpecChecker check;
  CheckNetwork(spec.network, check);
  check.Count("groups", spec.groups, 1, kMaxFabricSwitches);
  check.Count("routers_per_group", spec.routers_per_group, 1, 4'096);
  check.Count("spines_per_group", spec.spines_per_group, 0, 4'096);
  check.Count("nics_per_router", spec.nics_per_router, 1, kMaxFabricGpus);
  check.Count("global_cables_per_router", spec.global_cables_per_router, 1, 4'096);
  check.Links("local", spec.local);
  check.Links("global", spec.global);
  if (!check.Clean()) return check.Take();
  if (spec.groups > GlobalEnds(spec) + 1) {
    check.Add("groups",
              fmt::format("{} groups, but a group's {} global cables reach {} others "
                          "(expected at most {} groups)",
                          spec.groups, GlobalEnds(spec), GlobalEnds(spec), GlobalEnds(spec) + 1));
    return check.Take();
  }
  if (spec.groups > 1 && GlobalEnds(spec) % (spec.groups - 1) != 0) {
    check.Add("global_cables_per_router",
              fmt::format("a group's {} global cables cannot be dealt evenly over {} others "
                          "(expected a multiple of {} cables: {} switches with {} each)",
                          GlobalEnds(spec), spec.groups - 1, spec.groups - 1, GlobalSwitches(spec),
                          NextEvenCables(spec)));
    return check.Take();
  }
  const uint64_t routers = uint64_t{spec.groups} * spec.routers_per_group;
  check.Capacity("groups", spec.network.nic_count(), routers * spec.nics_per_router);
  const uint64_t local_per_group =
      spec.spines_per_group == 0
          ? uint64_t{spec.routers_per_group} * (spec.routers_per_group - 1) / 2
          : uint64_t{spec.routers_per_group} * spec.spines_per_group;
  check.Totals(
      "groups", routers + uint64_t{spec.groups} * spec.spines_per_group,
      spec.network.cables_in_servers() + spec.network.nic_count() +
          SaturatingProduct(spec.groups, local_per_group * spec.local.count) +
          SaturatingProduct(SaturatingProduct(spec.groups, GlobalEnds(spec)), spec.global.count) /
              2);
  return check.Take();
}

FabricGraph MakeDragonfly(const DragonflySpec& spec) {
  SIM_CHECK(CheckDragonfly(spec).empty(), "a dragonfly that fails its check");
  return DragonflyBuilder(spec).Build();
}

}  // namespace railyard
