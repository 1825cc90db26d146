// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/job_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/collectives.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kNone = JobOperation::kNone;

// Two ranks that share their operations: in each of two iterations computation and two calls, the
// second after the first, of collectives 0 to 3 on rank 0 and 0, 2, 4, 5 on rank 1.
Job TwoRanks() {
  Job job;
  job.rank_count = 2;
  job.collectives.resize(6);
  job.operations.resize(2);
  job.operations[GlobalRank{0}] = {
      {.compute_before_ps = 1}, {.call = 0}, {.call = 1, .stream = 1, .after = 1},
      {.compute_before_ps = 2}, {.call = 2}, {.call = 3, .stream = 1, .after = 4}};
  job.operations.SetProgram(GlobalRank{1}, job.operations.program_of_rank(GlobalRank{0}));
  job.called.resize(2);
  job.called[GlobalRank{0}] = testing::Collectives({0, 1, 2, 3});
  job.called[GlobalRank{1}] = testing::Collectives({0, 2, 4, 5});
  job.iteration_begins = {{3}, {}};
  return job;
}

TEST(JobCutTest, ProgramsEndWithTheirLastCallThatIsKept) {
  Job job = TwoRanks();
  KeepFirstCollectives(2, job);
  EXPECT_EQ(job.collectives.size(), 2u);
  EXPECT_THAT(job.called[GlobalRank{0}], ElementsAre(0, 1));
  EXPECT_THAT(job.called[GlobalRank{1}], ElementsAre(0));
  ASSERT_EQ(job.operations[GlobalRank{0}].size(), 3u);
  EXPECT_EQ(job.operations[GlobalRank{0}][2].after, 1u);
  ASSERT_EQ(job.operations[GlobalRank{1}].size(), 2u);
  EXPECT_EQ(job.CollectiveOf(GlobalRank{1}, job.operations[GlobalRank{1}][1]), 0u);
  EXPECT_THAT(job.iteration_begins[job.operations.program_of_rank(GlobalRank{0})], IsEmpty());
}

TEST(JobCutTest, WhatFollowsUponWhatIsGoneFollowsUponNothing) {
  Job job = TwoRanks();
  job.called[GlobalRank{1}] = testing::Collectives({4, 0, 1, 2});
  KeepFirstCollectives(3, job);
  // Computation, call 1 on its own, computation, both calls of the second iteration.
  const auto& operations = job.operations[GlobalRank{1}];
  ASSERT_EQ(operations.size(), 5u);
  EXPECT_EQ(operations[1].call, 0u);
  EXPECT_EQ(operations[1].after, kNone);
  EXPECT_EQ(operations[4].after, 3u);
  EXPECT_THAT(job.called[GlobalRank{1}], ElementsAre(0, 1, 2));
  EXPECT_THAT(job.iteration_begins[job.operations.program_of_rank(GlobalRank{1})], ElementsAre(2));
}

TEST(JobCutTest, RanksThatKeepTheSameGoOnSharing) {
  Job job = TwoRanks();
  job.called[GlobalRank{1}] = testing::Collectives({0, 1, 4, 5});
  KeepFirstCollectives(2, job);
  EXPECT_EQ(job.operations.program_of_rank(GlobalRank{1}),
            job.operations.program_of_rank(GlobalRank{0}));
  job = TwoRanks();
  KeepFirstCollectives(6, job);
  EXPECT_EQ(job.operations.program_of_rank(GlobalRank{1}),
            job.operations.program_of_rank(GlobalRank{0}));
  EXPECT_EQ(job.operations[GlobalRank{0}].size(), 6u);
}

}  // namespace
}  // namespace railyard
