// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/topology_loader.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/diagnostics/names.h"
#include "simulator/units/units.h"
#include "tests/topologies/fabric_text.h"
#include "topologies/formats/generator_loader.h"

namespace railyard {
namespace {

class TopologyLoaderTest : public testing::FabricTextTest {};

TEST_F(TopologyLoaderTest, APresetIsMadeByItsName) {
  const auto graph = Load(R"(preset: "h100-4x8-rail-optimized")");
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(graph->gpus().size(), 32u);
  EXPECT_EQ(findings_, "");
}

TEST_F(TopologyLoaderTest, AnUnknownPresetIsRefusedWithTheClosest) {
  Load("\npreset: \"h100-4x8-rail-optimised\"");
  EXPECT_EQ(findings_,
            "fabric.textproto:2:1: error: preset: unknown preset \"h100-4x8-rail-optimised\" (did "
            "you mean \"h100-4x8-rail-optimized\"?)\n");
}

TEST_F(TopologyLoaderTest, AnUnknownPresetWithoutACloseOneNamesTheList) {
  Load("preset: \"potatoes\"");
  EXPECT_EQ(findings_,
            "fabric.textproto:1:1: error: preset: unknown preset \"potatoes\" (railyard list "
            "presets lists them)\n");
}

TEST_F(TopologyLoaderTest, APlatformIsDistinguishedFromAPreset) {
  Load("preset: \"dgx-h100\"");
  EXPECT_EQ(findings_,
            "fabric.textproto:1:1: error: preset: \"dgx-h100\" is a platform, not a preset "
            "(expected e.g. rail_optimized { mixed_servers { count: 2 platform: \"dgx-h100\" } "
            "})\n");
}

TEST_F(TopologyLoaderTest, EveryParameterOfTheGeneratorIsRead) {
  const auto graph = Load(R"(rail_optimized {
    servers: 6 gpus_per_server: 4 servers_per_leaf: 3 spines: 2 links_per_leaf_and_spine: 3
    nic_rate: "200Gbps" leaf_spine_rate: "800Gbps" nic_leaf_delay: "25ns"
    leaf_spine_delay: "50ns" switch_latency: "130ns" host_rate: "27GBps" delay_spread: "0s"
  })");
  ASSERT_TRUE(graph.has_value()) << findings_;
  EXPECT_EQ(graph->name, "6x4-rail-optimized");
  EXPECT_EQ(graph->gpus().size(), 24u);
  const auto link = [&](const char* cable) -> const LinkProperties& {
    return graph->link(graph->cables()[graph->FindCable(cable).value()].forward);
  };
  EXPECT_EQ(link("server5/nic3--group1/leaf3").rate_bps, 200'000'000'000u);
  EXPECT_EQ(link("server5/nic3--group1/leaf3").propagation_ps, 25 * kPsPerNs);
  EXPECT_EQ(link("group1/leaf3--spine1#3").rate_bps, 800'000'000'000u);
  EXPECT_EQ(link("group1/leaf3--spine1#3").propagation_ps, 50 * kPsPerNs);
  EXPECT_EQ(link("server0/gpu0--server0/nic0").rate_bps, 216'000'000'000u);
  EXPECT_EQ(graph->device(graph->FindDevice("spine1").value()).forwarding_latency_ps,
            130 * kPsPerNs);
  EXPECT_FALSE(graph->FindDevice("spine2").has_value());
}

TEST_F(TopologyLoaderTest, DefaultsAreThoseOfTheGenerator) {
  const auto graph = Load("rail_optimized { servers: 4 }");
  const auto preset = MakePreset("h100-4x8-rail-optimized");
  ASSERT_TRUE(graph.has_value());
  ASSERT_EQ(graph->link_count(), preset->link_count());
  for (LinkId link{0}; link < graph->link_count(); ++link) {
    EXPECT_EQ(graph->link(link).name, preset->link(link).name);
    EXPECT_EQ(graph->link(link).rate_bps, preset->link(link).rate_bps);
    EXPECT_EQ(graph->link(link).propagation_ps, preset->link(link).propagation_ps);
  }
}

TEST_F(TopologyLoaderTest, ADelaySpreadIsRead) {
  const auto graph = Load("rail_optimized { servers: 4 delay_spread: \"40ns\" }");
  ASSERT_TRUE(graph.has_value());
  EXPECT_NE(graph->link(LinkId{0}).propagation_ps, graph->link(LinkId{2}).propagation_ps);
}

TEST_F(TopologyLoaderTest, EachMistakeInAParameterHasItsPlace) {
  Load(R"(rail_optimized {
  servers: 0
  servers_per_leaf: 0
  spines: 65537
  nic_rate: "4 potatoes"
  leaf_spine_rate: "0Gbps"
  switch_latency: "300"
  delay_spread: "2s"
})");
  EXPECT_EQ(findings_,
            "fabric.textproto:2:3: error: rail_optimized.servers: 0 is out of range (expected 1 to "
            "65536)\n"
            "fabric.textproto:3:3: error: rail_optimized.servers_per_leaf: 0 is out of range "
            "(expected 1 to 65536)\n"
            "fabric.textproto:4:3: error: rail_optimized.spines: 65537 is out of range (expected "
            "0 to 65536)\n"
            "fabric.textproto:5:3: error: rail_optimized.nic_rate: \"4 potatoes\" has an "
            "unknown unit (expected bps, Kbps, Mbps, Gbps or Tbps, or for bytes Bps to TBps)\n"
            "fabric.textproto:6:3: error: rail_optimized.leaf_spine_rate: 0 bps is out of range "
            "(expected 1Mbps to 100Tbps)\n"
            "fabric.textproto:7:3: error: rail_optimized.switch_latency: \"300\" is not a duration "
            "(expected a duration with its unit, e.g. \"300ms\")\n"
            "fabric.textproto:8:3: error: rail_optimized.delay_spread: 2 s is out of range "
            "(expected 0s to 1s)\n");
}

TEST_F(TopologyLoaderTest, TheNumberOfServersMustBeGiven) {
  Load("rail_optimized {\n  servers_per_leaf: 32\n}");
  EXPECT_EQ(findings_,
            "fabric.textproto:1:1: error: rail_optimized.servers: missing (expected a number of "
            "servers, e.g. 4)\n");
}

TEST_F(TopologyLoaderTest, TooManyGpusAreRefusedAtTheServers) {
  Load("rail_optimized {\n  servers: 10000\n}");
  EXPECT_EQ(findings_,
            "fabric.textproto:2:3: error: rail_optimized.servers: 10000 servers of 8 GPUs are "
            "80000 GPUs (expected at most 65536)\n");
}

TEST_F(TopologyLoaderTest, AFabricOfNothingIsRefused) {
  Load("");
  std::vector<std::string> names = {"preset", "file"};
  const std::vector<std::string>& generators = GeneratorNames();
  names.insert(names.end(), generators.begin(), generators.end());
  EXPECT_EQ(findings_,
            "fabric.textproto:1:1: error: empty (expected " + JoinAlternatives(names) + ")\n");
}

TEST_F(TopologyLoaderTest, AFileThatIsNotThereIsAMistakeOfTheFieldThatNamesIt) {
  Load("file: \"fabrics/mine.textproto\"");
  EXPECT_EQ(
      findings_,
      "fabric.textproto:1:1: error: file: \"fabrics/mine.textproto\": there is no such file\n");
}

TEST_F(TopologyLoaderTest, MistakesInAFileAreReportedThere) {
  Write("mine.textproto", "devices { nane: \"leaf\" }\n");
  Load("file: \"mine.textproto\"");
  EXPECT_TRUE(findings_.starts_with("mine.textproto:1:")) << findings_;
}

}  // namespace
}  // namespace railyard
