// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/plans/rank_timeline.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

constexpr CollectiveKind kAllReduce = CollectiveKind::kAllReduce;

const std::vector<TraceCommunicator> kCommunicators = {{"tensor 0", GlobalRanksOf({0, 1, 2, 3})},
                                                       {"data 0", GlobalRanksOf({0, 4})}};

// Returns a trace of one rank that has this program.
Trace TraceOf(const std::vector<TraceOperation>& program) {
  Trace trace;
  trace.communicators = kCommunicators;
  trace.rank_count = 1;
  trace.operations.resize(1);
  trace.operations[GlobalRank{0}] = program;
  return trace;
}

RankTimeline TimelineWhereBytesArePs(const std::vector<TraceOperation>& program) {
  return TimelineOf(TraceOf(program), GlobalRank{0},
                    [](const PlannedCall& call) { return static_cast<int64_t>(call.bytes); });
}

TraceOperation Call(CollectiveKind kind, uint64_t bytes, uint32_t stream, int64_t compute_ps) {
  TraceOperation operation;
  operation.kind = kind;
  operation.communicator = stream;
  operation.count = bytes;
  operation.datatype = Datatype::kInt8;
  operation.stream = stream;
  operation.compute_before_ps = compute_ps;
  return operation;
}

// 10 of computation and a bucket of 50 beside 20 more and a call of 5: 25 of it are left.
TEST(RankTimelineTest, WhatOutlastsComputationIsExposed) {
  std::vector<TraceOperation> program = {Call(kAllReduce, 1, 0, 10), Call(kAllReduce, 50, 1, 0),
                                         Call(kAllReduce, 5, 0, 20)};
  program[1].after = 1;
  const RankTimeline timeline = TimelineWhereBytesArePs(program);
  EXPECT_EQ(timeline.compute_ps, 30);
  EXPECT_EQ(timeline.blocking_ps, 6);
  EXPECT_EQ(timeline.exposed_ps, 25);
  EXPECT_EQ(timeline.total_ps(), 61);
}

// A request arrives after 100; the rank has computed for 10 by then.
TEST(RankTimelineTest, WhatIsWaitedForBeforeARequestIsNoCommunication) {
  std::vector<TraceOperation> program = {Call(CollectiveKind::kCompute, 0, 2, 100),
                                         Call(kAllReduce, 1, 0, 9), Call(kAllReduce, 5, 0, 20)};
  program[2].after = 1;
  const RankTimeline timeline = TimelineWhereBytesArePs(program);
  EXPECT_EQ(timeline.compute_ps, 29);
  EXPECT_EQ(timeline.blocking_ps, 6);
  EXPECT_EQ(timeline.wait_ps, 90);
  EXPECT_EQ(timeline.exposed_ps, 0);
  EXPECT_EQ(timeline.total_ps(), 125);
}

TEST(RankTimelineTest, AGroupIsOneAllToAllOfItsMeanSize) {
  std::vector<TraceOperation> program = {
      Call(CollectiveKind::kSend, 40, 0, 7), Call(CollectiveKind::kRecv, 10, 0, 0),
      Call(CollectiveKind::kSend, 80, 0, 0), Call(CollectiveKind::kRecv, 20, 0, 0)};
  for (TraceOperation& operation : program) operation.group = 1;
  std::vector<PlannedCall> calls;
  ForEachCall(TraceOf(program), GlobalRank{0},
              [&](const PlannedCall& call) { calls.push_back(call); });
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(calls[0].bytes, 120u / 4);
  EXPECT_EQ(TimelineWhereBytesArePs(program).total_ps(), 37);
}

TEST(RankTimelineTest, PipelineTransfersTakeNoTimeOfTheirOwn) {
  const std::vector<TraceOperation> program = {Call(CollectiveKind::kRecv, 99, 1, 0),
                                               Call(CollectiveKind::kSend, 99, 1, 0)};
  EXPECT_EQ(TimelineWhereBytesArePs(program).total_ps(), 0);
}

}  // namespace
}  // namespace railyard
