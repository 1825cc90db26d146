// SPDX-License-Identifier: GPL-2.0-only
// A machine whose costs are known is measured by a formula; the fit has to find them again.
#include "simulator/measure/calibration.h"

#include <cmath>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/measure/nccl_tests_rows.h"
#include "simulator/measure/platform_calibration.h"
#include "topologies/platforms/platform.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

const double kThirdUp = std::round(std::exp2(1.0 / 3) * 1e4) / 1e4;
const double kThirdDown = std::round(std::exp2(-1.0 / 3) * 1e4) / 1e4;

// 10 us of launch, and 20 GB/s; steps take no time.
std::vector<double> TimesOf(const std::vector<MeasuredTime>& rows, const CalibratedScales& scales) {
  std::vector<double> times_us;
  for (const MeasuredTime& row : rows) {
    times_us.push_back(10 * scales[0] + static_cast<double>(row.bytes) / (20e3 * scales[2]));
  }
  return times_us;
}

std::vector<MeasuredTime> MeasuredWith(const CalibratedScales& scales) {
  std::vector<MeasuredTime> rows;
  for (const uint64_t bytes : {1'000u, 100'000u, 1'000'000u, 100'000'000u}) {
    rows.push_back({.bytes = bytes, .time_us = 1});
  }
  const std::vector<double> times_us = TimesOf(rows, scales);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].time_us = times_us[i];
  return rows;
}

TEST(CalibrateTest, KnownCostsAreFoundAgainAndWhatHasNoEffectStaysAsItIs) {
  const CalibratedScales truth = {kThirdUp, 1, kThirdDown};
  const auto rows = MeasuredWith(truth);
  const CalibrationResult result =
      Calibrate(rows, [&](const CalibratedScales& scales) { return TimesOf(rows, scales); });
  EXPECT_EQ(result.scales, truth);
  // 10 us for 12.6, and 20 GB/s for 15.9.
  EXPECT_NEAR(result.errors_before.front(), (10 + 0.05) / (12.599 + 0.063) - 1, 1e-3);
  EXPECT_NEAR(result.errors_before.back(), kThirdDown - 1, 1e-3);
  for (const auto& errors : {result.errors_after, result.errors_left_out}) {
    for (const double error : errors) EXPECT_NEAR(error, 0, 1e-9);
  }
}

// One row is 20 times slower than the others say: it moves its own error only.
TEST(CalibrateTest, ARowLeftOutIsJudgedByTheOthers) {
  auto rows = MeasuredWith({1, 1, 1});
  rows[1].time_us *= 20;
  const CalibrationResult result =
      Calibrate(rows, [&](const CalibratedScales& scales) { return TimesOf(rows, scales); });
  EXPECT_NEAR(result.errors_left_out[1], 1.0 / 20 - 1, 1e-9);
}

// Tests run at the same time.
std::string OwnPath(const std::string& name) {
  return ::testing::TempDir() + "/" +
         ::testing::UnitTest::GetInstance()->current_test_info()->name() + "_" + name;
}

class NcclTestsReaderTest : public ::testing::Test {
 protected:
  std::vector<NcclTestsRow> Read(const std::string& text) {
    const std::string path = OwnPath("nccl_tests.txt");
    std::ofstream(path) << text;
    Diagnostics diagnostics;
    auto rows = ReadNcclTests(path, diagnostics);
    findings_ = diagnostics.ToString();
    if (const size_t at = findings_.find(path); at != std::string::npos) {
      findings_.erase(at, path.size());
    }
    return rows;
  }
  std::string findings_;
};

TEST_F(NcclTestsReaderTest, RowsAreTakenAndWhatIsBetweenThemIsNot) {
  const auto rows = Read(
      "# nccl-tests version 2.17.1\n"
      "host:1:1 [0] NCCL INFO Using network IB with thirteen words in one line of log here\n"
      "     1048576        262144     float     sum      -1    29.25   35.85   62.74      0    "
      "29.10 "
      "  36.03   63.06      0\n"
      "     2097152        524288     float     sum      -1    1.2e2   35.85   62.74    N/A    "
      "29.10 "
      "  36.03   63.06    N/A\n"
      "# Avg bus bandwidth    : 62.9\n");
  EXPECT_EQ(findings_, "");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].bytes, 1'048'576u);
  EXPECT_DOUBLE_EQ(rows[0].time_us, 29.25);
  EXPECT_DOUBLE_EQ(rows[1].time_us, 120);
}

