// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/faults/fault_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  EXPECT_EQ(
      FindingsBeside(std::string(kDown) + " at: \"5ms\"\nuntil: \"90days\" }"),
      ":4:1: error: faults[0].until: \"90days\" has an unknown unit (expected ps, ns, us, ms, "
      "s, min or h)\n");
}

TEST(FaultLoaderTest, FaultsOfOneLinkMayOverlap) {
  const auto faults =
      FaultsIn(std::string(kDown) + "at: \"1ms\" until: \"5ms\" }\n" + kDown + "at: \"4ms\" }\n");
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].links, faults[1].links);
}

TEST(FaultLoaderTest, APatternIsAllThatFitIt) {
  const auto faults = FaultsIn(
      "faults { kind: LINK_DOWN link: \"server*/nic3--leaf3\" at: \"0s\" }\n"
      "faults { kind: LINK_DOWN device: \"leaf3\" at: \"0s\" }\n"
      "faults { kind: STRAGGLER device: \"server1/gpu*\" speed: 0.5 at: \"0s\" }\n");
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0].links.size(), 4u);  // two servers, two directions
  EXPECT_GT(faults[1].links.size(), faults[0].links.size());
  EXPECT_EQ(faults[2].gpus.size(), 8u);
}

TEST(FaultLoaderTest, APatternFitsEitherEndFirst) {
  const auto faults = FaultsIn(
      "faults { kind: LINK_DOWN link: \"leaf3--server*\" direction: FORWARD at: \"0s\" }\n"
      "faults { kind: LINK_DOWN link: \"server*--leaf3\" direction: BACKWARD at: \"0s\" }\n"
      "faults { kind: LINK_DOWN link: \"server*/nic3\" direction: BACKWARD at: \"0s\" }\n");
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0].links.size(), 2u);
  EXPECT_EQ(faults[0].links, faults[1].links);
  EXPECT_EQ(faults[0].links, faults[2].links);  // not those to PCIe
}

