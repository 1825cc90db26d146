// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/scenario_loader.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"
#include "workloads/collectives/replayable.h"

namespace railyard {
namespace {

TEST(ScenarioLoaderTest, AScenarioOfFabricAndWorkloadIsComplete) {
  const LoadedScenario loaded(std::string(kFabric) + kWorkload);
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  const Scenario& scenario = *loaded.scenario;
  EXPECT_EQ(scenario.name, "s");  // the file's
  EXPECT_EQ(scenario.seed, 1u);
  EXPECT_EQ(scenario.fabric.gpus().size(), 16u);
  EXPECT_EQ(scenario.job.rank_count, 16u);
  EXPECT_EQ(scenario.job.collectives.size(), 1u);
  EXPECT_EQ(StatedChoice(scenario.job.collectives[0]),
            (ReplayChoice{Algorithm::kRing, Protocol::kSimple}));
  EXPECT_TRUE(scenario.import_reports.empty());
  EXPECT_TRUE(scenario.faults.empty());
}

TEST(ScenarioLoaderTest, SetsAreAppliedBeforeAnythingIsChecked) {
  const LoadedScenario loaded(std::string(kFabric) + kWorkload + "faults { }\n",
                              {"faults=[]", "seed=7", "name=other"});
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_EQ(loaded.scenario->seed, 7u);
  EXPECT_EQ(loaded.scenario->name, "other");
}

TEST(ScenarioLoaderTest, AnEmptyScenarioSaysWhatItNeeds) {
  EXPECT_EQ(LoadedScenario("").findings,
            ":1:1: error: fabric: missing (expected e.g. fabric { preset: "
            "\"h100-4x8-rail-optimized\" })\n"
            ":1:1: error: workload: missing (expected nccl_log, trace, program or plan in it; or "
            "jobs)\n");
}

TEST(ScenarioLoaderTest, ANameThatIsNoFileNameIsRefused) {
  for (const char* name : {"../up", "a/b", ".hidden", "-flag", "", "two words"}) {
    EXPECT_THAT(FindingsBeside(std::string("name: \"") + name + "\"\n"),
                ::testing::StartsWith(std::string(":3:1: error: name: \"") + name +
                                      "\" cannot name a result (expected up to 128 letters"));
  }
}

TEST(ScenarioLoaderTest, MistakesInAllPartsAreFoundAtOnce) {
  const LoadedScenario loaded(
      "fabric { preset: \"h100-4x8-rail-optimised\" }\n"
      "workload { nccl_log { files: \"no_such_file.log\" } }\n"
      "nccl { version: \"two\" IB_TIMEOUT: 32 }\n"
      "gpu { launch_latency: \"4 potatoes\" }\n"
      "nic { mtu_bytes: 1500 }\n"
      "routing { detection_delay: \"1001s\" }\n"
      "faults { kind: LINK_DOWN link: \"x\" at: \"5ms\" until: \"2ms\" }\n"
      "faults { }\n");
  EXPECT_EQ(
      loaded.findings,
      ":1:10: error: fabric.preset: unknown preset \"h100-4x8-rail-optimised\" (did you mean "
      "\"h100-4x8-rail-optimized\"?)\n"
      ":2:23: error: workload.nccl_log.files[0]: \"" +
          loaded.file.directory() +
          "/no_such_file.log\": there is no such file\n"
          ":3:8: error: nccl.version: \"two\" is not a version of NCCL (expected e.g. "
          "\"2.27.5\")\n"
          ":3:23: error: nccl.IB_TIMEOUT: 32 is out of range (expected 1 to 31)\n"
          ":4:7: error: gpu.launch_latency: \"4 potatoes\" has an unknown unit "
          "(expected ps, ns, us, ms, s, min or h)\n"
          ":5:7: error: nic.mtu_bytes: 1500 is not an MTU of InfiniBand (expected 256, 512, "
          "1024, 2048 or 4096)\n"
          ":6:11: error: routing.detection_delay: \"1001s\" is out of range (expected 0 s to 1000 "
          "s)\n"
          ":7:46: error: faults[0].until: ends at \"2ms\", before it begins at \"5ms\" "
          "(expected a later time, or none for a fault that stays)\n"
          ":8:1: error: faults[1].kind: missing (expected LINK_DOWN, SWITCH_REBOOT, DEGRADE, LOSS, "
          "DELAY, PAUSE_STORM, BACKGROUND_LOAD or STRAGGLER)\n"
          ":8:1: error: faults[1].at: missing (expected a duration with its unit, e.g. "
          "\"300ms\")\n"
          ":8:1: error: faults[1].link: missing (expected a cable's name, e.g. "
          "\"server1/nic3--leaf3\", or device or domain)\n");
}

TEST(ScenarioLoaderTest, MistakesOfTextAndOfMeaningAreFoundAtOnce) {
  EXPECT_EQ(
      LoadedScenario("fabric { rail_optimized { servers: 2 } }\n"
                     "workload { program { collectives { kind: ALL_REDUCE bytes: \"6\" } } }\n"
                     "sede: 1\n"
                     "nccl { IB_TIMEOUT: 32 IB_RETRY_CNT: many }\n"
                     "nic { mtu_bytes: 1500 widow: \"1MiB\" }\n"
                     "faults { kind: LINK_UP link: \"x\" at: \"5ms\" until: \"2ms\" }\n")
          .findings,
      ":2:53: error: workload.program.collectives[0].bytes: 6 bytes are not a whole number of "
      "float32 elements (expected a multiple of 4)\n"
      ":3:1: error: sede: unknown field \"sede\" (did you mean \"seed\"?)\n"
      ":4:8: error: nccl.IB_TIMEOUT: 32 is out of range (expected 1 to 31)\n"
      ":4:37: error: nccl.IB_RETRY_CNT: \"many\" is not a whole number, 0 to 4294967295\n"
      ":5:7: error: nic.mtu_bytes: 1500 is not an MTU of InfiniBand (expected 256, 512, 1024, 2048 "
      "or 4096)\n"
      ":5:23: error: nic.widow: unknown field \"widow\" (did you mean \"window\"?)\n"
      ":6:16: error: faults[0].kind: unknown \"LINK_UP\" (expected LINK_DOWN, "
      "SWITCH_REBOOT, DEGRADE, LOSS, DELAY, PAUSE_STORM, BACKGROUND_LOAD or STRAGGLER)\n"
      ":6:24: error: faults[0].link: unknown link \"x\" (expected the two devices of a cable, e.g. "
      "\"server1/nic3--leaf3\")\n"
      ":6:44: error: faults[0].until: ends at \"2ms\", before it begins at \"5ms\" (expected a "
      "later time, or none for a fault that stays)\n");
}

// Each of these texts has one mistake, and what depends on it is not looked at.
TEST(ScenarioLoaderTest, AMistakeInTheTextIsReportedOnceAndNothingThatFollowsFromIt) {
  const auto findings = [](const std::string& text) {
    const LoadedScenario loaded(text);
    return loaded.findings;
  };
  const auto only = [&](const std::string& text, const std::string& what) {
    const std::string found = findings(text);
    EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 1) << found;
    EXPECT_THAT(found, ::testing::HasSubstr(what));
  };
  const std::string fabric = kFabric;
  const std::string workload = kWorkload;
  const std::string down = "faults { kind: LINK_DOWN link: \"leaf0--spine0\" at: \"1ms\" }\n";
  // An unknown name may have meant the missing field.
  only("fabrik { rail_optimized { servers: 2 } }\n" + workload, "unknown field \"fabrik\"");
  only("fabric { perset: \"h100-1x8\" }\n" + workload, "unknown field \"perset\"");
  only("fabric { rail_optimized { srevers: 2 } }\n" + workload, "unknown field \"srevers\"");
  only(fabric + "workload { progarm { } }\n", "unknown field \"progarm\"");
  only(fabric + "workload { program { collectives { knd: REDUCE bytes: \"4K\" } } }\n",
       "unknown field \"knd\"");
  only(fabric + workload + "faults { kind: LINK_DOWN link: \"leaf0--spine0\" att: \"1ms\" }\n",
       "unknown field \"att\"");
  // Links and ranks are not held against a fabric that is not what was meant.
  only("fabric { rail_optimized { servers: 2 gpus_per_sever: 16 } }\n" + workload +
           "faults { kind: LINK_DOWN link: \"server0/nic12--leaf12\" at: \"1ms\" }\n",
       "unknown field \"gpus_per_sever\"");
  only("fabric { rail_optimized { servers: two } }\n" + workload + down, "\"two\" is not a whole");
  only("fabric { preset: \"h100-1x8\" rail_optimized { servers: 2 } }\n" + workload + down,
       "contradicts \"preset\"");
  // Faults of one link follow one another, unless nobody knows when they end or which way they are.
  only(fabric + workload + down +
           "faults { kind: LINK_DOWN link: \"leaf0--spine0\" at: \"0s\" until: 1 }\n",
       "\"1\" is not a text in quotes");
  only(fabric + workload +
           "faults { kind: LINK_DOWN link: \"leaf0--spine0\" at: \"1ms\" direction: FORWARD }\n"
           "faults { kind: LINK_DOWN link: \"leaf0--spine0\" at: \"1ms\" direction: BCKWARD }\n",
       "unknown \"BCKWARD\"");
  // A size is judged by its kind, a window by its MTU, a variable by its version.
  only(fabric + "workload { program { collectives { kind: ALL_REDUC bytes: \"6\" root: 1 } } }\n",
       "unknown \"ALL_REDUC\"");
  only(fabric + workload + "nic { mtu_bytes: small window: \"1KiB\" }\n", "\"small\" is not");
  only(fabric + workload + "nccl { verison: \"2.4.8\" PXN_DISABLE: true }\n",
       "unknown field \"verison\"");
}

TEST(ScenarioLoaderTest, AMistakeInASetHidesNothingElse) {
  EXPECT_EQ(LoadedScenario(std::string(kFabric) + kWorkload + "nic { mtu_bytes: 1500 }\n",
                           {"nccl.IB_TIMEOUT=x", "routing.detection_delay=1h"})
                .findings,
            "--set nccl.IB_TIMEOUT=x: error: nccl.IB_TIMEOUT: \"x\" is not a whole number, 0 to "
            "4294967295\n"
            ":3:7: error: nic.mtu_bytes: 1500 is not an MTU of InfiniBand (expected 256, 512, "
            "1024, 2048 or 4096)\n"
            "--set routing.detection_delay=1h: error: routing.detection_delay: \"1h\" is out of "
            "range (expected 0 s to 1000 s)\n");
}

TEST(ScenarioLoaderTest, AFieldThatASetRemovesHasItsDefault) {
  const LoadedScenario loaded(std::string(kFabric) + kWorkload + "nic { mtu_bytes: 1500 }\n",
                              {"nic.mtu_bytes="});
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_EQ(loaded.scenario->stack.nic.mtu_bytes, NicSettings().mtu_bytes);
}

}  // namespace
}  // namespace railyard
