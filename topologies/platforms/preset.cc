// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/platforms/preset.h"

#include <array>

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
#include "topologies/platforms/platform.h"

namespace railyard {
namespace {

ServerSpec Server(const char* platform, uint32_t count) {
  ServerSpec server = ServerOfPlatform(platform);
  server.count = count;
  return server;
}

NetworkSpec Servers(const char* platform, uint32_t count) {
  return {.servers = {Server(platform, count)}};
}

struct PresetRow {
  const char* name;
  const char* description;
  const char* source;
  FabricGraph (*make)();
};

constexpr const char* kSuperPod = "NVIDIA DGX SuperPOD H100 reference architecture";
constexpr const char* kHpn = "Qian et al.: \"Alibaba HPN\", SIGCOMM 2024";

constexpr std::array kPresets = {
    PresetRow{"h100-1x8",
              "1 DGX H100 server of 8 GPUs and 8 400 Gb/s NICs, 8 leaves (one per rail), 1 spine",
              kSuperPod, [] { return MakeRailOptimized({.servers = 1}); }},
    PresetRow{"h100-2x8-rail-optimized",
              "2 DGX H100 servers of 8 GPUs and 8 400 Gb/s NICs, 8 leaves (one per rail), 2 spines",
              kSuperPod, [] { return MakeRailOptimized({.servers = 2}); }},
    PresetRow{"h100-4x8-rail-optimized",
              "4 DGX H100 servers of 8 GPUs and 8 400 Gb/s NICs, 8 leaves (one per rail), 4 spines",
              kSuperPod, [] { return MakeRailOptimized({.servers = 4}); }},
    PresetRow{"h100-128x8-rail-optimized",
              "4 scalable units of 32 DGX H100: 32 leaves and 16 spines of 64 ports, 1:1",
              kSuperPod,
              [] {
                return MakeRailOptimized({.servers = 128,
                                          .servers_per_leaf = 32,
                                          .spines = 16,
                                          .links_per_leaf_and_spine = 2});
              }},
    PresetRow{"h100-512x8-rail-optimized-core",
              "4 pods of 128 DGX H100, 32 spines each, joined by 32 cores, 1:1 in every tier",
              kSuperPod,
              [] {
                return MakeRailOptimized({.servers = 512,
                                          .servers_per_leaf = 32,
                                          .spines = 32,
                                          .cores = 32,
                                          .groups_per_pod = 4});
              }},
    PresetRow{"h100-8192x8-rail-optimized-core",
              "65,536 GPUs in 64 pods of 128 DGX H100, 1,024 cores; all switches of 64 ports, 1:1",
              kSuperPod,
              [] {
                return MakeRailOptimized({.servers = 8'192,
                                          .servers_per_leaf = 32,
                                          .spines = 32,
                                          .cores = 1'024,
                                          .groups_per_pod = 4,
                                          .core_planes = 32});
              }},
    PresetRow{"h100-4x8-rail-only",
              "4 DGX H100 servers on 8 leaves and no spine: rails meet over NVLink only",
              "Wang et al.: \"Rail-only\", arXiv 2307.12169",
              [] { return MakeRailOptimized({.servers = 4, .spines = 0}); }},
    PresetRow{"gb200-2x72-rail-optimized",
              "2 GB200 NVL72 racks, an island of 72 GPUs each, 72 leaves, 2 spines",
              "NVIDIA GB200 NVL72 data sheet",
              [] { return MakeRailOptimized({.mixed_servers = {Server("gb200-nvl72", 2)}}); }},
    PresetRow{"mixed-h100-a100-rail-optimized",
              "2 DGX H100 and 2 DGX A100 servers on 8 shared rails, 4 spines",
              "NVIDIA DGX H100 and A100 user guides",
              [] {
                return MakeRailOptimized(
                    {.mixed_servers = {Server("dgx-h100", 2), Server("dgx-a100", 2)}});
              }},
    PresetRow{
        "h100-16x8-fat-tree",
        "16 DGX H100 servers under a three-tier fat-tree of 8-port switches, 1:1",
        "Al-Fares et al.: \"A scalable, commodity data center network architecture\", SIGCOMM "
        "2008",
        [] { return MakeFatTree({.network = Servers("dgx-h100", 16), .radix = 8}); }},
    PresetRow{
        "h100-24x8-fat-tree-2to1",
        "24 DGX H100 servers under a two-tier fat-tree of 24-port switches, 2:1",
        "Al-Fares et al.: \"A scalable, commodity data center network architecture\", SIGCOMM "
        "2008",
        [] {
          return MakeFatTree(
              {.network = Servers("dgx-h100", 24), .radix = 24, .tiers = 2, .oversubscription = 2});
        }},
    PresetRow{
        "h100-4x8-leaf-spine", "4 DGX H100 servers, one leaf per 2 servers, 16 spines, 1:1",
        "Clos 1953",
        [] { return MakeLeafSpine({.network = Servers("dgx-h100", 4), .nics_per_leaf = 16}); }},
    PresetRow{"h100-8x8-multi-plane",
              "8 DGX H100 servers on 8 planes of 2 leaves and 4 spines, one NIC on each plane",
              "Zhao et al.: \"Insights into DeepSeek-V3\", ISCA 2025",
              [] {
                return MakeLeafSpine(
                    {.network = Servers("dgx-h100", 8), .planes = 8, .nics_per_leaf = 4});
              }},
    PresetRow{"h800-8x8-dual-tor",
              "8 H800 servers in 2 segments, two ToRs per rail, 8 aggregation switches", kHpn,
              [] {
                return MakeDualTor({.network = Servers("hpn-h800", 8),
                                    .planes = 1,
                                    .servers_per_segment = 4,
                                    .aggs_per_plane = 8});
              }},
    PresetRow{"h800-8x8-dual-plane",
              "8 H800 servers in 2 segments, two ToRs per rail on a plane each of 4 switches", kHpn,
              [] {
                return MakeDualTor({.network = Servers("hpn-h800", 8),
                                    .servers_per_segment = 4,
                                    .aggs_per_plane = 4});
              }},
    PresetRow{"hpn-pod", "A pod of HPN: 15,360 H800 in 15 segments, dual plane, 1.07:1", kHpn,
              [] { return MakeDualTor({.network = Servers("hpn-h800", 1'920)}); }},
    PresetRow{"torus-2d-8x8", "64 GPUs without NVLink on an 8 x 8 torus of routers",
              "Dally, Seitz: \"The torus routing chip\", 1986",
              [] {
                return MakeTorus({.network = Servers("single-gpu", 64), .dimensions = {8, 8}});
              }},
    PresetRow{
        "torus-3d-4x4x4", "64 GPUs without NVLink on a 4 x 4 x 4 torus of routers",
        "Dally, Seitz: \"The torus routing chip\", 1986; Jouppi et al.: \"TPU v4\", ISCA 2023",
        [] {
          return MakeTorus({.network = Servers("single-gpu", 64), .dimensions = {4, 4, 4}});
        }},
    PresetRow{"h100-9x8-dragonfly",
              "9 DGX H100 servers on a dragonfly of 9 groups of 4 routers (a = 4, p = 2, h = 2)",
              "Kim et al.: \"Technology-driven, highly-scalable dragonfly topology\", ISCA 2008",
              [] { return MakeDragonfly({.network = Servers("dgx-h100", 9)}); }},
    PresetRow{"h100-10x8-dragonfly-plus",
              "10 DGX H100 servers on a dragonfly+ of 5 groups of 4 leaves and 4 spines",
              "Shpiner et al.: \"Dragonfly+\", HiPINEB 2017",
              [] {
                return MakeDragonfly({.network = Servers("dgx-h100", 10),
                                      .groups = 5,
                                      .routers_per_group = 4,
                                      .spines_per_group = 4,
                                      .nics_per_router = 4,
                                      .global_cables_per_router = 1});
              }},
    PresetRow{"h100-25x8-slim-fly",
              "25 DGX H100 servers on a Slim Fly of 50 routers (q = 5), 4 NICs on each",
              "Besta, Hoefler: \"Slim Fly\", SC 2014",
              [] { return MakeSlimFly({.network = Servers("dgx-h100", 25)}); }},
    PresetRow{"h100-16x8-hyperx", "16 DGX H100 servers on a 4 x 4 HyperX, a server on each switch",
              "Ahn et al.: \"HyperX\", SC 2009",
              [] {
                return MakeHyperX({.network = Servers("dgx-h100", 16), .dimensions = {4, 4}});
              }},
    PresetRow{"h100-8x8-jellyfish",
              "8 DGX H100 servers on 16 switches, each cabled to 4 random others",
              "Singla et al.: \"Jellyfish\", NSDI 2012",
              [] { return MakeJellyfish({.network = Servers("dgx-h100", 8)}); }},
    PresetRow{
        "h100-8x8-direct-connect",
        "8 DGX H100 servers in a ring, and cables between the stages of two 4-stage pipelines",
        "Wang et al.: \"TopoOpt\", NSDI 2023",
        [] {
          DirectConnectSpec spec = {.network = Servers("dgx-h100", 8)};
          // Two replicas of four stages: activations forth, gradients between replicas.
          for (uint32_t stage = 0; stage < 4; ++stage) {
            spec.demands.push_back({.from = stage, .to = stage + 4, .bytes = 1 << 30});
            if (stage == 3) break;
            spec.demands.push_back({.from = stage, .to = stage + 1, .bytes = 1 << 28});
            spec.demands.push_back({.from = stage + 4, .to = stage + 5, .bytes = 1 << 28});
          }
          return MakeDirectConnect(spec);
        }},
    PresetRow{
        "h100-8x8-optical",
        "8 DGX H100 servers on 16 switches and 6 optical circuit switches of 15 matchings",
        "Mellette et al.: \"Opera\", NSDI 2020",
        [] { return MakeOptical({.network = Servers("dgx-h100", 8), .circuit_switches = 6}); }},
};

}  // namespace

const std::vector<Preset>& Presets() {
  static const std::vector<Preset> kList = [] {
    std::vector<Preset> presets;
    for (const PresetRow& row : kPresets) {
      presets.push_back({.name = row.name, .description = row.description, .source = row.source});
    }
    return presets;
  }();
  return kList;
}

std::optional<FabricGraph> MakePreset(const std::string& name) {
  for (const PresetRow& row : kPresets) {
    if (row.name != name) continue;
    FabricGraph fabric = row.make();
    fabric.name = row.name;
    return fabric;
  }
  return std::nullopt;
}

}  // namespace railyard