// Parallel cables have their number behind both ends.
TEST(FaultLoaderTest, APatternFitsParallelCablesEitherEndFirst) {
  const LoadedScenario loaded(
      "fabric { leaf_spine { servers { count: 2 } nics_per_leaf: 8 spines: 1 leaf_spine { count: 2 "
      "} } }\n" +
      std::string(kWorkload) + "faults { kind: LINK_DOWN link: \"spine0--leaf*#2\" at: \"0s\" }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_EQ(loaded.scenario->faults.at(0).links.size(), 4u);  // two cables, two directions
}

TEST(FaultLoaderTest, ARateIsBelowThatOfItsCable) {
  const LoadedScenario loaded(
      std::string(kFabric) + kWorkload +
      "faults { kind: DEGRADE link: \"server1/nic3--leaf3\" rate: \"800Gbps\" at: \"0s\" }\n");
  EXPECT_EQ(loaded.scenario, nullptr);
  EXPECT_THAT(loaded.findings, HasSubstr("faults[0].rate: \"800Gbps\" is more than the 400Gbps of "
                                         "its cables (expected less)"));
}

TEST(FaultLoaderTest, ALogHasAllTargets) {
  for (const std::string target :
       {"link: \"leaf3--spine0\"", "device: \"none\"", "domain: \"d\"", "draw { count: 1 }"}) {
    const LoadedScenario loaded(std::string(kFabric) + kWorkload +
                                "faults { kind: LINK_DOWN log: \"none.csv\" " + target + " }\n");
    EXPECT_EQ(loaded.scenario, nullptr);
    EXPECT_THAT(loaded.findings, HasSubstr("stands beside a log, which has all targets"));
  }
}

// Everything that studies break is a name, a pattern or a domain: how many directions each is of
// two servers on a rail-optimized fabric of 8 rails, and on HPN's with two planes.
TEST(FaultLoaderTest, EveryKindOfTargetIsWhatItShouldBe) {
  const auto count = [](const std::string& target) {
    const auto faults = FaultsIn("faults { kind: LINK_DOWN at: \"0s\" " + target + " }\n");
    return faults.empty() ? 0 : faults[0].links.size();
  };
  const LoadedScenario loaded(std::string(kFabric) + kWorkload);
  const FabricGraph& fabric = loaded.scenario->fabric;
  const auto cables_of = [&fabric](const std::string& name) {
    const DeviceId device = fabric.FindDevice(name).value();
    return boost::out_degree(device, fabric.graph());
  };
  EXPECT_EQ(count("link: \"leaf3--spine0\""), 2u);                        // link, transceiver
  EXPECT_EQ(count("link: \"leaf3--spine0\" direction: FORWARD"), 1u);     // one direction
  EXPECT_EQ(count("device: \"server1/nic3\""), 2u);                       // NIC: to the network
  EXPECT_EQ(count("device: \"leaf3\""), 2 * cables_of("leaf3"));          // leaf of a rail
  EXPECT_EQ(count("device: \"spine0\""), 2 * cables_of("spine0"));        // spine
  EXPECT_EQ(count("device: \"server0/nvswitch2\""), 2 * 8u);              // NVSwitch
  EXPECT_EQ(count("link: \"server0/gpu2--server0/nvswitch*\""), 2 * 4u);  // a GPU's NVLinks
  EXPECT_EQ(count("device: \"server0/gpu2\""), 2 * cables_of("server0/gpu2"));  // GPU
  EXPECT_EQ(count("device: \"server*/nic*\" draw { count: 2 }"), 2 * 2u);       // a draw of any
  // A port of two, and a plane.
  const auto on_hpn = [](const std::string& target) {
    const LoadedScenario hpn("fabric { dual_tor { servers { count: 2 } aggs_per_plane: 2 } }\n" +
                             std::string(kWorkload) + "faults { kind: LINK_DOWN at: \"0s\" " +
                             target + " }\n");
    EXPECT_NE(hpn.scenario, nullptr) << hpn.findings;
    return hpn.scenario ? hpn.scenario->faults[0].links.size() : 0;
  };
  EXPECT_EQ(on_hpn("device: \"server1/nic3\""), 2 * 2u);
  EXPECT_EQ(on_hpn("link: \"server1/nic3--segment0/rail3/tor1\""), 2u);
  // Eight ToRs of a plane: two servers' NICs and two aggs each.
  EXPECT_EQ(on_hpn("device: \"segment*/rail*/tor1\""), 2 * 8 * (2 + 2u));
}

TEST(FaultLoaderTest, ADrawChoosesByTheSeedAndTheFaultsName) {
  const std::string draw =
      "kind: LINK_DOWN link: \"server*/nic*--leaf*\" draw { count: 3 } at: \"0s\" ";
  const auto one = FaultsIn("faults { name: \"a\" " + draw + "}\n");
  const auto two =
      FaultsIn("faults { name: \"x\" " + draw + "}\nfaults { name: \"a\" " + draw + "}\n");
  ASSERT_EQ(one.size(), 1u);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(one[0].links.size(), 6u);
  EXPECT_EQ(one[0].links, two[1].links);
  EXPECT_NE(two[0].links, two[1].links);
}

TEST(FaultLoaderTest, ByChanceEveryTargetFailsByItself) {
  const auto faults = FaultsIn(
      "faults { name: \"f\" kind: LINK_DOWN link: \"server*/nic3--leaf3\" "
      "by_chance { mean_between: \"1000h\" mean_repair: \"5min\" } }\n");
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].name, "f[server0/nic3--leaf3]");
  EXPECT_NE(faults[0].seed, faults[1].seed);
}

