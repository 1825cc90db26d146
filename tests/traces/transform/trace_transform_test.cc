// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/transform/small_traces.h"
#include "traces/transform/trace_csv.h"
#include "traces/transform/trace_cut.h"
#include "traces/transform/trace_diff.h"
#include "traces/transform/trace_merge.h"
#include "traces/transform/trace_summary.h"

namespace railyard {
namespace {

using ::testing::AllOf;
using testing::Call;
using ::testing::ElementsAre;
using testing::ExpectMatches;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TwoByTwo;
using testing::TwoByTwoExperts;

TEST(TraceSummaryTest, CountsCallsBytesAndSizes) {
  const TraceSummary summary = SummarizeTrace(TwoByTwo());
  EXPECT_EQ(summary.ranks, 4u);
  EXPECT_EQ(summary.iterations, 2u);
  const auto& reduced = summary.kinds[static_cast<size_t>(CollectiveKind::kAllReduce)];
  EXPECT_EQ(reduced.calls, 16u);
  EXPECT_EQ(reduced.bytes, 8u * 100 + 8 * 80);
  EXPECT_EQ(reduced.by_size[6], 16u);  // 64 to 127
  EXPECT_EQ(reduced.gap_ps, 8 * 5'000'000);
  const auto& gathered = summary.kinds[static_cast<size_t>(CollectiveKind::kAllGather)];
  EXPECT_EQ(gathered.bytes, 8u * 60);  // two ranks' 30
  EXPECT_TRUE(summary.matrix.empty());
  EXPECT_THAT(SummaryText(TwoByTwo(), summary, 1), HasSubstr("rank 0     AGA|AGA\n"));
}

TEST(TraceSummaryTest, CommunicatorsHaveTheirNamesRanksAndCalls) {
  Trace trace;
  trace.rank_count = 20;
  trace.operations.resize(20);
  for (GlobalRank rank{0}; rank < 20; ++rank) {
    const GlobalRank next{(rank + 1) % 20};
    trace.communicators.push_back({.name = "pair" + std::to_string(rank),
                                   .ranks = {std::min(rank, next), std::max(rank, next)}});
    trace.operations[rank] = {Call(CollectiveKind::kAllReduce, rank / 10, 8)};
  }
  const TraceSummary summary = SummarizeTrace(trace);
  ASSERT_EQ(summary.communicators.size(), 20u);
  EXPECT_EQ(summary.communicators[1].name, "pair1");
  EXPECT_EQ(summary.communicators[1].ranks, 2u);
  EXPECT_EQ(summary.communicators[1].calls, 10u);
  EXPECT_EQ(summary.communicators[2].calls, 0u);
  EXPECT_THAT(SummaryText(trace, summary, 0),
              AllOf(HasSubstr("10           2  pair1\n"), HasSubstr("and 4 more"),
                    Not(HasSubstr("pair16"))));
  EXPECT_THAT(SummaryJson(summary), HasSubstr("pair19"));
}

TEST(TraceSummaryTest, GapsOfAllRanksMayExceed64Bits) {
  Trace trace;
  trace.rank_count = 4;
  trace.communicators = {{.name = "world", .ranks = GlobalRanksOf({0, 1, 2, 3})}};
  TraceOperation call = Call(CollectiveKind::kAllReduce, 0, 8);
  call.compute_before_ps = int64_t{5'000'000'000'000'000'000};
  trace.operations.resize(4);
  for (GlobalRank rank{0}; rank < 4; ++rank) trace.operations[GlobalRank{rank}] = {call};
  const TraceSummary summary = SummarizeTrace(trace);
  EXPECT_THAT(SummaryText(trace, summary, 0), HasSubstr("20000000000000"));
  EXPECT_THAT(SummaryJson(summary), HasSubstr("\"gap_ps\": 20000000000000000000"));
}

TEST(TraceSummaryTest, MatrixHasThePairsThatTheTraceSays) {
  Trace trace;
  trace.rank_count = 3;
  trace.communicators = {{.name = "world", .ranks = GlobalRanksOf({0, 1, 2})}};
  trace.operations.resize(3);
  for (GlobalRank rank{0}; rank < 3; ++rank) {
    trace.operations[GlobalRank{rank}].push_back(Call(CollectiveKind::kAllToAll, 0, 10));
  }
  TraceOperation send = Call(CollectiveKind::kSend, 0, 7);
  send.peer = 2;
  trace.operations[GlobalRank{0}].push_back(send);
  const TraceSummary summary = SummarizeTrace(trace);
  EXPECT_THAT(summary.matrix,
              ElementsAre(ElementsAre(0, 10, 17), ElementsAre(10, 0, 10), ElementsAre(10, 10, 0)));
}

TEST(TraceCutTest, IterationsAreWhole) {
  Diagnostics diagnostics;
  const auto cut = CutTrace(TwoByTwo(), {.iterations = {1, 1}}, "t", diagnostics);
  ASSERT_TRUE(cut) << diagnostics.ToString();
  EXPECT_EQ(cut->operations[GlobalRank{0}].size(), 3u);
  EXPECT_FALSE(cut->operations[GlobalRank{0}][0].begins_iteration);
  ExpectMatches(*cut);
}

TEST(TraceCutTest, CommunicatorsOfRanksThatStayAreWhatIsLeftOfThem) {
  Diagnostics diagnostics;
  const auto cut = CutTrace(TwoByTwo(), {.ranks = GlobalRanksOf({2, 3})}, "t", diagnostics);
  ASSERT_TRUE(cut) << diagnostics.ToString();
  EXPECT_EQ(cut->rank_count, 2u);
  // The tensor group is whole; of the data group one rank is left, whose calls become computation.
  EXPECT_EQ(cut->operations[GlobalRank{0}][0].kind, CollectiveKind::kAllReduce);
  EXPECT_THAT(cut->communicators[cut->operations[GlobalRank{0}][0].communicator].ranks,
              ElementsAre(0, 1));
  EXPECT_EQ(cut->operations[GlobalRank{0}][1].kind, CollectiveKind::kCompute);
  ExpectMatches(*cut);
}

// Rank 0 of the communicator of all goes; an AllReduce has no root.
TEST(TraceCutTest, RanksWithoutTheFirstOfACommunicatorKeepItsCalls) {
  Diagnostics diagnostics;
  const auto cut =
      CutTrace(TwoByTwoExperts(), {.ranks = GlobalRanksOf({1, 2, 3})}, "t", diagnostics);
  ASSERT_TRUE(cut) << diagnostics.ToString();
  EXPECT_EQ(cut->rank_count, 3u);
  for (GlobalRank rank{0}; rank < 3; ++rank) {
    const TraceOperation& last = cut->operations[rank].back();
    EXPECT_EQ(last.kind, CollectiveKind::kAllReduce);
    EXPECT_THAT(cut->communicators[last.communicator].ranks, ElementsAre(0, 1, 2));
  }
  // A Broadcast's root has to stay.
  Trace with_root = TwoByTwoExperts();
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    with_root.operations[GlobalRank{rank}].back().kind = CollectiveKind::kBroadcast;
  }
  EXPECT_FALSE(CutTrace(with_root, {.ranks = GlobalRanksOf({1, 2, 3})}, "t", diagnostics));
  EXPECT_THAT(diagnostics.ToString(), ::testing::HasSubstr(".root: rank 0 goes"));
}

TEST(TraceCutTest, CallsAreCountedOnEachCommunicator) {
  Diagnostics diagnostics;
  const auto cut =
      CutTrace(TwoByTwo(), {.communicators = {"dp0", "dp1"}, .calls = {1, 2}}, "t", diagnostics);
  ASSERT_TRUE(cut) << diagnostics.ToString();
  std::vector<CollectiveKind> kinds;
  for (const TraceOperation& operation : cut->operations[GlobalRank{0}])
    kinds.push_back(operation.kind);
  // The second call of tp0, as computation; the second and third of dp0.
  EXPECT_THAT(kinds, ElementsAre(CollectiveKind::kAllReduce, CollectiveKind::kCompute,
                                 CollectiveKind::kAllGather));
  ExpectMatches(*cut);
}

// Rank 0's second AllReduce waits for computation that waits for its first, on another stream; its
// third waits for computation that waits for nothing.
// The third and fourth calls of the data groups are the second iteration, which is the first of the
// result.
TEST(TraceCutTest, WhatIsLeftBeginsTheFirstIteration) {
  Diagnostics diagnostics;
  const auto cut = CutTrace(TwoByTwo(), {.calls = {2, 3}}, "t", diagnostics);
  ASSERT_TRUE(cut) << diagnostics.ToString();
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    ASSERT_EQ(cut->operations[GlobalRank{rank}].size(), 2u);
    for (const TraceOperation& operation : cut->operations[GlobalRank{rank}]) {
      EXPECT_FALSE(operation.begins_iteration) << rank;
    }
  }
}

