// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/generator_loader.h"

#include <gtest/gtest.h>

#include "tests/topologies/fabric_facts.h"
#include "tests/topologies/fabric_text.h"

namespace railyard {
namespace {

using testing::Switches;

class GeneratorLoaderTest : public testing::FabricTextTest {};

TEST_F(GeneratorLoaderTest, EveryGeneratorReadsItsParameters) {
  struct Case {
    const char* text;
    size_t gpus;
    size_t switches;
    const char* name;
  };
  for (const Case& expected : {
           Case{"rail_optimized { servers: 4 spines: 0 }", 32, 8, "4x8-rail-optimized"},
           Case{R"(rail_optimized { mixed_servers { count: 2 platform: "dgx-a100" }
                   mixed_servers { count: 1 gpus: 4 } spines: 2 cores: 3 })",
                20, 8 + 2 + 3, "mixed-rail-optimized"},
           Case{"fat_tree { servers { count: 16 gpus: 1 } radix: 4 }", 16, 20, "16-gpu-fat-tree"},
           Case{"fat_tree { servers { count: 16 gpus: 1 } radix: 8 tiers: 2 oversubscription: 3 }",
                16, 3 + 2, "16-gpu-fat-tree"},
           Case{"leaf_spine { servers { count: 4 } nics_per_leaf: 8 spines: 2 }", 32, 6,
                "32-gpu-leaf-spine"},
           Case{
               "leaf_spine { servers { count: 4 } planes: 2 nics_per_leaf: 8 oversubscription: 4 }",
               32, size_t{2} * (2 + 2), "32-gpu-leaf-spine"},
           Case{R"(dual_tor { servers { count: 4 } planes: 1 servers_per_segment: 2
                   segments_per_pod: 1 aggs_per_plane: 3 cores_per_plane: 1
                   spine_core { count: 2 } })",
                32, 2 * 16 + 2 * 3 + 1, "32-gpu-dual-tor"},
           Case{"torus { servers { count: 8 gpus: 1 } dimensions: [4, 2] }", 8, 8, "8-gpu-torus"},
           Case{"hyperx { servers { count: 8 } dimensions: 4 dimensions: 2 }", 64, 8,
                "64-gpu-hyperx"},
           Case{"dragonfly { servers { count: 1 } groups: 3 spines_per_group: 2 }", 8,
                size_t{3} * 6, "8-gpu-dragonfly"},
           Case{"slim_fly { servers { count: 1 } q: 3 }", 8, 18, "8-gpu-slim-fly"},
           Case{"jellyfish { servers { count: 1 } switches: 8 degree: 3 seed: 5 }", 8, 8,
                "8-gpu-jellyfish"},
       }) {
    const auto fabric = Load(expected.text);
    ASSERT_TRUE(fabric.has_value()) << expected.text << "\n" << findings_;
    EXPECT_EQ(fabric->gpus().size(), expected.gpus) << expected.text;
    EXPECT_EQ(Switches(*fabric).size(), expected.switches) << expected.text;
    EXPECT_EQ(fabric->name, expected.name);
  }
}

