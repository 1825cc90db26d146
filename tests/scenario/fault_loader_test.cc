// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/fault_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

std::vector<FaultSpec> FaultsIn(const std::string& lines) {
  const LoadedScenario loaded(std::string(kFabric) + kWorkload + lines);
  EXPECT_NE(loaded.scenario, nullptr) << loaded.findings;
  return loaded.scenario ? loaded.scenario->faults : std::vector<FaultSpec>();
}

constexpr const char* kDown = "faults { kind: LINK_DOWN link: \"server1/nic3--leaf3\" ";

TEST(FaultLoaderTest, AFaultIsReadWithItsTimesAndBothDirections) {
  const auto faults =
      FaultsIn(std::string(kDown) + "at: \"1ms\" until: \"301ms\" name: \"flap\" }");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].name, "flap");
  EXPECT_EQ(faults[0].timeline.at_ps, kPsPerMs);
  EXPECT_EQ(faults[0].timeline.until_ps, 301 * kPsPerMs);
  EXPECT_EQ(faults[0].links.size(), 2u);
  EXPECT_EQ(faults[0].where.line, 3);
}

TEST(FaultLoaderTest, AFaultWithoutEndStaysAndWithoutNameIsCalledByItsPath) {
  const auto faults = FaultsIn(std::string(kDown) + "at: \"0s\" }");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].name, "faults[0]");
  EXPECT_EQ(faults[0].timeline.until_ps, kNeverPs);
}

TEST(FaultLoaderTest, ADirectionIsFromTheDeviceTheScenarioNamesFirst) {
  const auto faults = FaultsIn(
      "faults { kind: LINK_DOWN link: \"server1/nic3--leaf3\" direction: FORWARD at: \"0s\" }\n"
      "faults { kind: LINK_DOWN link: \"leaf3--server1/nic3\" direction: FORWARD at: \"0s\" }\n"
      "faults { kind: LINK_DOWN link: \"leaf4--server1/nic4\" direction: BACKWARD at: \"0s\" }\n");
  ASSERT_EQ(faults.size(), 3u);
  const LoadedScenario loaded(std::string(kFabric) + kWorkload);
  const FabricGraph& fabric = loaded.scenario->fabric;
  const Cable& third = fabric.cables()[*fabric.FindCable("server1/nic3--leaf3")];
  const Cable& fourth = fabric.cables()[*fabric.FindCable("server1/nic4--leaf4")];
  EXPECT_THAT(faults[0].links, ElementsAre(third.forward));
  EXPECT_THAT(faults[1].links, ElementsAre(third.backward));
  EXPECT_THAT(faults[2].links, ElementsAre(fourth.forward));
}

TEST(FaultLoaderTest, ANicStandsForItsFirstCable) {
  const auto faults = FaultsIn(
      "faults { kind: LINK_DOWN link: \"server1/nic3--leaf3\" direction: FORWARD at: \"0s\" }\n"
      "faults { kind: LINK_DOWN link: \"server1/nic3\" direction: BACKWARD at: \"0s\" }\n");
  ASSERT_EQ(faults.size(), 2u);
  ASSERT_EQ(faults[0].links.size(), 1u);
  ASSERT_EQ(faults[1].links.size(), 1u);
  EXPECT_EQ(faults[1].links[0], faults[0].links[0] + 1);
}

TEST(FaultLoaderTest, WhatAFaultLacksIsNamedAllAtOnce) {
  EXPECT_EQ(
      FindingsBeside("faults { }"),
      ":3:1: error: faults[0].kind: missing (expected LINK_DOWN, SWITCH_REBOOT, DEGRADE, LOSS, "
      "DELAY, PAUSE_STORM, BACKGROUND_LOAD or STRAGGLER)\n"
      ":3:1: error: faults[0].at: missing (expected a duration with its unit, e.g. "
      "\"300ms\")\n"
      ":3:1: error: faults[0].link: missing (expected a cable's name, e.g. "
      "\"server1/nic3--leaf3\", or device or domain)\n");
}

