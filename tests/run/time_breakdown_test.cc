// SPDX-License-Identifier: GPL-2.0-only
// One rank's time in small jobs is split. Computation lasts far longer than the calls unless a test
// says otherwise.
#include "simulator/run/time_breakdown.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/replay_fixture.h"

namespace railyard::testing {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kLong = 10 * kPsPerMs;

class TimeBreakdownTest : public ReplayFixture {
 protected:
  static constexpr uint64_t kFloats = 1 << 16;

  // Runs the two programs, and keeps the calls of `rank`.
  std::vector<TimeBreakdown> PartsOf(uint32_t rank, const std::vector<TraceOperation>& first,
                                     const std::vector<TraceOperation>& second,
                                     const char* communicator = "data") {
    Programs programs = Idle();
    programs[0] = first;
    programs[1] = second;
    Job job = JobOf({{0, 1}}, programs);
    job.communicators[0].name = communicator;
    Build(std::move(job), {.cache = ReplayCacheMode::kOff, .kept_rank = GlobalRank{rank}});
    Run();
    return BreakdownOf(job_, *replay_, GlobalRank{rank});
  }
  static TraceOperation Compute(int64_t duration_ps, uint32_t after = 0) {
    return {.kind = CollectiveKind::kCompute, .compute_before_ps = duration_ps, .after = after};
  }
  // Returns computation of length 0 that waits for the rank's first operation.
  static TraceOperation WaitForFirst() { return Compute(0, 1); }
  static TraceOperation OnStream(TraceOperation call, uint32_t stream) {
    call.stream = stream;
    return call;
  }
  int64_t EndPs(uint32_t call) const { return replay_->ledger().calls_kept()[call].end_ps; }
};

// Rank 1 computes twice as long as rank 0, which waits for it.
TEST_F(TimeBreakdownTest, ACallInItsOwnStreamIsWaitingAndThenCommunication) {
  const auto parts =
      PartsOf(0, {AllReduce(kFloats, kLong)}, {AllReduce(kFloats, 2 * kLong)}, "tensor 0");
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].compute_ps, kLong);
  EXPECT_EQ(parts[0].wait_ps, kLong);
  EXPECT_EQ(parts[0].tensor_ps, EndPs(0) - 2 * kLong);
  EXPECT_GT(parts[0].tensor_ps, 0);
  EXPECT_EQ(parts[0].total_ps(), EndPs(0));
  EXPECT_EQ(parts[0].overlap_ps, 0);
}

// As DLRM exchanges the rows of its tables beside the computation of its bottom.
TEST_F(TimeBreakdownTest, AnAwaitedAllToAllIsNoTransferOfAPipeline) {
  const auto program = [](uint32_t peer) {
    std::vector<TraceOperation> operations;
    for (const CollectiveKind kind : {CollectiveKind::kSend, CollectiveKind::kRecv}) {
      operations.push_back({.kind = kind,
                            .count = kFloats,
                            .datatype = Datatype::kFloat32,
                            .peer = peer,
                            .stream = 1,
                            .group = 1,
                            .all_to_all = 1});
    }
    operations.push_back(WaitForFirst());
    return operations;
  };
  const auto parts = PartsOf(0, program(1), program(0));
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_GT(parts[0].data_ps, 0);
  EXPECT_EQ(parts[0].data_ps + parts[0].wait_ps, EndPs(0));
  EXPECT_EQ(parts[0].pipeline_ps, 0);
  EXPECT_EQ(parts[0].bubble_ps, 0);
}

TEST_F(TimeBreakdownTest, TheRankThatComesLastDoesNotWait) {
  const auto parts = PartsOf(1, {AllReduce(kFloats, kLong)}, {AllReduce(kFloats, 2 * kLong)});
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].compute_ps, 2 * kLong);
  EXPECT_EQ(parts[0].wait_ps, 0);
  EXPECT_EQ(parts[0].total_ps(), EndPs(0));
}

TEST_F(TimeBreakdownTest, CallsOfExpertsCountByThemselves) {
  const std::vector<TraceOperation> program = {AllReduce(kFloats, kLong)};
  const auto parts = PartsOf(0, program, program, "expert 0");
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].expert_ps, EndPs(0) - kLong);
  EXPECT_EQ(parts[0].tensor_ps, 0);
}

// The call runs beside the computation, and ends long before it.
TEST_F(TimeBreakdownTest, ACallBesideLongerComputationIsHidden) {
  const std::vector<TraceOperation> program = {OnStream(AllReduce(kFloats), 1), Compute(kLong),
                                               WaitForFirst()};
  const auto parts = PartsOf(0, program, program);
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].overlap_ps, EndPs(0));
  EXPECT_EQ(parts[0].compute_ps, kLong);
  EXPECT_EQ(parts[0].total_ps(), kLong);
}

// The call takes longer than the computation beside it; what outlasts it is exposed.
TEST_F(TimeBreakdownTest, WhatOutlastsTheComputationIsExposed) {
  constexpr int64_t kShort = kPsPerUs;
  const std::vector<TraceOperation> program = {OnStream(AllReduce(kFloats), 1), Compute(kShort),
                                               WaitForFirst()};
  const auto parts = PartsOf(0, program, program);
  ASSERT_THAT(parts, SizeIs(1));
  ASSERT_GT(EndPs(0), kShort);
  EXPECT_EQ(parts[0].compute_ps, kShort);
  EXPECT_EQ(parts[0].data_ps, EndPs(0) - kShort);
  EXPECT_EQ(parts[0].overlap_ps, kShort);
  EXPECT_EQ(parts[0].wait_ps, 0);
}

// Rank 1 needs what rank 0 sends it after a long computation.
TEST_F(TimeBreakdownTest, AStageIsABubbleUntilTheOneBeforeSends) {
  const auto parts = PartsOf(1, {Send(1, 4 * kFloats, 0, kLong)},
                             {OnStream(Recv(0, 4 * kFloats), 1), WaitForFirst()});
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_EQ(parts[0].bubble_ps, kLong);
  EXPECT_EQ(parts[0].pipeline_ps, EndPs(0) - kLong);
  EXPECT_GT(parts[0].pipeline_ps, 0);
  EXPECT_EQ(parts[0].total_ps(), EndPs(0));
}

TEST_F(TimeBreakdownTest, IterationsHavePartsOfTheirOwn) {
  std::vector<TraceOperation> program = {AllReduce(kFloats, kLong), AllReduce(kFloats, 2 * kLong)};
  program[1].begins_iteration = true;
  const auto parts = PartsOf(0, program, program);
  ASSERT_THAT(parts, SizeIs(2));
  EXPECT_EQ(parts[0].compute_ps, kLong);
  EXPECT_EQ(parts[0].total_ps(), EndPs(0));
  EXPECT_EQ(parts[1].compute_ps, 2 * kLong);
  EXPECT_EQ(parts[0].total_ps() + parts[1].total_ps(), EndPs(1));
}

TEST_F(TimeBreakdownTest, CallsThatHaveNotEndedHaveNoParts) {
  At(kLong / 2, [] { ns3::Simulator::Stop(); });
  const std::vector<TraceOperation> program = {AllReduce(kFloats), AllReduce(kFloats, kLong)};
  EXPECT_THAT(PartsOf(0, program, program), IsEmpty());
}

}  // namespace
}  // namespace railyard::testing
