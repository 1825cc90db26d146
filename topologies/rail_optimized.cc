// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/rail_optimized.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "topologies/mix64.h"

namespace railyard {
namespace {

uint32_t ServersPerLeaf(const RailOptimizedSpec& spec) {
  return spec.servers_per_leaf.value_or(spec.servers);
}

uint32_t GroupCount(const RailOptimizedSpec& spec) {
  return (spec.servers + ServersPerLeaf(spec) - 1) / ServersPerLeaf(spec);
}

uint64_t SpineCount(const RailOptimizedSpec& spec) {
  return spec.spines ? *spec.spines : NonBlockingSpines(spec);
}

// Exact up to kMaxFabricCables; beyond, merely more than that.
uint64_t CableCount(const RailOptimizedSpec& spec) {
  const uint64_t in_servers =
      uint64_t{spec.servers} * spec.gpus_per_server * (spec.nvlink_lanes.size() + 2);
  const uint64_t leaves = uint64_t{GroupCount(spec)} * spec.gpus_per_server;
  const uint64_t spines = std::min(SpineCount(spec), kMaxFabricCables + 1);
  return in_servers + leaves * spines * spec.links_per_leaf_and_spine;
}

// Builds the fabric part by part; its members are what later parts are cabled to.
class Builder {
 public:
  explicit Builder(const RailOptimizedSpec& spec) : spec_(spec) {}

  FabricGraph Build() && {
    fabric_.name = spec_.name;
    for (uint32_t server = 0; server < spec_.servers; ++server) AddServer(server);
    AddLeaves();
    AddSpines();
    return std::move(fabric_);
  }

 private:
  void AddServer(uint32_t server) {
    const auto add = [&](DeviceKind kind, const char* noun, uint32_t index, int64_t latency_ps) {
      return fabric_.AddDevice({.name = fmt::format("server{}/{}{}", server, noun, index),
                                .kind = kind,
                                .server = static_cast<int32_t>(server),
                                .local_index = static_cast<int32_t>(index),
                                .forwarding_latency_ps = latency_ps});
    };
    std::vector<DeviceId> gpus;
    for (uint32_t i = 0; i < spec_.gpus_per_server; ++i) {
      gpus.push_back(add(DeviceKind::kGpu, "gpu", i, 0));
    }
    for (uint32_t plane = 0; plane < spec_.nvlink_lanes.size(); ++plane) {
      const DeviceId nvswitch =
          add(DeviceKind::kNvSwitch, "nvswitch", plane, spec_.nvswitch_latency_ps);
      const uint32_t lanes = spec_.nvlink_lanes[plane];
      for (const DeviceId gpu : gpus) {
        AddCable(gpu, nvswitch,
                 {.tier = Tier::kNvlink,
                  .rate_bps = lanes * spec_.nvlink_lane_rate_bps,
                  .propagation_ps = spec_.nvlink_delay_ps,
                  .lanes = lanes});
      }
    }
    for (uint32_t i = 0; i < spec_.gpus_per_server; ++i) {
      const DeviceId nic = add(DeviceKind::kNic, "nic", i, 0);
      AddCable(gpus[i], nic,
               {.tier = Tier::kHost,
                .rate_bps = spec_.host_rate_bps,
                .propagation_ps = spec_.host_delay_ps});
      nics_.push_back(nic);
    }
  }

  void AddLeaves() {
    const uint32_t groups = GroupCount(spec_);
    for (uint32_t group = 0; group < groups; ++group) {
      const std::string prefix = groups == 1 ? std::string() : fmt::format("group{}/", group);
      const uint32_t first_server = group * ServersPerLeaf(spec_);
      const uint32_t end_server = std::min(first_server + ServersPerLeaf(spec_), spec_.servers);
      for (uint32_t rail = 0; rail < spec_.gpus_per_server; ++rail) {
        const DeviceId leaf = AddSwitch(fmt::format("{}leaf{}", prefix, rail));
        for (uint32_t server = first_server; server < end_server; ++server) {
          AddCable(nics_[server * spec_.gpus_per_server + rail], leaf,
                   {.tier = Tier::kNicLeaf,
                    .rate_bps = spec_.nic_rate_bps,
                    .propagation_ps = spec_.nic_leaf_delay_ps});
        }
        leaves_.push_back(leaf);
      }
    }
  }

