// SPDX-License-Identifier: GPL-2.0-only
// Servers whose GPUs and NICs meet over PCIe switches and host bridges.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/fabric_facts.h"
#include "tests/topologies/format_test.h"
#include "topologies/formats/graph_writer.h"
#include "topologies/generators/rail_optimized.h"
#include "topologies/platforms/platform.h"
#include "topologies/routing/routing.h"

namespace railyard {
namespace {

using testing::CablesOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

FabricGraph Rtx3090(uint32_t servers) {
  ServerSpec server = ServerOfPlatform("pcie-8x3090");
  server.count = servers;
  return MakeRailOptimized({.mixed_servers = {server}});
}

class PcieTreeTest : public testing::FormatTest {
 protected:
  static DeviceId Named(const FabricGraph& fabric, const std::string& name) {
    return fabric.FindDevice("server0/" + name).value();
  }
  // The devices that a way enters.
  static std::vector<std::string> Way(const FabricGraph& fabric, const std::string& from,
                                      const std::string& to) {
    std::vector<std::string> names;
    for (const LinkId link : fabric.HostPath(Named(fabric, from), Named(fabric, to))) {
      names.push_back(fabric.device(fabric.link_target(link)).name.substr(8));
    }
    return names;
  }
};

// Eight GPUs and a NIC, two switches, and what joins the sockets.
TEST_F(PcieTreeTest, GpusHangOnSwitchesAndNicsOnHostBridges) {
  const FabricGraph fabric = Rtx3090(1);
  EXPECT_EQ(CablesOf(fabric, Tier::kHost), 8u + 1 + 2 + 1);
  EXPECT_EQ(CablesOf(fabric, Tier::kNvlink), 0u);
  EXPECT_THAT(Way(fabric, "gpu0", "gpu3"), ElementsAre("pcieswitch0", "gpu3"));
  EXPECT_THAT(Way(fabric, "gpu3", "gpu4"),
              ElementsAre("pcieswitch0", "hostbridge0", "hostbridge1", "pcieswitch1", "gpu4"));
  EXPECT_THAT(Way(fabric, "gpu7", "nic0"),
              ElementsAre("pcieswitch1", "hostbridge1", "hostbridge0", "nic0"));
  EXPECT_EQ(fabric.HostBridgeOf(Named(fabric, "gpu5")), Named(fabric, "hostbridge1"));
  EXPECT_TRUE(fabric.HostPath(Named(fabric, "gpu0"), Named(fabric, "gpu0")).empty());
  EXPECT_EQ(fabric.device(fabric.gpus()[2]).compute_capability, 86u);
  EXPECT_FALSE(fabric.device(fabric.gpus()[2]).peer_access);
}

// A GPU uses the NIC of its own socket.
TEST_F(PcieTreeTest, AGpuUsesTheNearestNic) {
  ServerSpec server = ServerOfPlatform("pcie-8xa100");
  const FabricGraph fabric = MakeRailOptimized({.mixed_servers = {server}});
  EXPECT_EQ(fabric.NicOfGpu(Named(fabric, "gpu3")), Named(fabric, "nic0"));
  EXPECT_EQ(fabric.NicOfGpu(Named(fabric, "gpu4")), Named(fabric, "nic1"));
}

TEST_F(PcieTreeTest, RoutesLeadThroughTheTreesOfBothServers) {
  const FabricGraph fabric = Rtx3090(2);
  const EcmpRouting routing(fabric, 1);
  const Path path = routing.Resolve(fabric.gpus()[7], fabric.gpus()[8], 0);
  std::vector<std::string> names;
  for (const LinkId link : path) names.push_back(fabric.device(fabric.link_target(link)).name);
  EXPECT_THAT(names, ElementsAre("server0/pcieswitch1", "server0/hostbridge1",
                                 "server0/hostbridge0", "server0/nic0", "leaf0", "server1/nic0",
                                 "server1/hostbridge0", "server1/pcieswitch0", "server1/gpu0"));
}

TEST_F(PcieTreeTest, TextAndGraphmlKeepThem) {
  const auto text = Load("f.textproto",
                         "devices { name: \"g0\" kind: GPU server: 0 local_index: 0 "
                         "compute_capability: 86 peer_access: false cpu: \"AMD\" }\n"
                         "devices { name: \"s\" kind: PCIE_SWITCH server: 0 local_index: 0 "
                         "forwarding_latency: \"105ns\" }\n"
                         "devices { name: \"b\" kind: HOST_BRIDGE server: 0 local_index: 0 }\n"
                         "links { from: \"g0\" to: \"s\" tier: HOST rate: \"220Gbps\" }\n"
                         "links { from: \"s\" to: \"b\" tier: HOST rate: \"220Gbps\" }\n");
  ASSERT_TRUE(text.has_value()) << findings_;
  EXPECT_EQ(text->device(text->gpus()[0]).compute_capability, 86u);
  EXPECT_FALSE(text->device(text->gpus()[0]).peer_access);
  EXPECT_EQ(text->device(text->gpus()[0]).cpu, CpuVendor::kAmd);
  EXPECT_EQ(text->HostPath(DeviceId{0}, DeviceId{2}).size(), 2u);
  for (const auto& again :
       {Load("again.textproto", ToTopologyText(*text)), Load("again.graphml", ToGraphMl(*text))}) {
    ASSERT_TRUE(again.has_value()) << findings_;
    EXPECT_EQ(again->device(again->gpus()[0]).compute_capability, 86u);
    EXPECT_FALSE(again->device(again->gpus()[0]).peer_access);
    EXPECT_EQ(again->device(again->gpus()[0]).cpu, CpuVendor::kAmd);
  }
}

TEST_F(PcieTreeTest, WhatHasNoEffectIsRefused) {
  Load("f.textproto",
       "devices { name: \"g0\" kind: GPU server: 0 local_index: 0 }\n"
       "devices { name: \"n\" kind: NIC server: 0 local_index: 0 peer_access: true }\n"
       "links { from: \"g0\" to: \"n\" tier: HOST rate: \"220Gbps\" }\n");
  EXPECT_EQ(
      findings_,
      "f.textproto:2:56: error: devices[1].peer_access: has no effect on a NIC (expected only "
      "on a GPU)\n");
  Load("f.textproto",
       "devices { name: \"g0\" kind: GPU server: 0 local_index: 0 cpu: \"XEON\" }\n"
       "devices { name: \"n\" kind: NIC server: 0 local_index: 0 cpu: \"AMD\" }\n"
       "links { from: \"g0\" to: \"n\" tier: HOST rate: \"220Gbps\" }\n");
  EXPECT_THAT(findings_,
              HasSubstr("f.textproto:1:57: error: devices[0].cpu: unknown maker of CPUs \"XEON\" "
                        "(expected \"INTEL\", \"AMD\" or \"ARM\")\n"));
  EXPECT_THAT(findings_, HasSubstr("f.textproto:2:56: error: devices[1].cpu: has no effect on a "
                                   "NIC (expected only on a GPU)\n"));
  Load("p.textproto",
       "pcie { sockets { value: 1 source: \"a\" } bridge_latency { value: \"1ns\" source: \"a\" } "
       "socket_rate { value: \"1GBps\" source: \"a\" } }\n");
  EXPECT_THAT(findings_, HasSubstr("pcie.socket_rate: has no effect with one socket"));
  Load("p.textproto", "pcie { sockets { value: 2 } }\n");
  EXPECT_THAT(findings_, HasSubstr("pcie.sockets.source: missing"));
  EXPECT_THAT(findings_, HasSubstr("pcie.socket_rate: missing"));
  EXPECT_THAT(findings_, HasSubstr("pcie.bridge_latency: missing"));
}

}  // namespace
}  // namespace railyard
