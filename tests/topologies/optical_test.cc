// SPDX-License-Identifier: GPL-2.0-only
#include "topologies/generators/optical.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topologies/fabric_facts.h"
#include "tests/topologies/format_test.h"
#include "topologies/formats/graph_writer.h"
#include "topologies/generators/circuit_schedule.h"
#include "topologies/platforms/preset.h"
#include "topologies/routing/routing.h"

namespace railyard {
namespace {

using testing::CablesOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Lines;
using ::testing::SizeIs;
using testing::SwitchDiameter;

// 8 servers, so 16 racks of 4 NICs.
OpticalSpec Spec() {
  OpticalSpec spec;
  spec.network.servers[0].count = 8;
  return spec;
}

TEST(OpticalTest, EveryPairOfRacksHasACircuitInTurn) {
  const FabricGraph fabric = MakeOptical(Spec());
  ASSERT_TRUE(fabric.circuits.has_value());
  EXPECT_EQ(fabric.circuits->slots, 15u);
  EXPECT_EQ(CablesOf(fabric, Tier::kDirect), 16u * 15 / 2);
  std::set<std::pair<DeviceId, DeviceId>> pairs;
  for (const auto& [cable, slots] : fabric.circuits->slots_of_cable) {
    const LinkId link = fabric.cables()[cable].forward;
    pairs.insert(std::minmax(fabric.link_source(link), fabric.link_target(link)));
    EXPECT_THAT(slots, SizeIs(4)) << "of 15: as long as there are circuit switches";
  }
  EXPECT_THAT(pairs, SizeIs(120));
}

TEST(OpticalTest, EachConfigurationUsesEveryUplinkOnceAndJoinsAll) {
  const FabricGraph fabric = MakeOptical(Spec());
  for (uint32_t slot = 0; slot < 15; ++slot) {
    const FabricGraph at = AtSlot(fabric, slot);
    EXPECT_EQ(CablesOf(at, Tier::kDirect), 16u * 4 / 2);
    for (const DeviceId tor : testing::Switches(at)) {
      EXPECT_EQ(boost::out_degree(tor, at.graph()), 4u + 4);
    }
    EXPECT_LE(SwitchDiameter(at), 15u) << slot;
  }
}

// While a circuit switch is dark, what the configurations before and after share must do.
TEST(OpticalTest, AllRacksStayJoinedWhileOneCircuitSwitchTurns) {
  OpticalSpec spec = Spec();
  spec.circuit_switches = 3;
  const FabricGraph fabric = MakeOptical(spec);
  EcmpRouting routing(fabric, 1);
  for (uint32_t slot = 0; slot < 15; ++slot) {
    for (const auto& [cable, slots] : fabric.circuits->slots_of_cable) {
      const bool is_there =
          fabric.circuits->IsThere(cable, slot) && fabric.circuits->IsThere(cable, (slot + 1) % 15);
      routing.SetLinkUp(fabric.cables()[cable].forward, is_there);
      routing.SetLinkUp(fabric.cables()[cable].backward, is_there);
    }
    for (size_t gpu = 4; gpu < 64; gpu += 4) {
      EXPECT_FALSE(routing.Resolve(fabric.gpus()[0], fabric.gpus()[gpu], 0).empty()) << slot;
    }
  }
}

TEST(OpticalTest, RoutesBeginWithTheFirstConfiguration) {
  const FabricGraph fabric = MakeOptical(Spec());
  const EcmpRouting routing(fabric, 1);
  for (uint64_t entropy = 0; entropy < 50; ++entropy) {
    for (const LinkId link : routing.Resolve(fabric.gpus()[0], fabric.gpus()[60], entropy)) {
      EXPECT_TRUE(fabric.circuits->IsThere(fabric.link(link).cable, 0));
    }
  }
}

class OpticalFilesTest : public testing::FormatTest {};

TEST_F(OpticalFilesTest, TheTimetableSurvivesTextAndGraphMl) {
  const FabricGraph fabric = MakePreset("h100-8x8-optical").value();
  for (const auto& [name, text] :
       {std::pair("f.textproto", ToTopologyText(fabric)), {"f.graphml", ToGraphMl(fabric)}}) {
    const auto read = Load(name, text);
    ASSERT_TRUE(read.has_value()) << findings_;
    ASSERT_TRUE(read->circuits.has_value());
    EXPECT_EQ(read->circuits->slots_of_cable, fabric.circuits->slots_of_cable);
    EXPECT_EQ(ToTopologyText(*read), ToTopologyText(fabric));
  }
}

TEST_F(OpticalFilesTest, MistakesInATimetableAreAtTheirFields) {
  const auto findings = [&](const std::string& fields, const std::string& slots) {
    Load("f.textproto", fields + R"(
devices { name: "g0" kind: GPU server: 0 local_index: 0 }
devices { name: "n0" kind: NIC server: 0 local_index: 0 }
devices { name: "a" kind: SWITCH }
devices { name: "b" kind: SWITCH }
links { from: "g0" to: "n0" tier: HOST rate: "1Gbps" }
links { from: "n0" to: "a" tier: NIC_LEAF rate: "1Gbps" }
links { from: "a" to: "b" tier: DIRECT rate: "1Gbps" slots: ")" +
                            slots + "\" }\n");
    return findings_;
  };
  const std::string good = "circuit_slots: 4 slot_duration: \"1us\"";
  EXPECT_EQ(findings(good, "0.2"), "");
  EXPECT_THAT(findings(good, "2.0"),
              HasSubstr("links[2].slots: \"2.0\" are no configurations (expected ascending numbers "
                        "below 4, e.g. \"0.3\")"));
  EXPECT_THAT(findings(good, "4"), HasSubstr("\"4\" are no configurations"));
  EXPECT_THAT(findings(good, "1."), HasSubstr("\"1.\" are no configurations"));
  EXPECT_THAT(findings("name: \"x\"", "1"),
              HasSubstr("links[2].slots: has no effect without circuit_slots"));
  EXPECT_THAT(findings("name: \"x\" dark_time: \"1us\"", ""),
              HasSubstr("dark_time: has no effect without circuit_slots"));
  EXPECT_THAT(findings("circuit_slots: 4", "1"), HasSubstr("slot_duration: missing"));
  EXPECT_THAT(findings("circuit_slots: 1 slot_duration: \"1us\"", "0"), HasSubstr("circuit_slots"));
  EXPECT_THAT(findings("circuit_slots: 4 slot_duration: \"1ps\"", "1"),
              HasSubstr("slot_duration: 1 ps is out of range (expected 10 ns to 1s)"));
  EXPECT_THAT(findings(good + " dark_time: \"1us\"", "1"),
              HasSubstr("slot_duration: 1 us leave no time between dark_time and drain_time"));
}

TEST(OpticalTest, EachInvalidParameterHasItsMessage) {
  const auto check = [](auto change) {
    OpticalSpec spec = Spec();
    change(spec);
    return Lines(CheckOptical(spec));
  };
  EXPECT_THAT(check([](auto& s) { s.nics_per_switch = 0; }),
              ElementsAre("nics_per_switch: 0 is out of range (expected 1 to 65536)"));
  EXPECT_THAT(check([](auto& s) { s.nics_per_switch = 16; }),
              ElementsAre("nics_per_switch: 64 NICs fill 4 switches (expected an even number of "
                          "them from 6 to 1024)"));
  EXPECT_THAT(check([](auto& s) { s.nics_per_switch = 13; }),
              ElementsAre("nics_per_switch: 64 NICs fill 5 switches (expected an even number of "
                          "them from 6 to 1024)"));
  EXPECT_THAT(check([](auto& s) { s.circuit_switches = 2; }),
              ElementsAre("circuit_switches: 2 is out of range (expected 3 to 14)"));
  EXPECT_THAT(check([](auto& s) { s.circuit_switches = 15; }),
              ElementsAre("circuit_switches: 15 is out of range (expected 3 to 14)"));
  EXPECT_THAT(check([](auto& s) { s.circuit.rate_bps = 0; }),
              ElementsAre("circuit.rate: 0 bps is out of range (expected 1Mbps to 100Tbps)"));
  EXPECT_THAT(check([](auto& s) { s.slot_ps = -1; }), SizeIs(1));
  EXPECT_THAT(check([](auto& s) { s.slot_ps = 1; }),
              ElementsAre("slot_duration: 1 ps is out of range (expected 10 ns to 1s)"));
  EXPECT_THAT(check([](auto& s) { s.slot_ps = 50 * kPsPerUs; }),
              ElementsAre("slot_duration: 50 us leave no time between dark_time and drain_time "
                          "(expected more than the two together)"));
  EXPECT_THAT(check([](auto& s) { s.dark_ps = 2 * kPsPerSecond; }),
              ElementsAre("dark_time: 2 s is out of range (expected 0s to 1s)"));
  EXPECT_THAT(check([](auto& s) { s.drain_ps = 2 * kPsPerSecond; }),
              ElementsAre("drain_time: 2 s is out of range (expected 0s to 1s)"));
}

}  // namespace
}  // namespace railyard
