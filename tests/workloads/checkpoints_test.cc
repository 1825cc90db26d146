// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/programs/checkpoints.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/programs/program_order.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One rank, two streams; an iteration computes for 10, calls on stream 1 what it does not wait for,
// and calls on stream 0.
Job OneRank(uint32_t iterations) {
  Job job;
  job.rank_count = 1;
  job.parts = {{.name = "job", .global_ranks = GlobalRanksOf({0})}};
  job.operations.resize(1);
  job.called.resize(1);
  job.iteration_begins.resize(1);
  for (uint32_t i = 0; i < iterations; ++i) {
    auto& program = job.operations[GlobalRank{0}];
    const auto first = static_cast<uint32_t>(program.size());
    if (i > 0) job.iteration_begins[0].push_back(first);
    program.push_back({.compute_before_ps = 10});
    for (const uint32_t stream : {1u, 0u}) {
      JobCollective collective;
      collective.communicator = CommunicatorIndex{stream};
      const auto number = static_cast<uint32_t>(job.collectives.size());
      program.push_back({.call = number, .communicator = stream, .stream = stream});
      job.called[GlobalRank{0}].push_back(CollectiveIndex{number});
      job.collectives.push_back(collective);
    }
  }
  return job;
}

TEST(CheckpointsTest, EveryStreamStopsUntilAllBeforeIsDoneAndSaved) {
  Job job = OneRank(3);
  const CheckpointPlaces places = AddCheckpoints(FindIterations(job, PartIndex{0}), 2, 100, job);
  // Operations 0 to 5 as before; 6 waits for stream 1, 7 saves.
  ASSERT_THAT(places, ElementsAre(ElementsAre(8)));
  EXPECT_THAT(job.iteration_begins[0], ElementsAre(3, 8));
  EXPECT_EQ(CollectiveAcross(places, job), std::nullopt);
  ProgramOrder order(job);
  std::vector<std::pair<uint32_t, int64_t>> begins;
  const auto begin = [&](uint32_t, uint32_t index, int64_t ps) { begins.emplace_back(index, ps); };
  order.Start(begin);
  for (const auto& [index, end_ps] : {std::pair(1u, 50), std::pair(2u, 20), std::pair(5u, 40)}) {
    order.End(GlobalRank{0}, index, end_ps, begin);
  }
  begins.clear();
  // The last of the second iteration, on stream 1, ends at 300; then it saves and computes.
  order.End(GlobalRank{0}, 4, 300, begin);
  EXPECT_THAT(begins, ElementsAre(std::pair(9u, 400), std::pair(10u, 410)));
}

TEST(CheckpointsTest, ThereIsNoneAfterTheLastIteration) {
  Job job = OneRank(4);
  EXPECT_THAT(AddCheckpoints(FindIterations(job, PartIndex{0}), 4, 100, job),
              ElementsAre(IsEmpty()));
}

TEST(CheckpointsTest, ACollectiveThatIsOnBothSidesIsNamed) {
  Job job = OneRank(3);
  const CheckpointPlaces places = {{3}, {6}};
  job.rank_count = 2;
  job.operations.resize(2);
  job.operations[GlobalRank{1}] = job.operations[GlobalRank{0}];
  job.called.resize(2);
  job.called.SetProgram(GlobalRank{1}, job.called.program_of_rank(GlobalRank{0}));
  EXPECT_EQ(CollectiveAcross(places, job), std::optional<uint32_t>(2));
}

}  // namespace
}  // namespace railyard
