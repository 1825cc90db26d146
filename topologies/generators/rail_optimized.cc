// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/rail_optimized.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/units/divide_up.h"
#include "topologies/graph/fabric_builder.h"

namespace railyard {

namespace {

NetworkSpec NetworkOf(const RailOptimizedSpec& spec) {
  NetworkSpec network = {.name = spec.name,
                         .servers = spec.mixed_servers,
                         .nic_delay_ps = spec.nic_leaf_delay_ps,
                         .switch_latency_ps = spec.switch_latency_ps,
                         .delay_spread_ps = spec.delay_spread_ps};
  if (spec.mixed_servers.empty()) {
    network.servers = {{.count = spec.servers,
                        .gpus = spec.gpus_per_server,
                        .host_rate_bps = spec.host_rate_bps,
                        .nic_rate_bps = spec.nic_rate_bps}};
  }
  return network;
}

uint64_t ServersPerLeaf(const RailOptimizedSpec& spec) {
  return spec.servers_per_leaf.value_or(static_cast<uint32_t>(NetworkOf(spec).server_count()));
}

uint64_t GroupCount(const RailOptimizedSpec& spec) {
  return DivideUp(NetworkOf(spec).server_count(), ServersPerLeaf(spec));
}

uint64_t PodCount(const RailOptimizedSpec& spec) {
  return spec.cores == 0 ? 1 : DivideUp(GroupCount(spec), spec.groups_per_pod);
}

uint64_t SpinesPerPod(const RailOptimizedSpec& spec) {
  return spec.spines ? *spec.spines : NonBlockingSpines(spec);
}

// Returns an upper bound: a group without a server of the largest number of NICs has fewer leaves.
uint64_t LeafCount(const RailOptimizedSpec& spec) {
  return GroupCount(spec) * NetworkOf(spec).most_nics_per_server();
}

uint64_t CableCount(const RailOptimizedSpec& spec) {
  const NetworkSpec network = NetworkOf(spec);
  return network.cables_in_servers() + network.nic_port_count() +
         SaturatingProduct(SaturatingProduct(LeafCount(spec), SpinesPerPod(spec)),
                           spec.links_per_leaf_and_spine) +
         SaturatingProduct(SaturatingProduct(PodCount(spec), SpinesPerPod(spec)),
                           uint64_t{spec.cores / spec.core_planes} * spec.spine_core.count);
}

// Builds the fabric part by part; its members are the devices to which later parts are cabled.
class RailOptimizedBuilder {
 public:
  explicit RailOptimizedBuilder(const RailOptimizedSpec& spec)
      : spec_(spec), network_(NetworkOf(spec)), builder_(network_) {}

  FabricGraph Build() && {
    nics_ = builder_.AddServers();
    AddLeaves();
    AddSpines();
    AddCores();
    builder_.fabric().routing = RoutingPolicy::kUpDown;
    return std::move(builder_).Take();
  }

 private:
  void AddLeaves() {
    const uint64_t groups = GroupCount(spec_);
    const uint64_t servers_per_leaf = ServersPerLeaf(spec_);
    size_t end = 0;
    leaves_of_pod_.resize(PodCount(spec_));
    for (uint64_t group = 0; group < groups; ++group) {
      const size_t first = end;
      while (end < nics_.size() && nics_[end].server / servers_per_leaf == group) ++end;
      const std::string prefix = groups == 1 ? std::string() : fmt::format("group{}/", group);
      const uint64_t pod = spec_.cores == 0 ? 0 : group / spec_.groups_per_pod;
      AddLeavesOfGroup(prefix,
                       {nics_.begin() + static_cast<ptrdiff_t>(first),
                        nics_.begin() + static_cast<ptrdiff_t>(end)},
                       leaves_of_pod_[pod]);
    }
  }

  void AddLeavesOfGroup(const std::string& prefix, std::span<const BuiltNic> nics,
                        std::vector<DeviceId>& leaves) {
    std::vector<std::vector<const BuiltNic*>> rails;
    for (const BuiltNic& nic : nics) {
      if (nic.index >= rails.size()) rails.resize(nic.index + 1);
      rails[nic.index].push_back(&nic);
    }
    for (size_t rail = 0; rail < rails.size(); ++rail) {
      leaves.push_back(builder_.AddSwitch(fmt::format("{}leaf{}", prefix, rail)));
      for (const BuiltNic* nic : rails[rail]) builder_.Attach(*nic, leaves.back());
    }
  }

  void AddSpines() {
    const LinkSpec links = {.rate_bps = spec_.leaf_spine_rate_bps,
                            .delay_ps = spec_.leaf_spine_delay_ps,
                            .count = spec_.links_per_leaf_and_spine};
    const uint64_t spines = SpinesPerPod(spec_);
    for (size_t pod = 0; pod < leaves_of_pod_.size(); ++pod) {
      const std::string prefix = spec_.cores == 0 ? std::string() : fmt::format("pod{}/", pod);
      for (uint64_t i = 0; i < spines; ++i) {
        spines_.push_back(builder_.AddSwitch(fmt::format("{}spine{}", prefix, i)));
        for (const DeviceId leaf : leaves_of_pod_[pod]) {
          builder_.Join(leaf, spines_.back(), Tier::kLeafSpine, links);
        }
      }
    }
  }

