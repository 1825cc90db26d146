// SPDX-License-Identifier: GPL-2.0-only
// `railyard topo compare`: each row is the run that `railyard run` makes on that fabric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/run/program.h"

namespace railyard::testing {
namespace {

using ::testing::HasSubstr;

class TopoCompareTest : public ProgramTest {
 protected:
  const std::string job_ = Program("ALL_REDUCE", "4MiB");
};

TEST_F(TopoCompareTest, RowsAreTheRunsThemselves) {
  const std::string two = scratch_.Write("two.textproto", "rail_optimized { servers: 2 }");
  const std::string slow =
      scratch_.Write("narrow.textproto", "rail_optimized { servers: 2 nic_rate: \"200Gbps\" }");
  const std::string scenario = scratch_.Write("job.textproto", RailOptimized(2) + job_);
  const std::string json = scratch_.Path("table.json");
  const ProgramExit exit =
      Railyard({"topo", "compare", two, slow, "--workload", scenario, "--json", json});
  ASSERT_EQ(exit.status, 0) << exit.errors;
  EXPECT_THAT(exit.output, HasSubstr("COMPLETED"));

  rapidjson::Document rows;
  rows.Parse(ReadText(json).c_str());
  ASSERT_TRUE(rows.IsArray());
  ASSERT_EQ(rows.Size(), 2u);
  const EndedRun alone = RunText(RailOptimized(2) + job_);
  EXPECT_EQ(rows[0]["simulated_time_ps"].GetInt64(), alone.Integer("simulated_time_ps"));
  EXPECT_EQ(rows[0]["gpus"].GetInt(), 16);
  EXPECT_STREQ(rows[0]["status"].GetString(), "COMPLETED");
  // Half the rate: half the bisection, and a longer AllReduce.
  EXPECT_EQ(rows[0]["bisection_bytes_per_s"].GetInt64(),
            2 * rows[1]["bisection_bytes_per_s"].GetInt64());
  EXPECT_GT(rows[1]["simulated_time_ps"].GetInt64(), rows[0]["simulated_time_ps"].GetInt64());
}

TEST_F(TopoCompareTest, FieldsOfTheScenarioMayBeSet) {
  const std::string scenario = scratch_.Write("job.textproto", RailOptimized(2) + job_);
  const std::string json = scratch_.Path("table.json");
  const std::string set = "workload.program.collectives[0].bytes=1MiB";
  const ProgramExit exit = Railyard({"topo", "compare", "h100-2x8-rail-optimized", scenario,
                                     "--workload", scenario, "--set", set, "--json", json});
  ASSERT_EQ(exit.status, 0) << exit.errors;
  rapidjson::Document rows;
  rows.Parse(ReadText(json).c_str());
  const EndedRun alone = RunFile(scenario, {"--set", set});
  EXPECT_EQ(rows[1]["simulated_time_ps"].GetInt64(), alone.Integer("simulated_time_ps"));
  const ProgramExit refused = Railyard({"topo", "compare", "h100-1x8", "h100-1x8", "--workload",
                                        scenario, "--set", "fabric.preset=h100-1x8"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.errors,
              HasSubstr("--set fabric.preset=h100-1x8: error: fabric: has no effect"));
}

TEST_F(TopoCompareTest, MistakesInAnyFabricOrTheScenarioAreFound) {
  const std::string good = scratch_.Write("good.textproto", "rail_optimized { servers: 2 }");
  const std::string bad = scratch_.Write("bad.textproto", "rail_optimized { servers: 0 }");
  const std::string scenario = scratch_.Write("job.textproto", RailOptimized(2) + job_);
  const ProgramExit exit = Railyard({"topo", "compare", good, bad, "--workload", scenario});
  EXPECT_EQ(exit.status, 2);
  EXPECT_THAT(exit.errors, HasSubstr("bad.textproto:1:"));

  const std::string wrong = scratch_.Write("wrong.textproto", RailOptimized(2) + "potatoes: 1\n");
  const ProgramExit wrong_job = Railyard({"topo", "compare", good, good, "--workload", wrong});
  EXPECT_EQ(wrong_job.status, 2);
  EXPECT_THAT(wrong_job.errors, HasSubstr("unknown field \"potatoes\""));

  // A cable that only one of the fabrics has.
  const std::string fault = scratch_.Write(
      "fault.textproto", RailOptimized(2) + job_ + LinkDown("server1/nic3--leaf3", "1us", "2us"));
  const std::string one = scratch_.Write("one.textproto", "rail_optimized { servers: 1 }");
  const ProgramExit not_there = Railyard({"topo", "compare", good, one, "--workload", fault});
  EXPECT_THAT(not_there.errors, HasSubstr(": note: is the fabric on which this is wrong"));

  const std::string nothing = scratch_.Path("nothing.textproto");
  const std::string json = scratch_.Path("table.json");
  const ProgramExit no_job =
      Railyard({"topo", "compare", good, good, "--workload", nothing, "--json", json});
  EXPECT_EQ(no_job.status, 2);
  EXPECT_EQ(no_job.errors, nothing + ": error: there is no such file\n");
  EXPECT_FALSE(std::filesystem::exists(json));
}

}  // namespace
}  // namespace railyard::testing
