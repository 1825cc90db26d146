// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/formats/topology_file_loader.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/topologies/fabric_text.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

// Two GPUs with NICs of their own on one switch, without an island.
constexpr char kTwoServers[] = R"(
name: "two servers"
devices { name: "a/gpu" kind: GPU server: 0 local_index: 0 }
devices { name: "a/nic" kind: NIC server: 0 local_index: 0 }
devices { name: "b/gpu" kind: GPU server: 1 local_index: 0 }
devices { name: "b/nic" kind: NIC server: 1 local_index: 0 }
devices { name: "leaf" kind: SWITCH forwarding_latency: "250ns" }
links { from: "a/gpu" to: "a/nic" tier: HOST rate: "55GBps" delay: "450ns" }
links { from: "b/gpu" to: "b/nic" tier: HOST rate: "55GBps" delay: "450ns" }
links { from: "a/nic" to: "leaf" tier: NIC_LEAF rate: "400Gbps" delay: "145ns" lanes: 4 }
links { from: "b/nic" to: "leaf" tier: NIC_LEAF rate: "400Gbps" }
)";

class TopologyFileLoaderTest : public testing::FabricTextTest {
 protected:
  std::optional<FabricGraph> LoadFile(const std::string& topology) {
    Write("mine.textproto", topology);
    return Load(R"(file: "mine.textproto")");
  }
  // One mistake in a device or link that follows two good servers; on line 13.
  std::string Complain(const std::string& line) {
    LoadFile(kTwoServers + std::string("\n") + line + "\n");
    return findings_;
  }
};

