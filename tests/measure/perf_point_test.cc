// SPDX-License-Identifier: GPL-2.0-only
// Tests the outcomes of points whose run does not complete.
#include "simulator/measure/perf_point.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::HasSubstr;

class PerfPointTest : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& path : paths_) std::filesystem::remove(path);
  }
  PerfPoint PointOf(const std::string& rest) {
    const std::string path = ::testing::TempDir() + "point" + std::to_string(getpid()) + "_" +
                             std::to_string(paths_.size()) + ".textproto";
    std::ofstream(path) << "fabric { rail_optimized { servers: 2 gpus_per_server: 1 } }\n"
                           "workload { program { collectives { kind: ALL_REDUCE bytes: \"1MiB\" } "
                           "} }\n"
                        << rest;
    paths_.push_back(path);
    PerfPoint point;
    point.file = path;
    return point;
  }

  std::vector<std::string> paths_;
};

TEST_F(PerfPointTest, EachSaysHowItEnded) {
  const std::vector<PerfOutcome> outcomes =
      RunPoints({PointOf(""),
                 PointOf("nccl { IB_TIMEOUT: 1 IB_RETRY_CNT: 1 }\n"
                         "faults { kind: LINK_DOWN link: \"server1/nic0--leaf0\" at: \"0us\" }\n"),
                 PointOf("watchdog { no_progress: \"1ms\" }\n"
                         "faults { kind: LINK_DOWN link: \"server1/nic0--leaf0\" at: \"0us\" }\n"),
                 PointOf("seed: -1\n")},
                [](size_t, const PerfOutcome&) {});
  EXPECT_EQ(outcomes[0].end, PerfEnd::kDone) << outcomes[0].error;
  EXPECT_GT(outcomes[0].time_ps, 0);
  EXPECT_EQ(outcomes[1].end, PerfEnd::kJobAborted);
  EXPECT_THAT(outcomes[1].error, HasSubstr("IBV_WC_RETRY_EXC_ERR(12)"));
  EXPECT_EQ(outcomes[2].end, PerfEnd::kStalled) << outcomes[2].error;
  EXPECT_EQ(outcomes[3].end, PerfEnd::kInputWrong);
  EXPECT_THAT(outcomes[3].error, HasSubstr("seed"));
}

}  // namespace
}  // namespace railyard