// 0.057 % and 0.051 % a month (HPN); 220 of 16,384 in 54 days (Llama 3).
TEST(FaultLoaderTest, AClassOfComponentsBringsItsPublishedRates) {
  constexpr double kMonthPs = 365.25 / 12 * 24 * 3600 * 1e12;
  const auto links = FaultsIn(
      "faults { kind: LINK_DOWN link: \"server0/nic3--leaf3\" by_chance { component: NIC_TOR_LINK "
      "} }\n");
  ASSERT_EQ(links.size(), 1u);
  EXPECT_NEAR(links[0].timeline.mean_between_ps, kMonthPs / 0.00057, 1e6 * 1e12);
  EXPECT_EQ(links[0].timeline.mean_repair_ps, 4.0 * 3600 * 1e12);
  const auto switches = FaultsIn(
      "faults { kind: SWITCH_REBOOT device: \"leaf3\" by_chance { component: TOR_SWITCH "
      "mean_repair: \"5min\" } }\n");
  ASSERT_EQ(switches.size(), 1u);
  EXPECT_NEAR(switches[0].timeline.mean_between_ps, kMonthPs / 0.00051, 1e6 * 1e12);
  EXPECT_EQ(switches[0].timeline.mean_repair_ps, 300e12);
  const auto gpus = FaultsIn(
      "faults { kind: STRAGGLER device: \"server1/gpu3\" speed: 0 by_chance { component: GPU } "
      "}\n");
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_NEAR(gpus[0].timeline.mean_between_ps, 16'384.0 * 54 * 24 * 3600 * 1e12 / 220, 1e3 * 1e12);
}

TEST(FaultLoaderTest, AClassOfComponentsIsRefusedOnOthers) {
  EXPECT_EQ(
      FindingsBeside("faults { kind: LINK_DOWN link: \"leaf0--spine0\" by_chance { component: "
                     "NIC_TOR_LINK } }"),
      ":3:60: error: faults[0].by_chance.component: leaf0--spine0 is no NIC_TOR_LINK (expected "
      "cables between NICs and leaves)\n");
  EXPECT_EQ(
      FindingsBeside("faults { kind: SWITCH_REBOOT device: \"spine0\" by_chance { component: "
                     "TOR_SWITCH } }"),
      ":3:59: error: faults[0].by_chance.component: spine0 is no TOR_SWITCH (expected switches "
      "with cables to NICs)\n");
  EXPECT_EQ(
      FindingsBeside("faults { kind: LINK_DOWN link: \"leaf0--spine0\" by_chance { component: "
                     "GPU } }"),
      ":3:60: error: faults[0].by_chance.component: GPU does not fail by LINK_DOWN (expected "
      "STRAGGLER)\n");
  EXPECT_EQ(
      FindingsBeside("faults { kind: LINK_DOWN link: \"server0/nic3\" by_chance { component: "
                     "NIC_TOR_LINK mean_between: \"1h\" mean_repair: \"1s\" } }"),
      ":3:59: error: faults[0].by_chance.component: has no effect beside both times (expected one "
      "of them, or none)\n");
}

TEST(FaultLoaderTest, ADomainIsWhatItNames) {
  const auto faults = FaultsIn(
      "fault_domains { name: \"rack\" links: \"leaf0--spine0\" devices: \"server1/nic*\" }\n"
      "faults { kind: DEGRADE domain: \"rack\" rate: \"100Gbps\" at: \"0s\" }\n");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].links.size(), 2u + 8 * 2);
}

TEST(FaultLoaderTest, WhatAKindDoesNotHaveIsRefused) {
  EXPECT_EQ(FindingsBeside("faults { kind: DELAY link: \"leaf0--spine0\" at: \"0s\" delay: \"1us\" "
                           "speed: 0.5 }"),
            ":3:66: error: faults[0].speed: has no effect on DELAY (expected it with STRAGGLER "
            "only)\n");
  EXPECT_EQ(
      FindingsBeside("faults { kind: STRAGGLER device: \"leaf0\" at: \"0s\" speed: 0.5 }"),
      ":3:26: error: faults[0].device: \"leaf0\" is no GPU (expected e.g. \"server1/gpu3\")\n");
  EXPECT_EQ(
      FindingsBeside("faults { kind: SWITCH_REBOOT device: \"server1/nic3\" at: \"0s\" until: "
                     "\"1s\" }"),
      ":3:30: error: faults[0].device: \"server1/nic3\" is no switch (expected e.g. "
      "\"leaf3\")\n");
  EXPECT_EQ(FindingsBeside("faults { kind: LINK_DOWN link: \"leaf0--spine0\" device: \"leaf0\" at: "
                           "\"0s\" }"),
            ":3:48: error: faults[0].device: stands beside another target (expected one of link, "
            "device and domain)\n");
}