TEST_F(GeneratorLoaderTest, RatesAndDelaysOfServersAndLinksAreRead) {
  const auto fabric = Load(R"(leaf_spine {
  servers { count: 2 nics: 4 nic_rate: "100Gbps" host_rate: "20GBps" nvlink_rate: "900GBps" }
  nic_delay: "1us"
  switch_latency: "2us"
  leaf_spine { rate: "800Gbps" delay: "3us" count: 2 }
  nics_per_leaf: 4
})");
  ASSERT_TRUE(fabric.has_value()) << findings_;
  const auto link = [&](const char* name) {
    return fabric->link(fabric->cables()[fabric->FindCable(name).value()].forward);
  };
  EXPECT_EQ(link("server1/nic3--leaf1").rate_bps, 100'000'000'000u);
  EXPECT_EQ(link("server1/nic3--leaf1").propagation_ps, kPsPerUs);
  EXPECT_EQ(link("server1/gpu7--server1/nic3").rate_bps, 160'000'000'000u);
  EXPECT_EQ(link("server0/gpu0--server0/nvswitch0").rate_bps, 5 * 400'000'000'000u);
  EXPECT_EQ(link("leaf1--spine0#2").rate_bps, 800'000'000'000u);
  EXPECT_EQ(link("leaf1--spine0#2").propagation_ps, 3 * kPsPerUs);
  EXPECT_EQ(fabric->device(fabric->FindDevice("spine0").value()).forwarding_latency_ps,
            2 * kPsPerUs);
}

TEST_F(GeneratorLoaderTest, MistakesAreAtTheirFields) {
  Load(R"(fat_tree {
  servers { count: 2 gpus: 0 }
  servers { platform: "dgx-h10" count: 1 }
  servers { gpus: 2 }
  servers { count: 1 platform: "single-gpu" nvlink_rate: "1GBps" }
  radix: 1
  leaf_spine { rate: "fast" count: 0 }
})");
  EXPECT_EQ(
      findings_,
      "fabric.textproto:2:22: error: fat_tree.servers[0].gpus: 0 is out of range (expected 1 "
      "to 1024)\n"
      "fabric.textproto:3:13: error: fat_tree.servers[1].platform: unknown platform "
      "\"dgx-h10\" (did you mean \"dgx-h100\"?)\n"
      "fabric.textproto:4:3: error: fat_tree.servers[2].count: missing (expected a number of "
      "servers, e.g. 4)\n"
      "fabric.textproto:5:45: error: fat_tree.servers[3].nvlink_rate: has no effect on a "
      "platform without NVLink (expected another platform)\n"
      "fabric.textproto:6:3: error: fat_tree.radix: 1 is out of range (expected 2 to 4096)\n"
      "fabric.textproto:7:16: error: fat_tree.leaf_spine.rate: \"fast\" is not a data rate "
      "(expected a data rate with its unit, e.g. \"400Gbps\")\n"
      "fabric.textproto:7:29: error: fat_tree.leaf_spine.count: 0 is out of range (expected 1 "
      "to 1024)\n");
}

TEST_F(GeneratorLoaderTest, FieldsWithoutEffectAreRefused) {
  const auto findings = [&](const char* text) {
    Load(text);
    return findings_;
  };
  EXPECT_EQ(findings("rail_optimized { mixed_servers { count: 1 } servers: 1 }"),
            "fabric.textproto:1:45: error: rail_optimized.servers: has no effect beside "
            "mixed_servers (expected one of the two)\n");
  EXPECT_EQ(findings("rail_optimized { servers: 1 groups_per_pod: 1 }"),
            "fabric.textproto:1:29: error: rail_optimized.groups_per_pod: has no effect without "
            "cores (expected cores, or not this)\n");
  EXPECT_EQ(findings("fat_tree { servers { count: 1 } tiers: 2 spine_core { } }"),
            "fabric.textproto:1:42: error: fat_tree.spine_core: has no effect with two tiers "
            "(expected tiers: 3, or not this)\n");
  EXPECT_EQ(findings("dual_tor { servers { count: 1 } spine_core { } }"),
            "fabric.textproto:1:33: error: dual_tor.spine_core: has no effect without cores "
            "(expected cores_per_plane, or not this)\n");
  EXPECT_EQ(findings("torus { dimensions: 4 }"),
            "fabric.textproto:1:1: error: torus.servers: missing (expected at least one, e.g. "
            "servers { count: 4 })\n");
}

TEST_F(GeneratorLoaderTest, CorePlanesDivideCoresAndSpines) {
  const auto fabric = Load(
      "rail_optimized { servers: 4 servers_per_leaf: 1 spines: 4 cores: 8 groups_per_pod: 2 "
      "core_planes: 2 }");
  ASSERT_TRUE(fabric.has_value()) << findings_;
  // Spines 1 and 3 of both pods on cores 4 to 7, and on no other.
  EXPECT_TRUE(fabric->FindCable("pod1/spine3--core4").has_value());
  EXPECT_FALSE(fabric->FindCable("pod1/spine3--core3").has_value());
  EXPECT_EQ(testing::Radix(*fabric, "core7"), 2u * 2);
  EXPECT_EQ(testing::CablesOf(*fabric, Tier::kSpineCore), 8u * 4);
  Load("rail_optimized { servers: 1 spines: 4 cores: 8 core_planes: 3 }");
  EXPECT_EQ(findings_,
            "fabric.textproto:1:48: error: rail_optimized.core_planes: 8 cores and 4 spines of a "
            "pod do not divide into 3 planes (expected a divisor of both)\n");
  Load("rail_optimized { servers: 1 core_planes: 3 }");
  EXPECT_EQ(findings_,
            "fabric.textproto:1:29: error: rail_optimized.core_planes: has no effect without cores "
            "(expected cores, or not this)\n");
  Load("rail_optimized { servers: 1 cores: 1 core_planes: 0 }");
  EXPECT_EQ(findings_,
            "fabric.textproto:1:38: error: rail_optimized.core_planes: 0 is out of range (expected "
            "1 to 65536)\n");
}

TEST_F(GeneratorLoaderTest, ValiantIsAskedForByName) {
  const auto routing = [&](const char* text) {
    const auto fabric = Load(text);
    EXPECT_TRUE(fabric.has_value()) << findings_;
    return fabric->routing;
  };
  EXPECT_EQ(routing("torus { servers { count: 8 gpus: 1 } dimensions: [4, 2] valiant: true }"),
            RoutingPolicy::kValiantDimensionOrder);
  EXPECT_EQ(routing("hyperx { servers { count: 8 } dimensions: [4, 2] valiant: true }"),
            RoutingPolicy::kValiantDimensionOrder);
  EXPECT_EQ(routing("dragonfly { servers { count: 1 } groups: 3 valiant: true }"),
            RoutingPolicy::kValiant);
  EXPECT_EQ(routing("dragonfly { servers { count: 1 } groups: 3 valiant: false }"),
            RoutingPolicy::kShortest);
}

TEST_F(GeneratorLoaderTest, NicsThatNoGpuUsesCannotRun) {
  Load("leaf_spine { servers { count: 2 gpus: 4 nics: 6 } }");
  EXPECT_EQ(findings_,
            "fabric.textproto:1:1: error: 4 NICs that no GPU uses, the first of them server0/nic4 "
            "(expected at most one NIC per GPU)\n");
}

TEST_F(GeneratorLoaderTest, ACableBetweenGpusThatMeetOtherwiseIsAWarning) {
  Write("direct.textproto", R"(
devices { name: "a" kind: GPU server: 0 local_index: 0 }
devices { name: "b" kind: GPU server: 1 local_index: 0 }
links { from: "a" to: "b" tier: DIRECT rate: "1Gbps" }
)");
  EXPECT_TRUE(Load("file: \"direct.textproto\"").has_value());
  EXPECT_EQ(
      findings_,
      "fabric.textproto:1:1: warning: 1 cables between GPUs, the first of them a--b, which a run "
      "does not use (expected NVSWITCHes)\n");
}

}  // namespace
}  // namespace railyard
