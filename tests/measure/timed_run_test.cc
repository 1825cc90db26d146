// SPDX-License-Identifier: GPL-2.0-only
// Each timed run says how it ended.
#include "simulator/measure/timed_run.h"

#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "railyard/scenario_builder.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

ScenarioBuilder TwoServers() {
  ScenarioBuilder builder("two");
  builder.Fabric(scenario::RailOptimized{.servers = 2, .gpus_per_server = 1})
      .Add(scenario::Collective{.size = DataSize::MiB(1)});
  return builder;
}

ScenarioBuilder CutAtOnce() {
  return TwoServers().Add(scenario::Fault{.link = "server1/nic0--leaf0", .at = Duration::Us(0)});
}

ScenarioMaker MakerOf(const ScenarioBuilder& builder) {
  return [builder](Diagnostics& findings) { return builder.Build(findings); };
}

std::vector<TimedRun> RunAll(const std::vector<ScenarioMaker>& makers) {
  return RunTimed(makers, [](size_t, const TimedRun&) {});
}

TEST(TimedRunTest, EachSaysHowItEnded) {
  const std::vector<TimedRun> runs =
      RunAll({MakerOf(TwoServers()),
              MakerOf(CutAtOnce().Set("nccl.IB_TIMEOUT", 1).Set("nccl.IB_RETRY_CNT", 1)),
              MakerOf(CutAtOnce().Set("watchdog.no_progress", "1ms")),
              MakerOf(TwoServers().Set("seed", -1))});
  EXPECT_EQ(runs[0].end, TimedEnd::kDone) << runs[0].error;
  EXPECT_GT(runs[0].time_ps, 0);
  EXPECT_GT(runs[0].packet_hops, 0u);
  EXPECT_THAT(runs[0].replayed, HasSubstr("/"));
  EXPECT_EQ(runs[1].end, TimedEnd::kJobAborted);
  EXPECT_THAT(runs[1].error, HasSubstr("IBV_WC_RETRY_EXC_ERR(12)"));
  EXPECT_EQ(runs[2].end, TimedEnd::kStalled) << runs[2].error;
  EXPECT_EQ(runs[3].end, TimedEnd::kInputWrong);
  EXPECT_THAT(runs[3].error, HasSubstr("seed"));
}

// Findings of any length come whole: a pipe would be full of these.
TEST(TimedRunTest, ALongAccountOfMistakesComesWhole) {
  const std::string end(200'000, 'x');
  const std::vector<TimedRun> runs = RunAll({[&end](Diagnostics& findings) {
    findings.Error({.file = "long"}, "", end + "!");
    return std::shared_ptr<const Scenario>();
  }});
  EXPECT_EQ(runs[0].end, TimedEnd::kInputWrong);
  EXPECT_THAT(runs[0].error, HasSubstr(end + "!"));
}

TEST(TimedRunTest, AProcessThatIsKilledIsAnErrorOfItsRunAlone) {
  const std::vector<TimedRun> runs = RunAll({[](Diagnostics&) -> std::shared_ptr<const Scenario> {
                                               std::raise(SIGKILL);
                                               return nullptr;
                                             },
                                             MakerOf(TwoServers())});
  EXPECT_EQ(runs[0].end, TimedEnd::kEnvironmentFailed);
  EXPECT_THAT(runs[0].error, HasSubstr("killed by SIGKILL"));
  EXPECT_EQ(runs[1].end, TimedEnd::kDone) << runs[1].error;
}

}  // namespace
}  // namespace railyard
