// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/models/calibration_loader.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

// A DGX H100 that is calibrated.
std::string CalibratedFile(const std::string& scale) {
  // Tests run at the same time.
  const std::string directory = ::testing::TempDir() + "/calibrated_" +
                                ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(directory);
  std::string path = directory + "/mine" + scale + ".textproto";
  std::ifstream shipped(RAILYARD_SOURCE_DIR "/topologies/platforms/dgx-h100.textproto");
  std::ofstream(path) << shipped.rdbuf() << "calibration { launch_latency_scale: " << scale
                      << " step_latency_scale: 2 channel_rate_scale: 0.5 source: \"my table\" }\n";
  return path;
}

std::string Servers(const std::string& platform) {
  return "mixed_servers { count: 1 platform: \"" + platform + "\" } ";
}

std::string Fabric(const std::string& servers) {
  return "fabric { rail_optimized { " + servers + "} }\n";
}

TEST(CalibrationLoaderTest, AScenarioHasItsPlatformsCostsAndSaysSo) {
  const std::string file = CalibratedFile("1.5");
  const LoadedScenario loaded(Fabric(Servers(file) + Servers(file)) + kWorkload);
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_EQ(loaded.scenario->gpu.launch_latency_scale, 1.5);
  EXPECT_EQ(loaded.scenario->gpu.step_latency_scale, 2);
  EXPECT_EQ(loaded.scenario->gpu.channel_rate_scale, 0.5);
  EXPECT_THAT(loaded.scenario->notes,
              ::testing::Contains(HasSubstr("platform mine1.5 is calibrated to my table: launch "
                                            "latencies x 1.5, step latencies x 2, channel rates x "
                                            "0.5 of NCCL's table")));
}

TEST(CalibrationLoaderTest, OneCalibrationHoldsForAllGpus) {
  const std::string file = CalibratedFile("1.5");
  for (const std::string& other : {std::string("dgx-h100"), CalibratedFile("1.25")}) {
    EXPECT_THAT(
        LoadedScenario(Fabric(Servers(file) + Servers(other)) + kWorkload).findings,
        HasSubstr("fabric.rail_optimized.mixed_servers[1].platform: is calibrated otherwise "
                  "than the first servers' (expected one calibration: it holds for all "
                  "GPUs)"));
  }
  EXPECT_THAT(LoadedScenario(Fabric(Servers(file)) + kWorkload + "gpu { step_latency_scale: 1 }\n")
                  .findings,
              HasSubstr("gpu.step_latency_scale: stands beside the calibration of platform "
                        "\"mine1.5\" (expected one of the two)"));
}

TEST(CalibrationLoaderTest, AScaleOfAScenariosOwnIsInRange) {
  EXPECT_EQ(FindingsBeside("gpu { launch_latency_scale: 0.01 }\n"),
            ":3:7: error: gpu.launch_latency_scale: 0.01 is out of range (expected 0.1 to 10)\n");
}

}  // namespace
}  // namespace railyard
