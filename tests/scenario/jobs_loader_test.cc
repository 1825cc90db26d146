// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/load/jobs_loader.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/scenario/loaded_scenario.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

std::string Job(const std::string& fields, const std::string& ranks = "ranks: 4") {
  return "jobs { " + fields + " workload { program { " + ranks +
         " collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } } }\n";
}

// The fabric has 2 servers with 8 GPUs each: GPU 8 is server1/gpu0.
LoadedScenario Load(const std::string& jobs) { return LoadedScenario(kFabric + jobs); }

std::vector<uint32_t> GpusOfPart(const LoadedScenario& loaded, size_t part) {
  const std::vector<GlobalRank>& ranks = loaded.scenario->job.parts[part].global_ranks;
  return {ranks.begin(), ranks.end()};
}

TEST(JobsLoaderTest, PoliciesTakeWhatIsFreeInTheOrderOfTheJobs) {
  const auto loaded = Load(Job("name: \"a\"") + Job("placement { policy: STRIPED }") +
                           Job("placement { policy: BY_RAIL } start: \"3us\"", "ranks: 3") +
                           Job("placement { gpus: \"server1/gpu7\" gpus: \"server0/gpu1\" }", ""));
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  // The last job's are taken first, for it names them.
  EXPECT_THAT(GpusOfPart(loaded, 0), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(GpusOfPart(loaded, 1), ElementsAre(5, 8, 6, 9));
  // Rail 2 of server 1, 3 of server 1, 4 of server 1.
  EXPECT_THAT(GpusOfPart(loaded, 2), ElementsAre(10, 11, 12));
  EXPECT_THAT(GpusOfPart(loaded, 3), ElementsAre(15, 1));
  const railyard::Job& job = loaded.scenario->job;
  EXPECT_EQ(job.parts[0].name, "a");
  EXPECT_EQ(job.parts[1].name, "job1");
  EXPECT_EQ(job.parts[2].start_ps, 3 * kPsPerUs);
  EXPECT_EQ(job.communicators[3].name, "job3/world");
}

TEST(JobsLoaderTest, ByRailTakesWholeRailsAndCountsRanksByServer) {
  const auto loaded = Load(Job("placement { policy: BY_RAIL }"));
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_THAT(GpusOfPart(loaded, 0), ElementsAre(0, 1, 8, 9));
}

TEST(JobsLoaderTest, RandomPlacementIsDrawnByItsSeed) {
  const auto gpus = [](const std::string& seed) {
    return GpusOfPart(Load(Job("placement { policy: RANDOM " + seed + " }")), 0);
  };
  EXPECT_EQ(gpus("seed: 5"), gpus("seed: 5"));
  EXPECT_NE(gpus("seed: 5"), gpus("seed: 6"));
  EXPECT_EQ(gpus(""), gpus("seed: 1"));  // the scenario's
}

TEST(JobsLoaderTest, EachJobIsReplayedAsItSays) {
  const auto loaded = Load(Job("") +
                           "jobs { workload { algorithm: TREE rank_skew_max: \"2us\" program { "
                           "ranks: 4 collectives { kind: ALL_REDUCE bytes: \"1MiB\" } } } }\n");
  ASSERT_NE(loaded.scenario, nullptr) << loaded.findings;
  EXPECT_EQ(loaded.scenario->job.collectives[0].forced_algorithm, Algorithm::kUnstated);
  EXPECT_EQ(loaded.scenario->job.collectives[1].forced_algorithm, Algorithm::kTree);
  EXPECT_EQ(loaded.scenario->job.parts[0].rank_skew_max_ps, 0);
  EXPECT_EQ(loaded.scenario->job.parts[1].rank_skew_max_ps, 2 * kPsPerUs);
}

TEST(JobsLoaderTest, OverlapsNameTheNearestFreeGpu) {
  EXPECT_EQ(
      Load(Job("name: \"a\" placement { gpus: \"server0/gpu2\" gpus: \"server0/gpu3\" }", "") +
           Job("placement { gpus: \"server1/gpu0\" gpus: \"server0/gpu3\" }", ""))
          .findings,
      ":3:41: error: jobs[1].placement.gpus[1]: server0/gpu3 is on job \"a\" already "
      "(expected a free GPU; the nearest is server0/gpu4)\n");
  EXPECT_EQ(Load(Job("name: \"a\" placement { gpus: \"server0/*\" }", "") +
                 Job("placement { gpus: \"*/gpu7\" }", ""))
                .findings,
            ":3:20: error: jobs[1].placement.gpus[0]: server0/gpu7 is on job \"a\" already "
            "(expected a free GPU; the nearest is server1/gpu0)\n");
  EXPECT_EQ(Load(Job("name: \"a\" placement { gpus: \"*\" }", "") +
                 Job("placement { gpus: \"server1/*\" }", ""))
                .findings,
            ":3:20: error: jobs[1].placement.gpus[0]: server1/gpu0 is on job \"a\" already, and 7 "
            "more are taken (expected a free GPU; there is none)\n");
}

TEST(JobsLoaderTest, JobsThatDoNotFitSayWhatWould) {
  EXPECT_EQ(
      Load(Job("", "ranks: 12") + Job("placement { policy: STRIPED }", "ranks: 6")).findings,
      ":3:8: error: jobs[1].placement: the job has 6 ranks, and 4 of the fabric's 16 GPUs are "
      "free (expected a job of at most 4 ranks, or a fabric of at least 18 GPUs)\n");
  EXPECT_EQ(Load(Job("placement { gpus: \"server0/*\" }", "ranks: 6")).findings,
            ":2:20: error: jobs[0].placement.gpus[0]: names 8 GPUs, the job has 6 ranks (expected "
            "one for each)\n");
  EXPECT_EQ(Load(Job("", "")).findings,
            ":2:20: error: jobs[0].workload.program.ranks: missing (expected on how many GPUs this "
            "job runs)\n");
  EXPECT_EQ(
      Load(Job("", "ranks: 17")).findings,
      ":2:30: error: jobs[0].workload.program.ranks: 17 is out of range (expected 1 to 16)\n");
}

TEST(JobsLoaderTest, ContradictionsAreRefused) {
  EXPECT_EQ(
      Load(Job("name: \"x\"") + Job("name: \"x\"") + Job("name: \"a/b\"")).findings,
      ":3:8: error: jobs[1].name: another job is called \"x\" as well\n"
      ":4:8: error: jobs[2].name: \"a/b\" cannot name a job (expected one letter or more, and "
      "no \"/\")\n");
  EXPECT_EQ(Load(Job("placement { policy: PACKED gpus: \"server0/gpu*\" }", "")).findings,
            ":2:20: error: jobs[0].placement.policy: stands beside gpus (expected one of them)\n");
  EXPECT_EQ(
      Load(Job("placement { seed: 2 }")).findings,
      ":2:20: error: jobs[0].placement.seed: has no effect without policy: RANDOM (expected it "
      "with that, or no seed)\n");
  EXPECT_EQ(Load(Job("placement { gpus: \"server9/gpu0\" }")).findings,
            ":2:20: error: jobs[0].placement.gpus[0]: \"server9/gpu0\" fits no GPU (expected e.g. "
            "\"server1/gpu3\" or \"server1/gpu*\")\n");
  EXPECT_EQ(Load(Job("start: \"25h\"")).findings,
            ":2:8: error: jobs[0].start: \"25h\" is out of range (expected at most 86400 s)\n");
  EXPECT_EQ(Load("jobs { name: \"a\" }\n").findings,
            ":2:1: error: jobs[0].workload: missing (expected nccl_log, trace, program or plan in "
            "it)\n");
  EXPECT_EQ(Load(kWorkload + Job("")).findings,
            ":3:1: error: jobs[0]: stands beside workload (expected one of them: a job among jobs "
            "has its workload in it)\n");
  EXPECT_EQ(Load(Job("restart {}") + "restart { requeue: \"1s\" }\n").findings,
            ":3:1: error: restart: has no effect, for every job has its own (expected it in some "
            "jobs alone, or here alone)\n");
}

TEST(JobsLoaderTest, WhatCannotBeReplayedIsFoundInItsJob) {
  EXPECT_EQ(Load(Job("") +
                 "jobs { workload { algorithm: NVLS protocol: LL program { ranks: 4 collectives { "
                 "kind: ALL_REDUCE bytes: \"1MiB\" } } } }\n")
                .findings.substr(0, 62),
            ":3:19: error: jobs[1].workload.algorithm: 1 AllReduce cannot r");
}

}  // namespace
}  // namespace railyard