TEST(FaultLoaderTest, AnAnchorIsThereAndDoesNotWaitForItself) {
  EXPECT_EQ(
      FindingsBeside("faults { name: \"a\" kind: LINK_DOWN link: \"leaf0--spine0\" when { "
                     "end_of: \"b\" } }\n"
                     "faults { name: \"b\" kind: LINK_DOWN link: \"leaf1--spine0\" when { "
                     "begin_of: \"a\" } }\n"),
      ":3:58: error: faults[0].when: it waits for itself (expected a fault that does not wait "
      "for it)\n"
      ":4:58: error: faults[1].when: it waits for itself (expected a fault that does not wait "
      "for it)\n");
  EXPECT_EQ(FindingsBeside(std::string(kDown) + "when { number: 7 } }\n"),
            ":3:61: error: faults[0].when.number: the job has 1 of these (expected 1 to 1)\n");
  EXPECT_EQ(FindingsBeside(std::string(kDown) + "when { iteration: 2 } }\n"),
            ":3:61: error: faults[0].when.iteration: the job has 1 (expected 1 to 1)\n");
  EXPECT_EQ(FindingsBeside(std::string(kDown) + "when { number: 1 job: \"a\" } }\n"),
            ":3:71: error: faults[0].when.job: has no effect without iteration (expected it beside "
            "that)\n");
  EXPECT_EQ(
      FindingsBeside(std::string(kDown) + "when { iteration: 1 job: \"a\" } }\n"),
      ":3:74: error: faults[0].when.job: names one of several jobs, and there is one (expected "
      "none)\n");
  EXPECT_EQ(
      FindingsBeside(std::string(kDown) + "when { iteration: 1 number: 1 } }\n"),
      ":3:74: error: faults[0].when.number: stands beside another anchor, or another beside it "
      "(expected one of begin_of, end_of, number and iteration)\n");
  EXPECT_THAT(
      FindingsBeside(std::string(kDown) + "when { } }\n"),
      HasSubstr("faults[0].when.number: missing (expected begin_of, end_of, the number of a "
                "collective or an iteration)"));
}

TEST(FaultLoaderTest, AnIterationIsOfOneOfSeveralJobs) {
  const std::string jobs =
      std::string(kFabric) +
      "jobs { name: \"a\" workload { program { ranks: 2 repeat: 3 collectives { kind: ALL_REDUCE "
      "bytes: \"1MiB\" repeat: 2 } } } }\n"
      "jobs { name: \"b\" workload { program { ranks: 2 repeat: 4 collectives { kind: ALL_REDUCE "
      "bytes: \"1MiB\" } } } }\n" +
      std::string(kDown);
  const LoadedScenario loaded(jobs + "when { iteration: 3 job: \"a\" } }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_THAT(loaded.scenario->faults[0].timeline.anchor.collectives, ::testing::ElementsAre(4));
  const LoadedScenario other(jobs + "when { iteration: 3 job: \"b\" } }\n");
  ASSERT_NE(other.scenario, nullptr) << other.findings;
  EXPECT_THAT(other.scenario->faults[0].timeline.anchor.collectives, ::testing::ElementsAre(8));
  EXPECT_THAT(LoadedScenario(jobs + "when { iteration: 3 } }\n").findings,
              HasSubstr("faults[0].when.job: missing (expected a or b)"));
  EXPECT_THAT(LoadedScenario(jobs + "when { iteration: 3 job: \"c\" } }\n").findings,
              HasSubstr("unknown job \"c\""));
}

TEST(FaultLoaderTest, ARepetitionLeavesTimeForWhatItRepeats) {
  EXPECT_EQ(
      FindingsBeside(std::string(kDown) + "at: \"0s\" until: \"2ms\" training: \"3ms\" repeat { "
                                          "period: \"5ms\" } }\n"),
      ":3:101: error: faults[0].repeat.period: \"5ms\" is too short for a fault of 2 ms, training "
      "of 3 ms (expected more than these)\n");
}

TEST(FaultLoaderTest, NamesDistinguishFaults) {
  EXPECT_EQ(
      FindingsBeside("faults { name: \"a\" kind: LINK_DOWN link: \"leaf0--spine0\" at: \"0s\" }\n"
                     "faults { name: \"a\" kind: LINK_DOWN link: \"leaf1--spine0\" at: \"0s\" }\n"),
      ":4:10: error: faults[1].name: faults[0] is called \"a\" as well\n");
}

TEST(FaultLoaderTest, TooManyFaultsAreNotLookedAt) {
  std::string faults;
  for (int i = 0; i < 100'001; ++i) faults += "faults{}\n";
  EXPECT_EQ(FindingsBeside(faults),
            ":1:1: error: faults: there are 100001 (expected at most 100000)\n");
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
