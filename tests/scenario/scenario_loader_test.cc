// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/scenario_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"

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
  EXPECT_FALSE(scenario.forced_replay.has_value());
  EXPECT_FALSE(scenario.import_report.has_value());
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
            ": error: fabric: missing (expected e.g. fabric { preset: "
            "\"h100-4x8-rail-optimized\" })\n"
            ": error: workload: missing (expected nccl_log, trace or program in it)\n");
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
          ":4:7: error: gpu.launch_latency: \"4 potatoes\" is not a duration (expected a "
          "duration with its unit, e.g. \"300ms\")\n"
          ":5:7: error: nic.mtu_bytes: 1500 is not an MTU of InfiniBand (expected 256, 512, "
          "1024, 2048 or 4096)\n"
          ":6:11: error: routing.detection_delay: \"1001s\" is out of range (expected 0s to 1000 "
          "s)\n"
          ":7:46: error: faults[0].until: ends at \"2ms\", before it begins at \"5ms\" "
          "(expected a later time, or none for a fault that stays)\n"
          ":8:1: error: faults[1].kind: missing (expected LINK_DOWN)\n"
          ":8:1: error: faults[1].at: missing (expected a duration with its unit, e.g. "
          "\"300ms\")\n"
          ":8:1: error: faults[1].link: missing (expected a cable's name, e.g. "
          "\"server1/nic3--leaf3\")\n");
}

}  // namespace
}  // namespace railyard
