// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/trace_builder.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

std::vector<TraceOperation> OneCallOf(uint64_t count) {
  return {{.kind = CollectiveKind::kAllReduce, .count = count}};
}

TEST(TraceBuilderTest, CommunicatorsAreNumberedInTheOrderInWhichTheyAreFoundFirst) {
  TraceBuilder builder(4);
  EXPECT_EQ(builder.FindCommunicator("tensor", {GlobalRank{0}, GlobalRank{1}}), 0u);
  EXPECT_EQ(builder.FindCommunicator("data", {GlobalRank{0}, GlobalRank{1}}), 1u);
  EXPECT_EQ(builder.FindCommunicator("tensor", {GlobalRank{2}, GlobalRank{3}}), 2u);
  EXPECT_EQ(builder.FindCommunicator("tensor", {GlobalRank{0}, GlobalRank{1}}), 0u);
  EXPECT_EQ(builder.FindCommunicator("data", {GlobalRank{0}, GlobalRank{1}}), 1u);
  const Trace trace = builder.Take("plan");
  ASSERT_EQ(trace.communicators.size(), 3u);
  EXPECT_EQ(trace.communicators[0].name, "tensor 0");
  EXPECT_EQ(trace.communicators[1].name, "data 0");
  EXPECT_EQ(trace.communicators[2].name, "tensor 1");
  EXPECT_THAT(trace.communicators[1].ranks, ElementsAre(0, 1));
  EXPECT_THAT(trace.communicators[2].ranks, ElementsAre(2, 3));
}

TEST(TraceBuilderTest, RanksInAnotherOrderAreAnotherCommunicator) {
  TraceBuilder builder(3);
  EXPECT_EQ(builder.FindCommunicator("activations", {GlobalRank{0}, GlobalRank{1}}), 0u);
  EXPECT_EQ(builder.FindCommunicator("activations", {GlobalRank{1}, GlobalRank{0}}), 1u);
  EXPECT_EQ(builder.FindCommunicator("activations", {GlobalRank{0}, GlobalRank{1}, GlobalRank{2}}),
            2u);
}

TEST(TraceBuilderTest, AnAddedCommunicatorHasANumberButIsNotCountedByKind) {
  TraceBuilder builder(2);
  EXPECT_EQ(builder.AddCommunicator("world", {GlobalRank{0}, GlobalRank{1}}), 0u);
  EXPECT_EQ(builder.FindCommunicator("world", {GlobalRank{0}, GlobalRank{1}}), 1u);
  EXPECT_EQ(builder.Take("plan").communicators[1].name, "world 0");
}

TEST(TraceBuilderTest, RanksWithEqualOperationsShareAProgram) {
  TraceBuilder builder(3);
  builder.SetProgram(GlobalRank{2}, OneCallOf(8));
  builder.SetProgram(GlobalRank{0}, OneCallOf(16));
  builder.SetProgram(GlobalRank{1}, OneCallOf(8));
  const Trace trace = builder.Take("plan");
  EXPECT_EQ(trace.origin, "plan");
  EXPECT_EQ(trace.operations.program_of_rank(GlobalRank{1}),
            trace.operations.program_of_rank(GlobalRank{2}));
  EXPECT_NE(trace.operations.program_of_rank(GlobalRank{0}),
            trace.operations.program_of_rank(GlobalRank{2}));
  EXPECT_EQ(trace.operations[GlobalRank{0}][0].count, 16u);
  EXPECT_EQ(trace.operations[GlobalRank{1}][0].count, 8u);
}

}  // namespace
}  // namespace railyard
