// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/programs/program_order.h"

#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

using Begins = std::vector<std::pair<uint32_t, int64_t>>;  // operation, when it may begin

// One rank.
Job JobOf(std::vector<JobOperation> operations, int64_t start_ps) {
  Job job;
  job.rank_count = 1;
  job.parts = {{.name = "job", .global_ranks = GlobalRanksOf({0}), .start_ps = start_ps}};
  job.operations.resize(1);
  job.operations[GlobalRank{0}] = std::move(operations);
  return job;
}

JobOperation Compute(uint32_t stream, int64_t ps, uint32_t after = JobOperation::kNone) {
  return {.stream = stream, .after = after, .compute_before_ps = ps};
}

// On a communicator of its own.
JobOperation Collective(uint32_t number, uint32_t stream, int64_t gap_ps,
                        uint32_t after = JobOperation::kNone) {
  return {.call = number,
          .communicator = number,
          .stream = stream,
          .after = after,
          .compute_before_ps = gap_ps};
}

class OrderOfOneRank {
 public:
  explicit OrderOfOneRank(std::vector<JobOperation> operations, int64_t start_ps = 0)
      : job_(JobOf(std::move(operations), start_ps)), order(job_) {}

  Begins Start() {
    Begins begins;
    order.Start([&](uint32_t, uint32_t index, int64_t ps) { begins.emplace_back(index, ps); });
    return begins;
  }
  Begins RestartAt(uint32_t first, int64_t now_ps) {
    Begins begins;
    order.RestartAt(PartIndex{0}, {first}, now_ps,
                    [&](uint32_t, uint32_t index, int64_t ps) { begins.emplace_back(index, ps); });
    return begins;
  }
  Begins End(uint32_t index, int64_t now_ps) {
    Begins begins;
    order.End(GlobalRank{0}, index, now_ps,
              [&](uint32_t, uint32_t next, int64_t ps) { begins.emplace_back(next, ps); });
    return begins;
  }

 private:
  const Job job_;

 public:
  ProgramOrder order;
};

TEST(ProgramOrderTest, ComputationKeepsItsStreamBusy) {
  OrderOfOneRank rank({Compute(0, 10), Compute(0, 20), Collective(0, 0, 5)});
  EXPECT_THAT(rank.Start(), ElementsAre(std::pair(2u, 35)));
  EXPECT_EQ(rank.order.computed_until_ps(PartIndex{0}), 30);
}

// Its programs begin when the job does, the gaps of later streams' first operations too.
TEST(ProgramOrderTest, AJobThatStartsLaterDoesAllOfItLater) {
  OrderOfOneRank rank({Compute(0, 10), Collective(0, 0, 5), Collective(0, 1, 40)}, 100);
  EXPECT_THAT(rank.Start(), ElementsAre(std::pair(1u, 115)));
  EXPECT_EQ(rank.order.computed_until_ps(PartIndex{0}), 110);
  EXPECT_THAT(rank.End(1, 120), ElementsAre(std::pair(2u, 140)));
}

// A bucket of gradients begins when its part of the backward pass ends, while the rest goes on.
TEST(ProgramOrderTest, AnOperationWaitsForTheOneItNames) {
  OrderOfOneRank rank({Compute(0, 10), Collective(0, 1, 0, 0), Compute(0, 20),
                       Collective(1, 1, 0, 2), Compute(0, 7, 3)});
  EXPECT_THAT(rank.Start(), ElementsAre(std::pair(1u, 10)));
  // The second bucket's gradients are there at 30, the stream is free at 50.
  EXPECT_THAT(rank.End(1, 50), ElementsAre(std::pair(3u, 50)));
  EXPECT_THAT(rank.End(3, 60), ElementsAre());
  EXPECT_EQ(rank.order.computed_until_ps(PartIndex{0}), 67);
}

TEST(ProgramOrderTest, TheGapBeginsWhenTheLastOfAllIsDone) {
  OrderOfOneRank rank({Collective(0, 0, 0), Collective(1, 1, 0), Collective(2, 0, 5, 1)});
  EXPECT_EQ(rank.Start().size(), 2u);
  EXPECT_THAT(rank.End(1, 40), ElementsAre());
  EXPECT_THAT(rank.End(0, 10), ElementsAre(std::pair(2u, 45)));
}