TEST(TraceCutTest, ARankWithoutCallsInAnIterationBeginsItAllTheSame) {
  // Ranks 0 and 1 call in the first and the third iteration, the others in each.
  Trace trace;
  trace.rank_count = 4;
  trace.communicators = {{.name = "a", .ranks = GlobalRanksOf({0, 1})},
                         {.name = "b", .ranks = GlobalRanksOf({2, 3})}};
  trace.operations.resize(4);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    std::vector<TraceOperation> program;
    for (uint64_t iteration = 0; iteration < 3; ++iteration) {
      const bool idles = rank < 2 && iteration == 1;
      program.push_back(Call(idles ? CollectiveKind::kCompute : CollectiveKind::kAllReduce,
                             rank / 2, idles ? 0 : 1000 * (iteration + 1)));
      program.back().begins_iteration = iteration > 0;
    }
    trace.operations[GlobalRank{rank}] = std::move(program);
  }
  Diagnostics diagnostics;
  const auto cut = CutTrace(trace, {.calls = {0, 1}}, "t", diagnostics);
  ASSERT_TRUE(cut) << diagnostics.ToString();
  ASSERT_EQ(cut->operations[GlobalRank{0}].size(), 3u);
  EXPECT_EQ(cut->operations[GlobalRank{0}][1].kind, CollectiveKind::kCompute);
  EXPECT_EQ(cut->operations[GlobalRank{0}][1].compute_before_ps, 0);
  EXPECT_TRUE(cut->operations[GlobalRank{0}][1].begins_iteration);
  EXPECT_TRUE(cut->operations[GlobalRank{0}][2].begins_iteration);
  EXPECT_EQ(cut->operations[GlobalRank{0}][2].count, 3000u);
  ASSERT_EQ(cut->operations[GlobalRank{2}].size(), 3u);  // the third begins for ranks 0 and 1
  EXPECT_EQ(cut->operations[GlobalRank{2}][1].count, 2000u);
  EXPECT_EQ(cut->operations[GlobalRank{2}][2].kind, CollectiveKind::kCompute);
}