  void AddCores() {
    for (uint32_t i = 0; i < spec_.cores; ++i) {
      const DeviceId core = builder_.AddSwitch(fmt::format("core{}", i));
      const uint64_t plane = i / (spec_.cores / spec_.core_planes);
      for (size_t spine = 0; spine < spines_.size(); ++spine) {
        if (spine % SpinesPerPod(spec_) % spec_.core_planes != plane) continue;
        builder_.Join(spines_[spine], core, Tier::kSpineCore, spec_.spine_core);
      }
    }
  }

  const RailOptimizedSpec& spec_;
  const NetworkSpec network_;
  FabricBuilder builder_;
  std::vector<BuiltNic> nics_;
  std::vector<std::vector<DeviceId>> leaves_of_pod_;
  std::vector<DeviceId> spines_;
};

void CheckServers(const RailOptimizedSpec& spec, SpecChecker& check) {
  if (spec.mixed_servers.empty()) {
    check.Count("servers", spec.servers, 1, kMaxFabricGpus);
    check.Count("gpus_per_server", spec.gpus_per_server, 1, kMaxGpusPerServer);
    check.Rate("nic_rate", spec.nic_rate_bps);
    check.Rate("host_rate", spec.host_rate_bps);
  } else {
    NetworkSpec network;
    network.servers = spec.mixed_servers;
    SpecChecker servers;
    CheckNetwork(network, servers, kMaxNicPorts);
    for (SpecProblem& problem : servers.Take()) {
      check.Add("mixed_" + problem.field, std::move(problem.what));
    }
  }
}

}  // namespace

std::vector<SpecProblem> CheckRailOptimized(const RailOptimizedSpec& spec) {
  SpecChecker check;
  CheckServers(spec, check);
  if (spec.servers_per_leaf) {
    const uint64_t most = check.Clean() ? NetworkOf(spec).server_count() : kMaxFabricGpus;
    check.Count("servers_per_leaf", *spec.servers_per_leaf, 1, most);
  }
  if (spec.spines) {
    check.Count("spines", *spec.spines, spec.cores == 0 ? 0 : 1, kMaxFabricSpines);
  }
  check.Count("links_per_leaf_and_spine", spec.links_per_leaf_and_spine, 1, kMaxParallelCables);
  check.Rate("leaf_spine_rate", spec.leaf_spine_rate_bps);
  check.Delay("nic_leaf_delay", spec.nic_leaf_delay_ps);
  check.Delay("leaf_spine_delay", spec.leaf_spine_delay_ps);
  check.Delay("switch_latency", spec.switch_latency_ps);
  check.Delay("delay_spread", spec.delay_spread_ps);
  check.Count("cores", spec.cores, 0, kMaxFabricSpines);
  check.Count("groups_per_pod", spec.groups_per_pod, 1, kMaxFabricGpus);
  check.Links("spine_core", spec.spine_core);
  check.Count("core_planes", spec.core_planes, 1, kMaxFabricSpines);
  if (!check.Clean()) return check.Take();
  if (spec.cores > 0 &&
      (spec.cores % spec.core_planes != 0 || SpinesPerPod(spec) % spec.core_planes != 0)) {
    check.Add(
        "core_planes",
        fmt::format("{} cores and {} spines of a pod do not divide into {} planes (expected a "
                    "divisor of both)",
                    spec.cores, SpinesPerPod(spec), spec.core_planes));
    return check.Take();
  }

  // The totals are meaningful only if each factor is valid.
  const NetworkSpec network = NetworkOf(spec);
  if (const uint64_t gpus = network.gpu_count(); gpus > kMaxFabricGpus) {
    check.Add("servers", fmt::format("{} servers of {} GPUs are {} GPUs (expected at most {})",
                                     spec.servers, spec.gpus_per_server, gpus, kMaxFabricGpus));
  } else if (const uint64_t cables = CableCount(spec); cables > kMaxFabricCables) {
    check.Add("spines", fmt::format("the fabric would have {} cables (expected at most {}; fewer "
                                    "spines or links_per_leaf_and_spine)",
                                    cables, kMaxFabricCables));
  }
  return check.Take();
}

uint64_t NonBlockingSpines(const RailOptimizedSpec& spec) {
  uint64_t nic_bps = 0;
  for (const ServerSpec& kind : NetworkOf(spec).servers) {
    nic_bps = std::max(nic_bps, SaturatingProduct(kind.nic_rate_bps, kind.nic_ports));
  }
  const uint64_t down_bps = nic_bps * ServersPerLeaf(spec);
  const uint64_t up_bps = spec.leaf_spine_rate_bps * spec.links_per_leaf_and_spine;
  return std::max<uint64_t>(1, DivideUp(down_bps, up_bps));
}

FabricGraph MakeRailOptimized(const RailOptimizedSpec& spec) {
  SIM_CHECK(CheckRailOptimized(spec).empty(), "a rail-optimized fabric that fails its check");
  return RailOptimizedBuilder(spec).Build();
}

}  // namespace railyard
