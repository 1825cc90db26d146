// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/job_iterations.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

// Two ranks; each iteration is an AllReduce, then a grouped exchange in which each sends the other
// as many bytes as `sent` says.
Job Exchanges(const std::vector<std::pair<uint64_t, uint64_t>>& sent, uint64_t all_reduced) {
  Job job;
  job.rank_count = 2;
  job.communicators = {{.name = "world", .ranks = GlobalRanksOf({0, 1})}};
  job.parts = {{.name = "job", .global_ranks = GlobalRanksOf({0, 1})}};
  job.memberships = {{{CommunicatorIndex{0}, RankIndex{0}}},
                     {{CommunicatorIndex{0}, RankIndex{1}}}};
  job.operations.resize(2);
  job.called.resize(2);
  job.iteration_begins.resize(2);
  for (const auto& [from_0, from_1] : sent) {
    for (const bool is_exchange : {false, true}) {
      JobCollective collective;
      collective.rank_count = 2;
      collective.bytes = is_exchange ? from_0 + from_1 : all_reduced;
      if (is_exchange) collective.kind = CollectiveKind::kSend;
      const auto number = static_cast<uint32_t>(job.collectives.size());
      job.collectives.push_back(collective);
      for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}}) {
        JobOperation call{.call = static_cast<uint32_t>(job.called[rank].size())};
        job.called[rank].push_back(CollectiveIndex{number});
        if (is_exchange) {
          call.is_p2p = true;
          call.p2p_first = static_cast<uint32_t>(job.p2p_calls.size());
          call.p2p_count = 2;
          job.p2p_calls.push_back({true, RankIndex{1 - rank}, rank == 0 ? from_0 : from_1});
          job.p2p_calls.push_back({false, RankIndex{1 - rank}, rank == 0 ? from_1 : from_0});
        }
        job.operations[rank].push_back({});
        job.operations[rank].push_back(call);
      }
    }
  }
  return job;
}

TEST(JobIterationsTest, CallsOfOtherSizesAreNoIteration) {
  Job job = Exchanges({{1, 1}, {1, 1}}, 8);
  job.collectives[2].bytes = 16;
  EXPECT_EQ(FindIterations(job, PartIndex{0}).count, 1u);
  job = Exchanges({{1, 1}, {1, 1}, {1, 1}}, 8);
  job.operations[GlobalRank{0}].pop_back();
  EXPECT_EQ(FindIterations(job, PartIndex{0}).count, 1u);
}

// Computation before the first call of an iteration is the one's before it.
TEST(JobIterationsTest, WhereNothingSaysSoTheyBeginWithTheSequenceThatRepeats) {
  const IterationBegins found =
      FindIterations(Exchanges({{6, 2}, {6, 2}, {60, 20}}, 4), PartIndex{0});
  EXPECT_EQ(found.count, 3u);
  EXPECT_THAT(found.of_program[0], ElementsAre(0, 5, 9));
  EXPECT_EQ(FindIterations(Exchanges({{6, 2}}, 4), PartIndex{0}).count, 1u);
}

TEST(JobIterationsTest, WhatTheTraceSaysHolds) {
  Job job = Exchanges({{6, 2}, {6, 2}, {60, 20}}, 4);
  job.iteration_begins = {{8}, {8}};
  const IterationBegins found = FindIterations(job, PartIndex{0});
  EXPECT_EQ(found.count, 2u);
  EXPECT_THAT(found.of_program[1], ElementsAre(0, 8));
}

}  // namespace
}  // namespace railyard
