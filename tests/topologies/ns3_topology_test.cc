// SPDX-License-Identifier: GPL-2.0-only
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/topologies/fabric_facts.h"
#include "tests/topologies/format_test.h"
#include "topologies/formats/graph_writer.h"
#include "topologies/formats/ns3_topology_loader.h"
#include "topologies/formats/ns3_topology_writer.h"
#include "topologies/platforms/preset.h"

namespace railyard {
namespace {

using testing::CablesOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::Switches;

class Ns3TopologyTest : public testing::FormatTest {
 protected:
  std::string FindingsOf(const std::string& text) {
    Load("t.txt", text);
    return findings_;
  }
};

// HPCC's form: four hosts, two leaves, a spine; the text after the links is its own explanation.
constexpr const char* kHpcc =
    "7 3 6\n"
    "4 5 6\n"
    "0 4 100Gbps 1000ns 0.000000\n"
    "1 4 100Gbps 1000ns 0.000000\n"
    "2 5 100Gbps 0.001ms 0\n"
    "3 5 100Gbps 1us 0\n"
    "4 6 400Gbps 1000ns 0\n"
    "5 6 400Gbps 1000ns 0\n";

TEST_F(Ns3TopologyTest, AHostIsAServerOfOneGpuAndOneNic) {
  const auto fabric = Load("t.txt", kHpcc);
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_EQ(findings_, "");
  EXPECT_EQ(fabric->gpus().size(), 4u);
  EXPECT_EQ(fabric->server_count(), 4u);
  EXPECT_EQ(Switches(*fabric).size(), 3u);
  EXPECT_EQ(CablesOf(*fabric, Tier::kNicLeaf), 4u);
  EXPECT_EQ(CablesOf(*fabric, Tier::kLeafSpine), 2u);
  const LinkProperties& cable =
      fabric->link(fabric->cables()[fabric->FindCable("server2/nic0--switch5").value()].forward);
  EXPECT_EQ(cable.rate_bps, 100'000'000'000u);
  EXPECT_EQ(cable.propagation_ps, kPsPerUs);
  const LinkProperties& host = fabric->link(
      fabric->cables()[fabric->FindCable("server2/gpu0--server2/nic0").value()].forward);
  EXPECT_EQ(host.rate_bps, 100'000'000'000u);
  EXPECT_EQ(host.propagation_ps, 0);
}

// SimAI's: two servers of two GPUs with an NVSwitch each, two leaves (rails), a spine.
constexpr const char* kSimAi =
    "9 2 2 3 10 H800\n"
    "4 5 6 7 8 \n"
    "0 4 2880Gbps 0.000025ms 0\n"
    "0 6 400Gbps 0.0005ms 0\n"
    "1 4 2880Gbps 0.000025ms 0\n"
    "1 7 400Gbps 0.0005ms 0\n"
    "2 5 2880Gbps 0.000025ms 0\n"
    "2 6 400Gbps 0.0005ms 0\n"
    "3 5 2880Gbps 0.000025ms 0\n"
    "3 7 400Gbps 0.0005ms 0\n"
    "6 8 400Gbps 0.0005ms 0\n"
    "7 8 400Gbps 0.0005ms 0\n";

TEST_F(Ns3TopologyTest, SimAisGpusShareServersAndNvSwitches) {
  const auto fabric = Load("t.topo", kSimAi);
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_EQ(fabric->gpus().size(), 4u);
  EXPECT_EQ(fabric->server_count(), 2u);
  EXPECT_EQ(CablesOf(*fabric, Tier::kNvlink), 4u);
  EXPECT_EQ(CablesOf(*fabric, Tier::kNicLeaf), 4u);
  EXPECT_EQ(CablesOf(*fabric, Tier::kLeafSpine), 2u);
  EXPECT_TRUE(fabric->FindCable("server1/gpu1--server1/nvswitch0").has_value());
  EXPECT_TRUE(fabric->FindCable("server1/nic1--switch7").has_value());
}

TEST_F(Ns3TopologyTest, ThreeTiersAreRecognizedByTheirDistanceFromTheHosts) {
  const auto fabric = Load("t.txt",
                           "6 4 5\n2 3 4 5\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0\n"
                           "2 4 1Gbps 1us 0\n3 4 1Gbps 1us 0\n4 5 1Gbps 1us 0\n");
  ASSERT_TRUE(fabric.has_value()) << findings_;
  EXPECT_EQ(CablesOf(*fabric, Tier::kLeafSpine), 2u);
  EXPECT_EQ(CablesOf(*fabric, Tier::kSpineCore), 1u);
}

TEST_F(Ns3TopologyTest, WhatWasReadIsWrittenAndReadAsTheSameFabric) {
  for (const char* text : {kHpcc, kSimAi}) {
    const auto fabric = Load("t.txt", text);
    ASSERT_TRUE(fabric.has_value());
    std::string written;
    ASSERT_EQ(ToNs3Topology(*fabric, written), "");
    const auto again = Load("t.txt", written);
    ASSERT_TRUE(again.has_value()) << findings_ << written;
    EXPECT_EQ(ToTopologyText(*again), ToTopologyText(*fabric));
  }
}

TEST_F(Ns3TopologyTest, AGeneratedFabricKeepsItsGpusItsNetworkAndItsLatency) {
  const FabricGraph fabric = MakePreset("h100-4x8-rail-optimized").value();
  std::string text;
  ASSERT_EQ(ToNs3Topology(fabric, text), "");
  EXPECT_THAT(text, StartsWith("60 8 16 12 192 NONE\n"));
  const auto read = Load("t.txt", text);
  ASSERT_TRUE(read.has_value()) << findings_;
  EXPECT_EQ(testing::CablesByTier(*read), testing::CablesByTier(fabric));
  // HOST and NIC_LEAF together.
  const LinkId link = read->cables()[read->FindCable("server3/nic7--switch55").value()].forward;
  EXPECT_EQ(read->link(link).propagation_ps, (450 + 145) * kPsPerNs);
}

TEST_F(Ns3TopologyTest, WhatTheFormatCannotSayIsRefused) {
  std::string text;
  EXPECT_EQ(ToNs3Topology(MakePreset("mixed-h100-a100-rail-optimized").value(), text), "");
  const auto shared = Load("f.textproto", "leaf_spine { servers { count: 2 nics: 4 } }");
  ASSERT_TRUE(shared.has_value());
  EXPECT_EQ(ToNs3Topology(*shared, text), "GPUs share server0/nic0");
  const auto mixed =
      Load("f.textproto", "leaf_spine { servers { count: 1 gpus: 2 } servers { count: 1 } }");
  ASSERT_TRUE(mixed.has_value());
  EXPECT_EQ(ToNs3Topology(*mixed, text), "servers have different numbers of GPUs");
}

TEST_F(Ns3TopologyTest, HostileNumbersAreErrorsBeforeAnythingIsMadeForThem) {
  EXPECT_EQ(FindingsOf("1000000000 1 1\n"),
            "t.txt:1:1: error: \"1000000000\" is no number of nodes (expected a number from 1 to "
            "1000000)\n");
  EXPECT_THAT(FindingsOf("7 3 999999999\n"),
              HasSubstr("t.txt:1:5: error: \"999999999\" is no number of links (expected a number "
                        "from 1 to 2000000)"));
  EXPECT_THAT(FindingsOf("99999999999999999999999 1 1\n"), HasSubstr("is no number of nodes"));
  EXPECT_THAT(FindingsOf("7\n"), HasSubstr("t.txt:1:1: error: 1 numbers in the first line"));
  EXPECT_THAT(FindingsOf("7 7 1\n"), HasSubstr("leave 0 GPUs (expected 1 to 65536)"));
  EXPECT_THAT(FindingsOf("200000 1 1\n5\n"), HasSubstr("leave 199999 GPUs"));
  EXPECT_THAT(FindingsOf("3 1 2\n"), HasSubstr("the file ends (expected a switch's id)"));
  EXPECT_THAT(FindingsOf("3 1 2\n2\n0 2 1Gbps 1us 0\n"),
              HasSubstr("the file ends (expected link 2 of 2)"));
}

TEST_F(Ns3TopologyTest, MistakesAreAtTheirPlaces) {
  const std::string head = "3 1 2\n2\n0 2 1Gbps 1us 0\n";
  EXPECT_EQ(FindingsOf("3 2 1\n2 2\n"), "t.txt:2:3: error: node 2 is listed twice\n");
  EXPECT_THAT(FindingsOf("3 1 1\n3\n"),
              HasSubstr("t.txt:2:1: error: \"3\" is no node's id (expected a number from 0 to 2)"));
  EXPECT_THAT(FindingsOf(head + "1 7 1Gbps 1us 0\n"),
              HasSubstr("t.txt:4:3: error: \"7\" is no node's id"));
  EXPECT_EQ(FindingsOf(head + "1 1 1Gbps 1us 0\n"),
            "t.txt:4:3: error: joins node 1 to itself (expected another node)\n");
  EXPECT_THAT(FindingsOf(head + "1 2 0Gbps 1us 0\n"),
              HasSubstr("t.txt:4:5: error: \"0Gbps\" is out of range (expected 1Mbps to 100Tbps)"));
  EXPECT_THAT(FindingsOf(head + "1 2 999Tbps 1us 0\n"), HasSubstr("\"999Tbps\" is out of range"));
  EXPECT_THAT(FindingsOf(head + "1 2 fast 1us 0\n"), HasSubstr("\"fast\" is not a data rate"));
  EXPECT_THAT(FindingsOf(head + "1 2 1Gbps soon 0\n"), HasSubstr("\"soon\" is not a duration"));
  EXPECT_THAT(FindingsOf(head + "1 2 1Gbps 2s 0\n"), HasSubstr("\"2s\" is out of range"));
  EXPECT_THAT(FindingsOf(head + "1 2 1Gbps 1us 2\n"),
              HasSubstr("t.txt:4:15: error: \"2\" is not an error rate (expected 0 to 1)"));
  EXPECT_THAT(FindingsOf(head + "1 2 1Gbps 1us nan\n"), HasSubstr("is not an error rate"));
  EXPECT_THAT(FindingsOf("3 1 1\n2\n0 2 1Gbps 1us 0\n"), HasSubstr("has no link"));
  EXPECT_THAT(FindingsOf("5 1 1 2 4 X\n2 3 4\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n"
                         "0 3 1Gbps 1us 0\n1 4 1Gbps 1us 0\n"),
              HasSubstr("t.txt:4:1: error: NVSwitch 2 joins GPUs of servers 0 and 1"));
  EXPECT_THAT(FindingsOf("4 2 1 1 3 X\n2 3\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n2 3 1Gbps 1us 0\n"),
              HasSubstr("t.txt:5:1: error: NVSwitch 2 is cabled to node 3 (expected GPUs only)"));
  EXPECT_THAT(FindingsOf("3 1 2\n2 " + std::string(size_t{17} << 20, ' ')),
              HasSubstr("t.txt:2:1: error: a line of more than"));
  EXPECT_THAT(FindingsOf("3 2 1 0 2 X\n2\n0 1 1Gbps 1us 0\n0 1 1Gbps 1us 0\n"),
              HasSubstr("NVSwitch 2 has no link"));
}

TEST_F(Ns3TopologyTest, WhatIsNotUsedIsAWarning) {
  EXPECT_EQ(FindingsOf("3 1 2\n2\n0 2 1Gbps 1us 0.1\n1 2 1Gbps 1us 0\n\nFirst line: total node\n"),
            "t.txt:3:15: warning: error rates are not used: cables lose nothing by themselves\n"
            "t.txt:6:1: warning: what follows the 2 links is not read\n");
}

}  // namespace
}  // namespace railyard