TEST_F(NcclTestsReaderTest, RowsKnowTheirTestAndRanks) {
  const std::string head =
      "# Collective test starting: all_gather_perf\n# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n"
      "#  Rank  0 Group  0 Pid      1 on h device  0 [0x07] NVIDIA H100\n"
      "#  Rank  1 Group  0 Pid      2 on h device  1 [0x07] NVIDIA H100\n";
  const std::string row = " 1024 128 float none -1 29.25 0.04 0.02 0 12.50 0.08 0.04 0\n";
  const auto rows = Read(head + row);
  ASSERT_EQ(rows.size(), 1u) << findings_;
  EXPECT_EQ(rows[0].table.test, NcclTest::kAllGather);
  EXPECT_EQ(rows[0].table.ranks, 2u);
  Read(head + "# size count type redop root cputime algbw busbw #wrong cputime algbw busbw\n" +
       row);
  EXPECT_EQ(findings_,
            ":6:1: error: time: is the CPU's, of the launch alone (expected a table without -C "
            "1)\n");
}

TEST_F(NcclTestsReaderTest, TimesThatAreNoneAndFilesWithoutRowsAreErrors) {
  Read("\n 8 2 float sum -1 0.00 1 1 0 1 1 1 0\n");
  EXPECT_EQ(findings_,
            ":2:1: error: time: \"0.00\" is not a time (expected microseconds, 0.001 to 1e12)\n");
  Read("# nothing\n");
  EXPECT_EQ(
      findings_,
      ":1:1: error: no row of an nccl-tests table (expected lines that begin with a size and a "
      "count and have 13 columns)\n");
  Diagnostics diagnostics;
  ReadNcclTests("/none/at/all", diagnostics);
  EXPECT_THAT(diagnostics.ToString(),
              HasSubstr("there is no such file (expected what an nccl-tests "
                        "program printed)"));
}

class CalibratedPlatformTest : public ::testing::Test {
 protected:
  std::optional<Platform> Load(const std::string& text) {
    const std::string path = OwnPath("calibrated.textproto");
    std::ofstream(path) << text;
    Diagnostics diagnostics;
    auto platform = LoadPlatform(path, diagnostics);
    findings_ = diagnostics.ToString();
    return platform;
  }
  std::string findings_;
};

TEST_F(CalibratedPlatformTest, WhatIsWrittenIsReadAgain) {
  CalibrationResult result;
  result.scales = {1.2599, 0.5, 2};
  result.errors_before = {-0.5, 0.25};
  result.errors_after = {0.01, 0.02};
  result.errors_left_out = {0.03, 0.04};
  const std::string block = CalibrationBlock(result, "a \"table\"");
  EXPECT_THAT(block, HasSubstr("median_abs_error_before: 0.5\n"));
  EXPECT_THAT(block, HasSubstr("median_abs_error_after: 0.02\n"));
  EXPECT_THAT(block, HasSubstr("median_abs_error_left_out: 0.04\n"));
  const auto platform = Load(block);
  ASSERT_TRUE(platform.has_value()) << findings_;
  EXPECT_EQ(platform->calibration, (PlatformCalibration{.launch_latency_scale = 1.2599,
                                                        .step_latency_scale = 0.5,
                                                        .channel_rate_scale = 2,
                                                        .source = "a \"table\""}));
}

TEST_F(CalibratedPlatformTest, ScalesThatAreNoneAreErrors) {
  Load("calibration { launch_latency_scale: 11 step_latency_scale: 1 }\n");
  for (const char* finding :
       {":1:15: error: calibration.launch_latency_scale: 11 is out of range (expected 0.1 to 10)\n",
        ":1:1: error: calibration.channel_rate_scale: missing (expected a factor)\n",
        ":1:1: error: calibration.source: missing (expected where the number is from)\n"}) {
    EXPECT_THAT(findings_, HasSubstr(finding));
  }
}

}  // namespace
}  // namespace railyard
