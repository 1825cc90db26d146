// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/job_parts.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/collectives.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Two ranks that share a program: computation, then an AllReduce.
Job TwoRanks(const char* name, const std::vector<uint32_t>& global_ranks) {
  Job job;
  job.rank_count = 2;
  job.communicators = {{.name = "world", .ranks = GlobalRanksOf({0, 1})}};
  job.collectives.resize(1);
  job.collectives[0].rank_count = 2;
  job.source_files = {std::string(name) + ".log"};
  job.operations.resize(2);
  job.operations[GlobalRank{0}] = {{.compute_before_ps = 5}, {.call = 0}};
  job.operations.SetProgram(GlobalRank{1}, job.operations.program_of_rank(GlobalRank{0}));
  job.called.resize(2);
  job.called[GlobalRank{0}] = testing::Collectives({0});
  job.called.SetProgram(GlobalRank{1}, job.called.program_of_rank(GlobalRank{0}));
  job.iteration_begins = {{1}, {}};
  job.memberships = {{{CommunicatorIndex{0}, RankIndex{0}}},
                     {{CommunicatorIndex{0}, RankIndex{1}}}};
  job.parts = {{.name = name, .global_ranks = GlobalRanksOf(global_ranks)}};
  return job;
}

Job Joined() { return JoinJobs({TwoRanks("a", {3, 1}), TwoRanks("b", {0, 4})}); }

TEST(JobPartsTest, JoinedJobsAreWhereTheyArePut) {
  const Job job = Joined();
  EXPECT_EQ(job.rank_count, 5u);
  ASSERT_EQ(job.communicators.size(), 2u);
  EXPECT_EQ(job.communicators[0].name, "a/world");
  EXPECT_THAT(job.communicators[0].ranks, ElementsAre(3, 1));
  EXPECT_THAT(job.communicators[1].ranks, ElementsAre(0, 4));
  EXPECT_EQ(job.collectives[1].communicator, 1u);
  EXPECT_EQ(job.source_files[job.collectives[1].source_file], "b.log");
  EXPECT_EQ(job.CollectiveOf(GlobalRank{4}, job.operations[GlobalRank{4}][1]), 1u);
  EXPECT_TRUE(job.operations[GlobalRank{4}][0].is_compute());
  EXPECT_EQ(job.operations.program_of_rank(GlobalRank{0}),
            job.operations.program_of_rank(GlobalRank{4}));
  EXPECT_THAT(job.operations[GlobalRank{2}], IsEmpty());
  EXPECT_THAT(job.memberships[1], ElementsAre(Pair(0u, 1u)));
  EXPECT_THAT(job.memberships[4], ElementsAre(Pair(1u, 1u)));
  EXPECT_EQ(job.CommunicatorRank(CommunicatorIndex{1}, GlobalRank{4}), 1u);
  for (const GlobalRank rank : {GlobalRank{3}, GlobalRank{1}, GlobalRank{0}, GlobalRank{4}}) {
    EXPECT_THAT(job.iteration_begins[job.operations.program_of_rank(rank)], ElementsAre(1));
  }
}

TEST(JobPartsTest, ARankThatMovesTakesAllWithIt) {
  Job job = TwoRanks("a", {GlobalRank{0}, 1});
  GrowTo(4, job);
  const uint32_t program = job.operations.program_of_rank(GlobalRank{1});
  const uint32_t called = job.called.program_of_rank(GlobalRank{1});
  SwapRanks(GlobalRank{1}, GlobalRank{3}, job);
  EXPECT_EQ(job.operations.program_of_rank(GlobalRank{3}), program);
  EXPECT_EQ(job.called.program_of_rank(GlobalRank{3}), called);
  EXPECT_THAT(job.operations[GlobalRank{1}], IsEmpty());
  EXPECT_THAT(job.communicators[0].ranks, ElementsAre(0, 3));
  EXPECT_THAT(job.parts[0].global_ranks, ElementsAre(0, 3));
  EXPECT_EQ(job.CommunicatorRank(CommunicatorIndex{0}, GlobalRank{3}), 1u);
  EXPECT_THAT(job.memberships[1], IsEmpty());
  SwapRanks(GlobalRank{3}, GlobalRank{0}, job);  // both have a program
  EXPECT_THAT(job.communicators[0].ranks, ElementsAre(3, 0));
  EXPECT_EQ(job.CommunicatorRank(CommunicatorIndex{0}, GlobalRank{0}), 1u);
}

TEST(JobPartsTest, CommunicatorsAndRanksKnowTheirPart) {
  const Job job = Joined();
  EXPECT_EQ(job.PartOf(CommunicatorIndex{0}), 0u);
  EXPECT_EQ(job.PartOf(CommunicatorIndex{1}), 1u);
  EXPECT_EQ(job.parts[1].first_collective, 1u);
  EXPECT_THAT(job.PartsOfRanks(), ElementsAre(1, 0, PartIndex::kNone, 0, 1));
}

TEST(JobPartsTest, AloneTheOthersHaveNothingToDoAndNumbersStay) {
  const Job alone = AloneOf(Joined(), PartIndex{1});
  EXPECT_THAT(alone.operations[GlobalRank{3}], IsEmpty());
  EXPECT_THAT(alone.operations[GlobalRank{1}], IsEmpty());
  EXPECT_EQ(alone.operations[GlobalRank{0}].size(), 2u);
  EXPECT_EQ(alone.CollectiveOf(GlobalRank{4}, alone.operations[GlobalRank{4}][1]), 1u);
  EXPECT_EQ(alone.collectives.size(), 2u);
}

}  // namespace
}  // namespace railyard
