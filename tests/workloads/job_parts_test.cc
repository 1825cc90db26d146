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
Job TwoRanks(const char* name, std::vector<uint32_t> global_ranks) {
  Job job;
  job.rank_count = 2;
  job.communicators = {{.name = "world", .ranks = {0, 1}}};
  job.collectives.resize(1);
  job.collectives[0].rank_count = 2;
  job.source_files = {std::string(name) + ".log"};
  job.operations.resize(2);
  job.operations[0] = {{.compute_before_ps = 5}, {.call = 0}};
  job.operations.SetProgram(1, job.operations.program_of_rank(0));
  job.called.resize(2);
  job.called[0] = testing::Collectives({0});
  job.called.SetProgram(1, job.called.program_of_rank(0));
  job.iteration_begins = {{1}, {}};
  job.memberships = {{{CommunicatorIndex{0}, RankIndex{0}}},
                     {{CommunicatorIndex{0}, RankIndex{1}}}};
  job.parts = {{.name = name, .global_ranks = std::move(global_ranks)}};
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
  EXPECT_EQ(job.CollectiveOf(4, job.operations[4][1]), 1u);
  EXPECT_TRUE(job.operations[4][0].is_compute());
  EXPECT_EQ(job.operations.program_of_rank(0), job.operations.program_of_rank(4));
  EXPECT_THAT(job.operations[2], IsEmpty());
  EXPECT_THAT(job.memberships[1], ElementsAre(Pair(0u, 1u)));
  EXPECT_THAT(job.memberships[4], ElementsAre(Pair(1u, 1u)));
  EXPECT_EQ(job.CommunicatorRank(CommunicatorIndex{1}, 4), 1u);
  for (const uint32_t rank : {3u, 1u, 0u, 4u}) {
    EXPECT_THAT(job.iteration_begins[job.operations.program_of_rank(rank)], ElementsAre(1));
  }
}

TEST(JobPartsTest, ARankThatMovesTakesAllWithIt) {
  Job job = TwoRanks("a", {0, 1});
  GrowTo(4, job);
  const uint32_t program = job.operations.program_of_rank(1);
  const uint32_t called = job.called.program_of_rank(1);
  SwapRanks(1, 3, job);
  EXPECT_EQ(job.operations.program_of_rank(3), program);
  EXPECT_EQ(job.called.program_of_rank(3), called);
  EXPECT_THAT(job.operations[1], IsEmpty());
  EXPECT_THAT(job.communicators[0].ranks, ElementsAre(0, 3));
  EXPECT_THAT(job.parts[0].global_ranks, ElementsAre(0, 3));
  EXPECT_EQ(job.CommunicatorRank(CommunicatorIndex{0}, 3), 1u);
  EXPECT_THAT(job.memberships[1], IsEmpty());
  SwapRanks(3, 0, job);  // both have a program
  EXPECT_THAT(job.communicators[0].ranks, ElementsAre(3, 0));
  EXPECT_EQ(job.CommunicatorRank(CommunicatorIndex{0}, 0), 1u);
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
  EXPECT_THAT(alone.operations[3], IsEmpty());
  EXPECT_THAT(alone.operations[1], IsEmpty());
  EXPECT_EQ(alone.operations[0].size(), 2u);
  EXPECT_EQ(alone.CollectiveOf(4, alone.operations[4][1]), 1u);
  EXPECT_EQ(alone.collectives.size(), 2u);
}

}  // namespace
}  // namespace railyard