TEST(TraceCutTest, CallsWaitForWhatRemovedComputationWaitedFor) {
  Trace trace;
  trace.rank_count = 2;
  trace.communicators = {{.name = "world", .ranks = GlobalRanksOf({0, 1})}};
  TraceOperation computes;
  computes.kind = CollectiveKind::kCompute;
  computes.stream = 1;
  computes.compute_before_ps = 7;
  std::vector<TraceOperation> program;
  program.push_back(Call(CollectiveKind::kAllReduce, 0, 10));
  program.push_back(computes);
  program.back().after = 1;
  program.push_back(computes);
  program.push_back(Call(CollectiveKind::kAllReduce, 0, 20));
  program.back().stream = 2;
  program.back().after = 3;
  program.push_back(computes);
  program.back().stream = 3;
  program.push_back(Call(CollectiveKind::kAllReduce, 0, 30));
  program.back().stream = 2;
  program.back().after = 5;
  trace.operations.resize(2);
  trace.operations[GlobalRank{0}] = trace.operations[GlobalRank{1}] = program;
  Diagnostics diagnostics;
  const auto cut = CutTrace(trace, {.calls = {0, 2}}, "t", diagnostics);
  ASSERT_TRUE(cut) << diagnostics.ToString();
  const auto& left = cut->operations[GlobalRank{0}];
  ASSERT_EQ(left.size(), 5u);
  EXPECT_EQ(left[1].kind, CollectiveKind::kCompute);
  EXPECT_EQ(left[1].after, 1u);
  EXPECT_EQ(left[1].compute_before_ps, 0);
  EXPECT_EQ(left[2].kind, CollectiveKind::kCompute);
  EXPECT_EQ(left[3].count, 20u);
  EXPECT_EQ(left[3].after, 3u);
  EXPECT_EQ(left[4].count, 30u);
  EXPECT_EQ(left[4].after, 0u);
  // Without the first call nothing is left to wait for.
  const auto later = CutTrace(trace, {.calls = {1, 2}}, "t", diagnostics);
  ASSERT_TRUE(later) << diagnostics.ToString();
  ASSERT_EQ(later->operations[GlobalRank{0}].size(), 2u);
  EXPECT_EQ(later->operations[GlobalRank{0}][0].after, 0u);
}

TEST(TraceCutTest, WhatDoesNotExistIsAnError) {
  Diagnostics diagnostics;
  EXPECT_FALSE(CutTrace(TwoByTwo(), {.communicators = {"nobody"}}, "t", diagnostics));
  EXPECT_THAT(diagnostics.ToString(), HasSubstr("unknown communicator \"nobody\" (expected tp0, "));
}