TEST_F(TopologyFileLoaderTest, DevicesAndLinksAreAsWritten) {
  const auto graph = LoadFile(kTwoServers);
  ASSERT_TRUE(graph.has_value()) << findings_;
  EXPECT_EQ(graph->name, "two servers");
  EXPECT_EQ(graph->device_count(), 5u);
  EXPECT_EQ(graph->gpus().size(), 2u);
  EXPECT_EQ(graph->server_count(), 2u);
  const Device& leaf = graph->device(graph->FindDevice("leaf").value());
  EXPECT_EQ(leaf.kind, DeviceKind::kSwitch);
  EXPECT_EQ(leaf.forwarding_latency_ps, 250 * kPsPerNs);
  const Device& nic = graph->device(graph->FindDevice("b/nic").value());
  EXPECT_EQ(nic.kind, DeviceKind::kNic);
  EXPECT_EQ(nic.server, 1u);
  EXPECT_EQ(nic.local_index, 0);
  ASSERT_EQ(graph->cables().size(), 4u);
  const LinkProperties& cable = graph->link(graph->cables()[2].forward);
  EXPECT_EQ(cable.name, "a/nic>leaf");
  EXPECT_EQ(cable.tier, Tier::kNicLeaf);
  EXPECT_EQ(cable.rate_bps, 400'000'000'000u);
  EXPECT_EQ(cable.propagation_ps, 145 * kPsPerNs);
  EXPECT_EQ(cable.lanes, 4u);
  EXPECT_EQ(graph->link(graph->cables()[3].forward).propagation_ps, 0);
  EXPECT_EQ(graph->link(graph->cables()[3].forward).lanes, 1u);
}

TEST_F(TopologyFileLoaderTest, AFabricWithoutANameIsCalledAsItsFile) {
  const std::string text(kTwoServers);
  const auto graph = LoadFile(text.substr(text.find("devices")));
  ASSERT_TRUE(graph.has_value()) << findings_;
  EXPECT_EQ(graph->name, "mine");
}

TEST_F(TopologyFileLoaderTest, EveryKindAndTierIsRead) {
  const auto graph = LoadFile(kTwoServers + std::string(R"(
    devices { name: "a/nvs" kind: NVSWITCH server: 0 local_index: 0 forwarding_latency: "100ns" }
    devices { name: "leaf2" kind: SWITCH }
    links { from: "a/gpu" to: "a/nvs" tier: NVLINK rate: "450GBps" lanes: 18 }
    links { from: "leaf" to: "leaf2" tier: LEAF_SPINE rate: "1Tbps" }
    links { from: "leaf" to: "leaf2" tier: SPINE_CORE rate: "1Tbps" }
    links { from: "leaf" to: "leaf2" tier: LOCAL rate: "1Tbps" }
    links { from: "leaf" to: "leaf2" tier: GLOBAL rate: "1Tbps" }
    links { from: "b/gpu" to: "a/gpu" tier: DIRECT rate: "1Tbps" }
    links { from: "b/nic" to: "a/nic" tier: DIRECT rate: "1Tbps" }
  )"));
  ASSERT_TRUE(graph.has_value()) << findings_;
  EXPECT_EQ(graph->device(graph->FindDevice("a/nvs").value()).kind, DeviceKind::kNvSwitch);
  const Tier tiers[] = {Tier::kNvlink, Tier::kLeafSpine, Tier::kSpineCore, Tier::kLocal,
                        Tier::kGlobal, Tier::kDirect,    Tier::kDirect};
  for (size_t i = 0; i < std::size(tiers); ++i) {
    EXPECT_EQ(graph->link(graph->cables()[4 + i].forward).tier, tiers[i]) << i;
  }
  EXPECT_TRUE(graph->FindCable("leaf2--leaf#4").has_value());
}

TEST_F(TopologyFileLoaderTest, ADeviceWithoutItsFieldsIsRefused) {
  EXPECT_EQ(Complain("devices { }"),
            "mine.textproto:13:1: error: devices[5].name: missing (expected a name, e.g. "
            "\"server0/gpu0\")\n"
            "mine.textproto:13:1: error: devices[5].kind: missing (expected GPU, NVSWITCH, NIC, "
            "SWITCH, PCIE_SWITCH or HOST_BRIDGE)\n");
  EXPECT_EQ(Complain(R"(devices { name: "x" kind: GPU })"),
            "mine.textproto:13:1: error: devices[5].server: missing (expected a number; only a "
            "SWITCH belongs to no server)\n"
            "mine.textproto:13:1: error: devices[5].local_index: missing (expected a number; only "
            "a SWITCH belongs to no server)\n");
}

TEST_F(TopologyFileLoaderTest, ANameThatCannotStandInACablesNameIsRefused) {
  for (const char* name : {"", "a--b", "a>b", "a#1", "a b", "-a", "a-"}) {
    EXPECT_EQ(Complain("devices { name: \"" + std::string(name) + "\" kind: SWITCH }"),
              "mine.textproto:13:11: error: devices[5].name: \"" + std::string(name) +
                  "\" is not a device name (expected letters, digits and / . _ : - inside, no "
                  "\"--\", at most 200 characters)\n");
  }
  EXPECT_NE(Complain("devices { name: \"" + std::string(201, 'a') + "\" kind: SWITCH }"), "");
}

TEST_F(TopologyFileLoaderTest, TwoDevicesOfOneNameAreShownBoth) {
  EXPECT_EQ(Complain(R"(devices { name: "leaf" kind: SWITCH })"),
            "mine.textproto:13:11: error: devices[5].name: there is already a device \"leaf\"\n"
            "mine.textproto:7:11: note: devices[4].name: the other one is here\n");
}

TEST_F(TopologyFileLoaderTest, TwoGpusOfOneIndexAreShownBoth) {
  EXPECT_EQ(Complain("devices { name: \"x\" kind: GPU server: 1 local_index: 0 }"),
            "mine.textproto:13:41: error: devices[5].local_index: server 1 already has a GPU 0\n"
            "mine.textproto:5:45: note: devices[2].local_index: the other one is here\n");
}

TEST_F(TopologyFileLoaderTest, ServersHaveNoGaps) {
  EXPECT_EQ(Complain("devices { name: \"x\" kind: GPU server: 5 local_index: 0 }"),
            "mine.textproto:13:31: error: devices[5].server: there is a server 5 but no server 2 "
            "(expected servers numbered from 0 without gaps)\n");
}

TEST_F(TopologyFileLoaderTest, NumbersOutOfRangeAreRefused) {
  EXPECT_EQ(Complain("devices { name: \"x\" kind: NIC server: 65536 local_index: 1024 }"),
            "mine.textproto:13:31: error: devices[5].server: 65536 is out of range (expected 0 to "
            "65535)\n"
            "mine.textproto:13:45: error: devices[5].local_index: 1024 is out of range (expected 0 "
            "to 1023)\n");
  EXPECT_EQ(Complain(R"(devices { name: "x" kind: SWITCH forwarding_latency: "2s" })"),
            "mine.textproto:13:34: error: devices[5].forwarding_latency: 2 s is out of range "
            "(expected 0s to 1s)\n");
}

TEST_F(TopologyFileLoaderTest, APositionIsNumbersBetweenPoints) {
  for (const char* position : {"", "1.", ".1", "a", "1,2", "65536", "1.2.3.4.5.6.7.8.9"}) {
    EXPECT_THAT(Complain("devices { name: \"x\" kind: SWITCH coordinates: \"" +
                         std::string(position) + "\" }"),
                HasSubstr("devices[5].coordinates: \"" + std::string(position) +
                          "\" is not a position (expected 1 to "))
        << position;
  }
}

TEST_F(TopologyFileLoaderTest, FieldsWithoutEffectAreRefused) {
  EXPECT_EQ(Complain(R"(devices { name: "x" kind: SWITCH server: 0 local_index: 0 })"),
            "mine.textproto:13:34: error: devices[5].server: has no effect on a SWITCH (expected "
            "only on a device in a server)\n"
            "mine.textproto:13:44: error: devices[5].local_index: has no effect on a SWITCH "
            "(expected only on a device in a server)\n");
  EXPECT_EQ(Complain("devices { name: \"x\" kind: NIC server: 0 local_index: 1 "
                     "forwarding_latency: \"1ns\" }"),
            "mine.textproto:13:56: error: devices[5].forwarding_latency: has no effect on a NIC "
            "(expected only on what forwards)\n");
}

TEST_F(TopologyFileLoaderTest, ADeviceWithoutALinkIsRefused) {
  EXPECT_EQ(Complain(R"(devices { name: "spine" kind: SWITCH })"),
            "mine.textproto:13:11: error: devices[5].name: spine has no link (expected at least "
            "one)\n");
}

TEST_F(TopologyFileLoaderTest, AFabricNeedsAGpu) {
  LoadFile("");
  EXPECT_EQ(findings_, "mine.textproto:1:1: error: devices: missing (expected at least one GPU)\n");
  LoadFile(R"(devices { name: "a" kind: SWITCH }
              devices { name: "b" kind: SWITCH }
              links { from: "a" to: "b" tier: LEAF_SPINE rate: "1Gbps" })");
  EXPECT_EQ(findings_,
            "mine.textproto:1:1: error: devices: there is no GPU (expected at least one)\n");
}

TEST_F(TopologyFileLoaderTest, ALinkWithoutItsFieldsIsRefused) {
  EXPECT_EQ(Complain("links { }"),
            "mine.textproto:13:1: error: links[4].from: missing (expected the name of a device)\n"
            "mine.textproto:13:1: error: links[4].to: missing (expected the name of a device)\n"
            "mine.textproto:13:1: error: links[4].tier: missing (expected NVLINK, HOST, NIC_LEAF, "
            "LEAF_SPINE, SPINE_CORE, DIRECT, LOCAL or GLOBAL)\n"
            "mine.textproto:13:1: error: links[4].rate: missing (expected a data rate with its "
            "unit, e.g. \"400Gbps\")\n");
}

TEST_F(TopologyFileLoaderTest, ADanglingEndIsRefusedWithTheClosestName) {
  EXPECT_EQ(Complain(R"(links { from: "a/nic" to: "laef" tier: NIC_LEAF rate: "1Gbps" })"),
            "mine.textproto:13:23: error: links[4].to: unknown device \"laef\" (did you mean "
            "\"leaf\"?)\n");
  EXPECT_EQ(Complain(R"(links { from: "elsewhere" to: "leaf" tier: NIC_LEAF rate: "1Gbps" })"),
            "mine.textproto:13:9: error: links[4].from: unknown device \"elsewhere\"\n");
}

TEST_F(TopologyFileLoaderTest, ALinkFromADeviceToItselfIsRefused) {
  EXPECT_EQ(Complain(R"(links { from: "leaf" to: "leaf" tier: LEAF_SPINE rate: "1Gbps" })"),
            "mine.textproto:13:22: error: links[4].to: joins leaf to itself (expected another "
            "device)\n");
}

TEST_F(TopologyFileLoaderTest, ATierJoinsOnlyItsKindsOfDevice) {
  const auto complain = [&](const char* from, const char* to, const char* tier) {
    const std::string text = Complain(std::string("links { tier: ") + tier + " from: \"" + from +
                                      "\" to: \"" + to + "\" rate: \"1Gbps\" }");
    const std::string prefix = "mine.textproto:13:9: error: links[4].tier: ";
    EXPECT_TRUE(text.starts_with(prefix)) << text;
    return text.substr(prefix.size());
  };
  EXPECT_EQ(complain("a/gpu", "a/nic", "NVLINK"),
            "NVLINK does not join a/gpu (GPU) and a/nic (NIC) (expected a GPU and an NVSWITCH or "
            "two GPUs)\n");
  EXPECT_EQ(complain("a/nic", "leaf", "HOST"),
            "HOST does not join a/nic (NIC) and leaf (SWITCH) (expected a GPU and a NIC, or "
            "one of them or a PCIE_SWITCH or HOST_BRIDGE and a PCIE_SWITCH or HOST_BRIDGE)\n");
  EXPECT_EQ(complain("a/nic", "b/nic", "NIC_LEAF"),
            "NIC_LEAF does not join a/nic (NIC) and b/nic (NIC) (expected a NIC and a SWITCH)\n");
  EXPECT_EQ(complain("a/nic", "leaf", "DIRECT"),
            "DIRECT does not join a/nic (NIC) and leaf (SWITCH) (expected two GPUs, "
            "two NICs or two SWITCHes)\n");
  for (const std::string tier : {"LEAF_SPINE", "SPINE_CORE", "LOCAL", "GLOBAL"}) {
    EXPECT_EQ(complain("leaf", "a/nic", tier.c_str()),
              tier + " does not join leaf (SWITCH) and a/nic (NIC) (expected two SWITCHes)\n");
  }
}

TEST_F(TopologyFileLoaderTest, AHostLinkStaysInItsServer) {
  EXPECT_EQ(Complain(R"(links { from: "a/gpu" to: "b/nic" tier: HOST rate: "1Gbps" })"),
            "mine.textproto:13:23: error: links[4].to: HOST joins a/gpu of server 0 and b/nic of "
            "server 1 (expected one server)\n");
}

TEST_F(TopologyFileLoaderTest, QuantitiesOfALinkAreChecked) {
  const auto complain = [&](const std::string& fields) {
    return Complain("links { from: \"a/nic\" to: \"leaf\" tier: NIC_LEAF " + fields + " }");
  };
  const std::string place = "mine.textproto:13:49: error: links[4].";
  EXPECT_EQ(complain(R"(rate: "0Gbps")"),
            place + "rate: 0 bps is out of range (expected 1Mbps to 100Tbps)\n");
  EXPECT_EQ(complain(R"(rate: "101Tbps")"),
            place + "rate: 101000000000000 bps is out of range (expected 1Mbps to 100Tbps)\n");
  EXPECT_EQ(complain(R"(rate: "fast")"),
            place +
                "rate: \"fast\" is not a data rate (expected a data rate with its unit, e.g. "
                "\"400Gbps\")\n");
  EXPECT_EQ(complain(R"(delay: "1.5s" rate: "1Gbps")"),
            place + "delay: 1.5 s is out of range (expected 0s to 1s)\n");
  EXPECT_EQ(complain(R"(delay: "near" rate: "1Gbps")"),
            place +
                "delay: \"near\" is not a duration (expected a duration with its unit, e.g. "
                "\"300ms\")\n");
  EXPECT_EQ(complain(R"(lanes: 0 rate: "1Gbps")"),
            place + "lanes: 0 is out of range (expected 1 to 1024)\n");
  EXPECT_EQ(complain(R"(lanes: 1025 rate: "1Gbps")"),
            place + "lanes: 1025 is out of range (expected 1 to 1024)\n");
}

TEST_F(TopologyFileLoaderTest, AllMistakesAreReportedAtOnce) {
  const std::string findings = Complain(
      "devices { name: \"x\" }\n"
      "links { from: \"x\" to: \"y\" tier: LOCAL rate: \"1\" }");
  EXPECT_NE(findings.find("devices[5].kind"), std::string::npos) << findings;
  EXPECT_NE(findings.find("links[4].to"), std::string::npos) << findings;
  EXPECT_NE(findings.find("links[4].rate"), std::string::npos) << findings;
  EXPECT_EQ(findings.find("links[4].from"), std::string::npos)
      << "x is refused, not unknown: " << findings;
}

TEST_F(TopologyFileLoaderTest, MistakesOfTextAndOfMeaningAreFoundAtOnce) {
  EXPECT_EQ(
      Complain("devices { name: \"a--b\" kind: GPU srever: 2 local_index: 0 }\n"
               "devices { name: \"x\" kind: GPPU server: 0 local_index: 4000 }\n"
               "links { from: \"leaf\" to: \"a/gpu\" tier: NVLINK rate: 400 }\n"
               "links { from: \"lea\" to: \"a/gpu\" tier: HOST rate: \"4\" lane: 1 }"),
      "mine.textproto:13:11: error: devices[5].name: \"a--b\" is not a device name (expected "
      "letters, digits and / . _ : - inside, no \"--\", at most 200 characters)\n"
      "mine.textproto:13:34: error: devices[5].srever: unknown field \"srever\" (did you mean "
      "\"server\"?)\n"
      "mine.textproto:14:27: error: devices[6].kind: unknown \"GPPU\" (did you mean "
      "\"GPU\"?)\n"
      "mine.textproto:15:34: error: links[4].tier: NVLINK does not join leaf (SWITCH) and "
      "a/gpu (GPU) (expected a GPU and an NVSWITCH or two GPUs)\n"
      "mine.textproto:15:53: error: links[4].rate: \"400\" is not a text in quotes\n"
      "mine.textproto:16:9: error: links[5].from: unknown device \"lea\" (did you mean "
      "\"leaf\"?)\n"
      "mine.textproto:16:44: error: links[5].rate: \"4\" is not a data rate (expected a data "
      "rate with its unit, e.g. \"400Gbps\")\n"
      "mine.textproto:16:54: error: links[5].lane: unknown field \"lane\" (did you mean "
      "\"lanes\"?)\n");
}

// Each of these lines has one mistake, and what depends on it is not looked at.
TEST_F(TopologyFileLoaderTest, AMistakeInTheTextIsReportedOnceAndNothingThatFollowsFromIt) {
  const auto only = [this](const std::string& lines) {
    const std::string found = Complain(lines);
    EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 1) << found;
    EXPECT_EQ(found.rfind("mine.textproto:13:", 0), 0u) << found;
  };
  // A name that cannot be read may be the one a link asks for; likewise an element that is none.
  const std::string link =
      "\nlinks { from: \"c/nic\" to: \"leaf\" tier: NIC_LEAF rate: \"1Gbps\" }";
  only("devices { name: c kind: NIC server: 0 local_index: 1 }" + link);
  only("devices { nmae: \"c/nic\" kind: NIC server: 0 local_index: 1 }" + link);
  only("devices: 3" + link);
  only("devces { name: \"c/nic\" kind: NIC server: 0 local_index: 1 }" + link);
  // Two devices whose names cannot be read are not two of one name.
  EXPECT_EQ(Complain("devices { name: 1 kind: SWITCH }\ndevices { name: 2 kind: SWITCH }"),
            "mine.textproto:13:17: error: devices[5].name: \"1\" is not a text in quotes\n"
            "mine.textproto:14:17: error: devices[6].name: \"2\" is not a text in quotes\n");
  // A gap among the servers, and a device without a link, may be gone when the mistake is.
  only(
      "devices { name: \"c/nic\" kind: NIC server: x local_index: 1 }\n"
      "devices { name: \"d/nic\" kind: NIC server: 3 local_index: 1 }");
  only(
      "links { from: \"leaf\" to: \"c\" tier: LEAF_SPINE rate: 3 }\n"
      "devices { name: \"c\" kind: SWITCH }");
  only("links: 3");
}

}  // namespace
}  // namespace railyard