TEST(FaultLoaderTest, ALinkThatDoesNotExistIsGuessedAt) {
  EXPECT_EQ(FindingsBeside("faults { kind: LINK_DOWN at: \"0s\" link: \"server1/nic3-leaf3\" }"),
            ":3:35: error: faults[0].link: unknown link \"server1/nic3-leaf3\" (did you mean "
            "\"server1/nic3--leaf3\"?)\n");
  EXPECT_EQ(FindingsBeside("faults { kind: LINK_DOWN at: \"0s\" link: \"no-such-link\" }"),
            ":3:35: error: faults[0].link: unknown link \"no-such-link\" (expected the two devices "
            "of a cable, e.g. \"server1/nic3--leaf3\")\n");
}

TEST(FaultLoaderTest, AFaultEndsAfterItBegins) {
  EXPECT_EQ(
      FindingsBeside(std::string(kDown) + "\nat: \"5ms\"\nuntil: \"2ms\" }"),
      ":5:1: error: faults[0].until: ends at \"2ms\", before it begins at \"5ms\" (expected a "
      "later time, or none for a fault that stays)\n");
  EXPECT_EQ(FindingsBeside(std::string(kDown) + "\nat: \"5ms\"\nuntil: \"5000us\" }"),
            ":5:1: error: faults[0].until: ends at \"5000us\", just when it begins at \"5ms\" "
            "(expected a later time, or none for a fault that stays)\n");
  EXPECT_EQ(FindingsBeside(std::string(kDown) + "\nat: \"9000000s\" }"),
            ":4:1: error: faults[0].at: \"9000000s\" is out of range (expected at most 90 days)\n");
}

TEST(FaultLoaderTest, FaultsOfOneLinkMayOverlap) {
  const auto faults =
      FaultsIn(std::string(kDown) + "at: \"1ms\" until: \"5ms\" }\n" + kDown + "at: \"4ms\" }\n");
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].links, faults[1].links);
}

TEST(FaultLoaderTest, NamesTellFaultsApart) {
  EXPECT_EQ(
      FindingsBeside("faults { name: \"a\" kind: LINK_DOWN link: \"leaf0--spine0\" at: \"0s\" }\n"
                     "faults { name: \"a\" kind: LINK_DOWN link: \"leaf1--spine0\" at: \"0s\" }\n"),
      ":4:10: error: faults[1].name: faults[0] is called \"a\" as well\n");
}

TEST(FaultLoaderTest, TooManyFaultsAreNotLookedAt) {
  std::string faults;
  for (int i = 0; i < 100'001; ++i) faults += "faults{}\n";
  EXPECT_EQ(FindingsBeside(faults),
            ": error: faults: there are 100001 (expected at most 100000)\n");
}

// 128 servers have at least 128 x 8 x 6 cables: a million comparisons are up with 163 unknown
// links.
TEST(FaultLoaderTest, OfManyUnknownLinksTheFirstAreGuessedAt) {
  std::string text = "fabric { rail_optimized { servers: 128 } }\n" + std::string(kWorkload);
  for (int i = 0; i < 200; ++i) {
    text += "faults { kind: LINK_DOWN at: \"1ms\" link: \"leaf0-spine0\" }\n";
  }
  const std::string findings = LoadedScenario(text).findings;
  EXPECT_THAT(findings, ::testing::HasSubstr(
                            ":3:36: error: faults[0].link: unknown link \"leaf0-spine0\" (did you "
                            "mean "));
  EXPECT_THAT(findings,
              ::testing::EndsWith(":202:36: error: faults[199].link: unknown link \"leaf0-spine0\" "
                                  "(expected the two devices of a cable, e.g. "
                                  "\"server1/nic3--leaf3\")\n"));
}

}  // namespace
}  // namespace railyard