TEST(TraceMergeTest, JobsAreSideBySide) {
  Diagnostics diagnostics;
  const auto merged = MergeTraces({TwoByTwo(), TwoByTwo()}, "m", diagnostics);
  ASSERT_TRUE(merged) << diagnostics.ToString();
  EXPECT_EQ(merged->rank_count, 8u);
  EXPECT_EQ(merged->communicators[4].name, "1/tp0");
  EXPECT_THAT(merged->communicators[4].ranks, ElementsAre(4, 5));
  EXPECT_EQ(merged->communicators[merged->CommunicatorOf(GlobalRank{4}, 0)].name, "1/tp0");
  ExpectMatches(*merged);
}

TEST(TraceMergeTest, AnonymousTracesHaveNoNames) {
  const Trace anonymous = AnonymizeTrace(TwoByTwo());
  EXPECT_TRUE(anonymous.source_files.empty());
  EXPECT_EQ(anonymous.communicators[3].name, "comm3");
  EXPECT_EQ(anonymous.operations[GlobalRank{0}][0].source_line, 0u);
  EXPECT_FALSE(DiffTraces(TwoByTwo(), anonymous).Any());
}

TEST(TraceDiffTest, TheFirstOperationThatDiffersIsReported) {
  Trace other = TwoByTwo();
  other.operations[GlobalRank{2}][1].count = 31;
  other.operations[GlobalRank{2}][2].count = 81;
  const TraceDifferences differences = DiffTraces(TwoByTwo(), other);
  EXPECT_EQ(differences.count, 1u);
  EXPECT_THAT(differences.first[0], HasSubstr("rank 2, operation 1: AllGather of 30"));
}

TEST(TraceDiffTest, FieldsThatTheDescriptionLacksAreNamed) {
  Trace other = TwoByTwo();
  other.operations[GlobalRank{1}][3].begins_iteration = false;
  other.operations[GlobalRank{1}][3].after = 1;
  const TraceDifferences differences = DiffTraces(TwoByTwo(), other);
  EXPECT_EQ(differences.count, 1u);
  EXPECT_THAT(differences.first[0],
              HasSubstr("; they differ in: operation waited for, beginning of an iteration"));
  Trace renamed = TwoByTwo();
  std::swap(renamed.communicators[0].ranks[0], renamed.communicators[0].ranks[1]);
  EXPECT_THAT(DiffTraces(TwoByTwo(), renamed).first[0],
              HasSubstr("; they differ in: ranks of the communicator"));
}

TEST(TraceDiffTest, CommunicatorsAreTheSameInAllCallsAndHaveTheSameRings) {
  Trace trace;
  trace.rank_count = 2;
  trace.communicators = {{.name = "a", .ranks = GlobalRanksOf({0, 1})},
                         {.name = "b", .ranks = GlobalRanksOf({0, 1})}};
  trace.operations.resize(2);
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    trace.operations[rank] = {Call(CollectiveKind::kAllReduce, 0, 8),
                              Call(CollectiveKind::kAllReduce, 0, 8)};
  }
  Trace two = trace;
  for (GlobalRank rank{0}; rank < 2; ++rank) two.operations[GlobalRank{rank}][1].communicator = 1;
  Trace swapped = trace;  // another number alone
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    for (TraceOperation& operation : swapped.operations[GlobalRank{rank}])
      operation.communicator = 1;
  }
  EXPECT_FALSE(DiffTraces(trace, swapped).Any());
  EXPECT_THAT(DiffTraces(trace, two).first.at(0), HasSubstr("; they differ in: communicator"));
  Trace ring = trace;
  ring.communicators[0].rings = {{1, 0}};
  EXPECT_THAT(DiffTraces(trace, ring).first.at(0),
              HasSubstr("; they differ in: rings or trees of the communicator"));
}

TEST(TraceCsvTest, RowsAreOperations) {
  Trace trace = TwoByTwo();
  trace.communicators[0].name = "a \"b\"";
  trace.operations[GlobalRank{0}][1].measured_ps = 1'234;
  std::string text;
  WriteTraceCsv(trace, [&](const std::string& piece) { text += piece; });
  EXPECT_THAT(text,
              HasSubstr("\n0,0,AllReduce,\"a \"\"b\"\"\",2,100,uint8,100,0,,0,0,,5000000,,0\n"));
  EXPECT_THAT(text, HasSubstr(",1234,0\n"));
}

}  // namespace
}  // namespace railyard