// All before the place is done, on all streams; what waits for nothing else begins with its gap.
TEST(ProgramOrderTest, AProgramBeginsAgainInItsMiddle) {
  const std::vector<JobOperation> program = {
      Compute(0, 10),           // 0
      Collective(0, 0, 5),      // 1
      Collective(1, 1, 3, 0),   // 2: on its own stream, after the first computation
      Compute(0, 20),           // 3
      Collective(2, 0, 5),      // 4
      Collective(3, 1, 7, 3),   // 5: after the second computation
      Collective(4, 2, 11),     // 6: the first of a third stream
      Collective(5, 0, 2, 5)};  // 7: after 4 and 5
  OrderOfOneRank rank(program);
  EXPECT_EQ(rank.Start().size(), 3u);
  EXPECT_THAT(rank.RestartAt(3, 1000),
              UnorderedElementsAre(std::pair(5u, 1027), std::pair(4u, 1025), std::pair(6u, 1011)));
  EXPECT_THAT(rank.End(4, 1100), ElementsAre());
  EXPECT_THAT(rank.End(5, 1200), ElementsAre(std::pair(7u, 1202)));
  // Half of what it waits for is before the place.
  EXPECT_THAT(rank.RestartAt(5, 2000), ElementsAre(std::pair(5u, 2007), std::pair(6u, 2011)));
  EXPECT_THAT(rank.End(5, 2100), ElementsAre(std::pair(7u, 2102)));
  EXPECT_THAT(rank.RestartAt(0, 3000),
              UnorderedElementsAre(std::pair(2u, 3013), std::pair(1u, 3015), std::pair(6u, 3011)));
}

TEST(ProgramOrderTest, ATrialIsTakenBack) {
  OrderOfOneRank rank({Collective(0, 0, 0), Collective(1, 1, 0), Compute(0, 5, 1)});
  rank.Start();
  rank.order.BeginTrial();
  rank.End(0, 10);
  rank.End(1, 40);
  EXPECT_EQ(rank.order.computed_until_ps(PartIndex{0}), 45);
  rank.order.EndTrial(false);
  EXPECT_EQ(rank.order.computed_until_ps(PartIndex{0}), 0);
  rank.End(0, 20);
  rank.End(1, 30);
  EXPECT_EQ(rank.order.computed_until_ps(PartIndex{0}), 35);
}

constexpr auto kIsCollective = [](const JobOperation& operation) {
  return !operation.is_compute();
};

bool CollectivesAreInTurn(const std::vector<JobOperation>& program) {
  return AreInTurn(program, kIsCollective);
}

TEST(ProgramOrderTest, OperationsOfAStreamAreInTurn) {
  EXPECT_TRUE(CollectivesAreInTurn({Collective(0, 0, 5), Compute(1, 7), Collective(1, 0, 5)}));
  EXPECT_FALSE(CollectivesAreInTurn({Collective(0, 0, 5), Collective(1, 1, 5)}));
}

TEST(ProgramOrderTest, OperationsOfSeveralStreamsAreInTurnWhereTheyWaitForOneAnother) {
  EXPECT_TRUE(CollectivesAreInTurn({Collective(0, 0, 5), Collective(0, 1, 5)}));
  EXPECT_TRUE(CollectivesAreInTurn({Collective(0, 0, 5), Collective(1, 1, 5, 0)}));
  // The third waits for the first alone.
  EXPECT_FALSE(
      CollectivesAreInTurn({Collective(0, 0, 5), Collective(1, 1, 5, 0), Collective(2, 2, 5, 0)}));
}

TEST(ProgramOrderTest, TheLeastGapIsWhatTheStreamComputesUntilTheNext) {
  const std::vector<JobOperation> program = {Collective(0, 0, 1), Compute(0, 20), Compute(1, 300),
                                             Collective(1, 0, 4), Collective(1, 1, 50)};
  const std::optional<NextOperation> on_stream = NextOf(program, 0, kIsCollective);
  ASSERT_TRUE(on_stream.has_value());
  EXPECT_EQ(on_stream->index, 3u);
  EXPECT_EQ(on_stream->gap_ps, 24);
  const std::optional<NextOperation> on_other = NextOf(program, 3, kIsCollective);
  ASSERT_TRUE(on_other.has_value());
  EXPECT_EQ(on_other->index, 4u);
  EXPECT_EQ(on_other->gap_ps, 0);
  EXPECT_FALSE(NextOf(program, 4, kIsCollective).has_value());
}

}  // namespace
}  // namespace railyard
