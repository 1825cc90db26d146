// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/generator_loader.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "topologies/formats/spec_reader.h"
#include "topologies/generators/direct_connect.h"
#include "topologies/generators/dragonfly.h"
#include "topologies/generators/dual_tor.h"
#include "topologies/generators/fat_tree.h"
#include "topologies/generators/hyperx.h"
#include "topologies/generators/jellyfish.h"
#include "topologies/generators/leaf_spine.h"
#include "topologies/generators/optical.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/generators/slim_fly.h"
#include "topologies/generators/torus.h"

namespace railyard {
namespace {

using Result = std::optional<FabricGraph>;

Result LoadRailOptimized(SpecReader& reader) {
  RailOptimizedSpec spec;
  reader.Servers("mixed_servers", spec.mixed_servers);
  if (spec.mixed_servers.empty() && !reader.Has("servers")) {
    reader.Missing("servers", "a number of servers, e.g. 4");
  }
  for (const char* field : {"servers", "gpus_per_server", "nic_rate", "host_rate"}) {
    if (spec.mixed_servers.empty() || !reader.Has(field)) continue;
    reader.Error(field, "has no effect beside mixed_servers (expected one of the two)");
  }
  reader.Number("servers", spec.servers);
  reader.Number("gpus_per_server", spec.gpus_per_server);
  // Without a number of servers there is nothing to hold a group's size against.
  if (reader.Has("servers") || !spec.mixed_servers.empty()) {
    reader.Number("servers_per_leaf", spec.servers_per_leaf);
  }
  reader.Number("spines", spec.spines);
  reader.Number("links_per_leaf_and_spine", spec.links_per_leaf_and_spine);
  reader.Rate("nic_rate", spec.nic_rate_bps);
  reader.Rate("leaf_spine_rate", spec.leaf_spine_rate_bps);
  reader.Rate("host_rate", spec.host_rate_bps);
  reader.Delay("nic_leaf_delay", spec.nic_leaf_delay_ps);
  reader.Delay("leaf_spine_delay", spec.leaf_spine_delay_ps);
  reader.Delay("switch_latency", spec.switch_latency_ps);
  reader.Delay("delay_spread", spec.delay_spread_ps);
  reader.Number("cores", spec.cores);
  for (const char* field : {"groups_per_pod", "core_planes", "spine_core"}) {
    if (spec.cores > 0 || !reader.Has(field)) continue;
    reader.Error(field, "has no effect without cores (expected cores, or not this)");
  }
  reader.Number("groups_per_pod", spec.groups_per_pod);
  reader.Number("core_planes", spec.core_planes);
  reader.Links("spine_core", spec.spine_core);
  spec.name = spec.mixed_servers.empty()
                  ? fmt::format("{}x{}-rail-optimized", spec.servers, spec.gpus_per_server)
                  : "mixed-rail-optimized";
  if (!reader.Accept(CheckRailOptimized(spec))) return std::nullopt;
  return MakeRailOptimized(spec);
}

Result LoadFatTree(SpecReader& reader) {
  FatTreeSpec spec;
  reader.Network(spec.network);
  reader.Number("radix", spec.radix);
  reader.Number("tiers", spec.tiers);
  reader.Number("oversubscription", spec.oversubscription);
  reader.Number("pods", spec.pods);
  reader.Links("leaf_spine", spec.leaf_spine);
  if (spec.tiers == 2 && reader.Has("spine_core")) {
    reader.Error("spine_core", "has no effect with two tiers (expected tiers: 3, or not this)");
  }
  reader.Links("spine_core", spec.spine_core);
  if (!reader.Accept(CheckFatTree(spec))) return std::nullopt;
  return MakeFatTree(spec);
}

Result LoadLeafSpine(SpecReader& reader) {
  LeafSpineSpec spec;
  reader.Network(spec.network);
  reader.Number("planes", spec.planes);
  reader.Number("nics_per_leaf", spec.nics_per_leaf);
  reader.Number("spines", spec.spines);
  reader.Number("oversubscription", spec.oversubscription);
  reader.Links("leaf_spine", spec.leaf_spine);
  if (!reader.Accept(CheckLeafSpine(spec))) return std::nullopt;
  return MakeLeafSpine(spec);
}

Result LoadDualTor(SpecReader& reader) {
  DualTorSpec spec;
  reader.Network(spec.network);
  reader.Number("planes", spec.planes);
  reader.Number("servers_per_segment", spec.servers_per_segment);
  reader.Number("segments_per_pod", spec.segments_per_pod);
  reader.Number("aggs_per_plane", spec.aggs_per_plane);
  reader.Number("cores_per_plane", spec.cores_per_plane);
  reader.Links("leaf_spine", spec.leaf_spine);
  if (spec.cores_per_plane == 0 && reader.Has("spine_core")) {
    reader.Error("spine_core",
                 "has no effect without cores (expected cores_per_plane, or not this)");
  }
  reader.Links("spine_core", spec.spine_core);
  if (!reader.Accept(CheckDualTor(spec))) return std::nullopt;
  return MakeDualTor(spec);
}

Result LoadTorus(SpecReader& reader) {
  TorusSpec spec;
  reader.Network(spec.network);
  reader.Dimensions("dimensions", spec.dimensions);
  reader.Number("nics_per_router", spec.nics_per_router);
  reader.Links("direct", spec.direct);
  reader.Flag("valiant", spec.valiant);
  if (!reader.Accept(CheckTorus(spec))) return std::nullopt;
  return MakeTorus(spec);
}

Result LoadHyperX(SpecReader& reader) {
  HyperXSpec spec;
  reader.Network(spec.network);
  reader.Dimensions("dimensions", spec.dimensions);
  reader.Number("nics_per_switch", spec.nics_per_switch);
  reader.Links("local", spec.local);
  reader.Links("global", spec.global);
  reader.Flag("valiant", spec.valiant);
  if (!reader.Accept(CheckHyperX(spec))) return std::nullopt;
  return MakeHyperX(spec);
}

Result LoadDragonfly(SpecReader& reader) {
  DragonflySpec spec;
  reader.Network(spec.network);
  reader.Number("groups", spec.groups);
  reader.Number("routers_per_group", spec.routers_per_group);
  reader.Number("spines_per_group", spec.spines_per_group);
  reader.Number("nics_per_router", spec.nics_per_router);
  reader.Number("global_cables_per_router", spec.global_cables_per_router);
  reader.Links("local", spec.local);
  reader.Links("global", spec.global);
  reader.Flag("valiant", spec.valiant);
  if (!reader.Accept(CheckDragonfly(spec))) return std::nullopt;
  return MakeDragonfly(spec);
}

Result LoadSlimFly(SpecReader& reader) {
  SlimFlySpec spec;
  reader.Network(spec.network);
  reader.Number("q", spec.q);
  reader.Number("nics_per_router", spec.nics_per_router);
  reader.Links("local", spec.local);
  reader.Links("global", spec.global);
  if (!reader.Accept(CheckSlimFly(spec))) return std::nullopt;
  return MakeSlimFly(spec);
}

Result LoadJellyfish(SpecReader& reader) {
  JellyfishSpec spec;
  reader.Network(spec.network);
  reader.Number("switches", spec.switches);
  reader.Number("degree", spec.degree);
  reader.Number("nics_per_switch", spec.nics_per_switch);
  reader.Seed("seed", spec.seed);
  reader.Links("global", spec.global);
  if (!reader.Accept(CheckJellyfish(spec))) return std::nullopt;
  return MakeJellyfish(spec);
}

Result LoadDirectConnect(SpecReader& reader) {
  DirectConnectSpec spec;
  reader.Network(spec.network);
  reader.Number("degree", spec.degree);
  reader.Number("rings", spec.rings);
  reader.Links("direct", spec.direct);
  reader.Demands(spec.network, spec.demands);
  if (!reader.Accept(CheckDirectConnect(spec))) return std::nullopt;
  return MakeDirectConnect(spec);
}

Result LoadOptical(SpecReader& reader) {
  OpticalSpec spec;
  reader.Network(spec.network);
  reader.Number("nics_per_switch", spec.nics_per_switch);
  reader.Number("circuit_switches", spec.circuit_switches);
  reader.Links("circuit", spec.circuit);
  reader.Delay("slot_duration", spec.slot_ps);
  reader.Delay("dark_time", spec.dark_ps);
  reader.Delay("drain_time", spec.drain_ps);
  if (!reader.Accept(CheckOptical(spec))) return std::nullopt;
  return MakeOptical(spec);
}

struct Generator {
  const char* name;  // the field of railyard.protos.Fabric
  Result (*load)(SpecReader&);
};

constexpr std::array kGenerators = {
    Generator{"rail_optimized", LoadRailOptimized},
    Generator{"fat_tree", LoadFatTree},
    Generator{"leaf_spine", LoadLeafSpine},
    Generator{"dual_tor", LoadDualTor},
    Generator{"torus", LoadTorus},
    Generator{"hyperx", LoadHyperX},
    Generator{"dragonfly", LoadDragonfly},
    Generator{"slim_fly", LoadSlimFly},
    Generator{"jellyfish", LoadJellyfish},
    Generator{"direct_connect", LoadDirectConnect},
    Generator{"optical", LoadOptical},
};

}  // namespace

const std::vector<std::string>& GeneratorNames() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Generator& generator : kGenerators) names.emplace_back(generator.name);
    return names;
  }();
  return kNames;
}

bool NamesGenerator(const ProtoCursor& fabric) {
  return std::any_of(kGenerators.begin(), kGenerators.end(),
                     [&](const Generator& generator) { return fabric.Has(generator.name); });
}

std::optional<FabricGraph> LoadGenerator(const ProtoCursor& fabric, Diagnostics& diagnostics) {
  for (const Generator& generator : kGenerators) {
    if (!fabric.Has(generator.name)) continue;
    SpecReader reader(fabric.Child(generator.name), diagnostics);
    Result result = generator.load(reader);
    if (result && result->name.empty()) {
      result->name = fmt::format("{}-gpu-{}", result->gpus().size(), generator.name);
      std::replace(result->name.begin(), result->name.end(), '_', '-');
    }
    return result;
  }
  return std::nullopt;
}

}  // namespace railyard