  void AddSpines() {
    const uint64_t spines = SpineCount(spec_);
    for (uint64_t i = 0; i < spines; ++i) {
      const DeviceId spine = AddSwitch(fmt::format("spine{}", i));
      for (const DeviceId leaf : leaves_) {
        for (uint32_t link = 0; link < spec_.links_per_leaf_and_spine; ++link) {
          AddCable(leaf, spine,
                   {.tier = Tier::kLeafSpine,
                    .rate_bps = spec_.leaf_spine_rate_bps,
                    .propagation_ps = spec_.leaf_spine_delay_ps});
        }
      }
    }
  }

  DeviceId AddSwitch(std::string name) {
    return fabric_.AddDevice({.name = std::move(name),
                              .kind = DeviceKind::kSwitch,
                              .forwarding_latency_ps = spec_.switch_latency_ps});
  }

  void AddCable(DeviceId a, DeviceId b, CableSpec cable) {
    const uint64_t draw = Mix64(fabric_.cables().size());
    cable.propagation_ps +=
        static_cast<int64_t>(ScaleTo(draw, static_cast<uint64_t>(spec_.delay_spread_ps)));
    fabric_.AddCable(a, b, cable);
  }

  const RailOptimizedSpec& spec_;
  FabricGraph fabric_;
  std::vector<DeviceId> nics_;    // by server, then rail
  std::vector<DeviceId> leaves_;  // by group, then rail
};

class Checker {
 public:
  void Count(const char* field, uint64_t value, uint64_t min, uint64_t max) {
    if (value < min || value > max) {
      Add(field, fmt::format("{} is out of range (expected {} to {})", value, min, max));
    }
  }
  void Rate(const char* field, uint64_t rate_bps) {
    if (rate_bps < kMinLinkRateBps || rate_bps > kMaxLinkRateBps) {
      Add(field, fmt::format("{} bps is out of range (expected 1Mbps to 100Tbps)", rate_bps));
    }
  }
  void Delay(const char* field, int64_t delay_ps) {
    if (delay_ps < 0 || delay_ps > kMaxLinkDelayPs) {
      Add(field, fmt::format("{} is out of range (expected 0s to 1s)", FormatDuration(delay_ps)));
    }
  }
  void Add(const char* field, std::string what) { problems_.push_back({field, std::move(what)}); }
  bool Clean() const { return problems_.empty(); }
  std::vector<SpecProblem> Take() { return std::move(problems_); }

 private:
  std::vector<SpecProblem> problems_;
};

}  // namespace

std::vector<SpecProblem> CheckRailOptimized(const RailOptimizedSpec& spec) {
  Checker check;
  check.Count("servers", spec.servers, 1, kMaxFabricGpus);
  check.Count("gpus_per_server", spec.gpus_per_server, 1, kMaxGpusPerServer);
  if (spec.servers_per_leaf) {
    const uint32_t most = check.Clean() ? spec.servers : kMaxFabricGpus;
    check.Count("servers_per_leaf", *spec.servers_per_leaf, 1, most);
  }
  if (spec.spines) check.Count("spines", *spec.spines, 1, kMaxFabricSpines);
  check.Count("links_per_leaf_and_spine", spec.links_per_leaf_and_spine, 1, kMaxParallelCables);
  check.Rate("nic_rate", spec.nic_rate_bps);
  check.Rate("leaf_spine_rate", spec.leaf_spine_rate_bps);
  check.Rate("host_rate", spec.host_rate_bps);
  check.Delay("nic_leaf_delay", spec.nic_leaf_delay_ps);
  check.Delay("leaf_spine_delay", spec.leaf_spine_delay_ps);
  check.Delay("switch_latency", spec.switch_latency_ps);
  check.Delay("delay_spread", spec.delay_spread_ps);
  if (!check.Clean()) return check.Take();

  // Totals mean something only where each factor does.
  if (const uint64_t gpus = uint64_t{spec.servers} * spec.gpus_per_server; gpus > kMaxFabricGpus) {
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
  const uint64_t down_bps = spec.nic_rate_bps * ServersPerLeaf(spec);
  const uint64_t up_bps = spec.leaf_spine_rate_bps * spec.links_per_leaf_and_spine;
  return std::max<uint64_t>(1, (down_bps + up_bps - 1) / up_bps);
}

FabricGraph MakeRailOptimized(const RailOptimizedSpec& spec) {
  SIM_CHECK(CheckRailOptimized(spec).empty(), "a rail-optimized fabric that fails its check");
  return Builder(spec).Build();
}

}  // namespace railyard
