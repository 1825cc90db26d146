// SPDX-License-Identifier: GPL-2.0-only
// Traces for other numbers of ranks, with sizes counted by hand.
#include "traces/transform/trace_retarget.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/transform/small_traces.h"
#include "traces/transform/trace_cut.h"
#include "traces/transform/trace_diff.h"

namespace railyard {
namespace {

using testing::Call;
using ::testing::ElementsAre;
using testing::ExpectMatches;
using testing::FourStages;
using ::testing::HasSubstr;
using testing::TwoByTwo;
using testing::TwoByTwoExperts;

TEST(TraceRetargetTest, MoreDataParallelRanksGatherSmallerParts) {
  Diagnostics diagnostics;
  const auto more = RetargetTrace(TwoByTwo(), {.tensor = 2, .data = 2}, {.tensor = 2, .data = 6},
                                  "t", diagnostics);
  ASSERT_TRUE(more) << diagnostics.ToString();
  EXPECT_EQ(more->rank_count, 12u);
  const auto& program = more->operations[GlobalRank{11}];
  EXPECT_EQ(program[0].count, 100u);  // activations
  EXPECT_EQ(program[1].count, 10u);   // 60 gathered from six
  EXPECT_EQ(program[2].count, 80u);   // gradients
  EXPECT_THAT(more->communicators[program[1].communicator].ranks, ElementsAre(1, 3, 5, 7, 9, 11));
  EXPECT_THAT(more->communicators[program[0].communicator].ranks, ElementsAre(10, 11));
  ExpectMatches(*more);
}

TEST(TraceRetargetTest, MoreTensorParallelRanksHaveLessOfTheWeights) {
  Diagnostics diagnostics;
  const auto more = RetargetTrace(TwoByTwo(), {.tensor = 2, .data = 2}, {.tensor = 4, .data = 2},
                                  "t", diagnostics);
  ASSERT_TRUE(more) << diagnostics.ToString();
  const auto& program = more->operations[GlobalRank{0}];
  EXPECT_EQ(program[0].count, 100u);
  EXPECT_THAT(more->communicators[program[0].communicator].ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(program[1].count, 15u);
  EXPECT_EQ(program[2].count, 40u);
  ExpectMatches(*more);
}

// A log states its choices for its own ranks and sizes.
TEST(TraceRetargetTest, ChoicesOfALogHoldForItsOwnCalls) {
  Trace logged = TwoByTwo();
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    std::vector<TraceOperation> program = logged.operations[rank];
    for (TraceOperation& operation : program) {
      operation.algorithm = Algorithm::kRing;
      operation.protocol = Protocol::kSimple;
      operation.measured_ps = 7;
    }
    logged.operations[rank] = program;
  }
  Diagnostics diagnostics;
  const auto more =
      RetargetTrace(logged, {.tensor = 2, .data = 2}, {.tensor = 2, .data = 6}, "t", diagnostics);
  ASSERT_TRUE(more) << diagnostics.ToString();
  EXPECT_EQ(more->operations[GlobalRank{0}][0].algorithm,
            Algorithm::kRing);  // the tensor group is as it was
  EXPECT_EQ(more->operations[GlobalRank{0}][2].algorithm, Algorithm::kUnstated);
  EXPECT_EQ(more->operations[GlobalRank{0}][2].protocol, Protocol::kUnstated);
  const auto three = CutTrace(logged, {.ranks = GlobalRanksOf({0, 2, 3})}, "t", diagnostics);
  ASSERT_TRUE(three) << diagnostics.ToString();
  const auto& kept =
      three->operations[GlobalRank{1}];  // rank 2's: both groups of two, of which one is whole
  EXPECT_EQ(kept[0].algorithm, Algorithm::kRing);
  EXPECT_EQ(kept[0].measured_ps, 7);
  Trace of_all = logged;
  of_all.communicators.push_back({.name = "world", .ranks = GlobalRanksOf({0, 1, 2, 3})});
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    TraceOperation call = logged.operations[rank][0];
    call.communicator = static_cast<uint32_t>(of_all.communicators.size() - 1);
    of_all.operations[rank] = {call};
  }
  const auto half = CutTrace(of_all, {.ranks = GlobalRanksOf({0, 1})}, "t", diagnostics);
  ASSERT_TRUE(half) << diagnostics.ToString();
  EXPECT_EQ(half->operations[GlobalRank{0}][0].algorithm, Algorithm::kUnstated);
  EXPECT_EQ(half->operations[GlobalRank{0}][0].measured_ps, 0);
}

// A tied embedding's gradients, of which each of two tensor parallel ranks has half.
TEST(TraceRetargetTest, WeightsOfTheFirstAndTheLastStageAreDivided) {
  Diagnostics diagnostics;
  const auto more =
      RetargetTrace(FourStages(), {.pipeline = 4}, {.tensor = 2, .pipeline = 4}, "t", diagnostics);
  ASSERT_TRUE(more) << diagnostics.ToString();
  for (const TraceOperation& operation : more->operations[GlobalRank{0}]) {
    if (operation.kind == CollectiveKind::kAllReduce) EXPECT_EQ(operation.count, 6u);
  }
}

TEST(TraceRetargetTest, CallsOfAGroupWithOneRankLeftAreComputation) {
  Diagnostics diagnostics;
  const auto alone = RetargetTrace(TwoByTwo(), {.tensor = 2, .data = 2}, {.tensor = 1, .data = 4},
                                   "t", diagnostics);
  ASSERT_TRUE(alone) << diagnostics.ToString();
  for (const TraceCommunicator& communicator : alone->communicators) {
    EXPECT_THAT(communicator.ranks, ElementsAre(0, 1, 2, 3));
  }
  const auto& program = alone->operations[GlobalRank{3}];
  EXPECT_EQ(program[0].kind, CollectiveKind::kCompute);
  EXPECT_EQ(program[0].compute_before_ps,
            TwoByTwo().operations[GlobalRank{3}][0].compute_before_ps);
  EXPECT_EQ(program[1].kind, CollectiveKind::kAllGather);
  EXPECT_TRUE(program[3].begins_iteration);
  ExpectMatches(*alone);
}

TEST(TraceRetargetTest, TheSameDivisionIsTheSameJob) {
  Diagnostics diagnostics;
  const auto same = RetargetTrace(TwoByTwo(), {.tensor = 2, .data = 2}, {.tensor = 2, .data = 2},
                                  "t", diagnostics);
  ASSERT_TRUE(same) << diagnostics.ToString();
  EXPECT_FALSE(DiffTraces(TwoByTwo(), *same).Any());
}

// Two of four experts' worth of ranks share what two did: a rank's 120 bytes go to four ranks, and
// half of the experts are summed among as many ranks.
TEST(TraceRetargetTest, MoreExpertParallelRanksHaveFewerExperts) {
  Diagnostics diagnostics;
  const auto more = RetargetTrace(TwoByTwoExperts(), {.data = 4, .expert = 2},
                                  {.data = 8, .expert = 4}, "t", diagnostics);
  ASSERT_TRUE(more) << diagnostics.ToString();
  EXPECT_EQ(more->rank_count, 8u);
  const auto& program = more->operations[GlobalRank{5}];
  EXPECT_EQ(program[0].count, 30u);
  EXPECT_THAT(more->communicators[program[0].communicator].ranks, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(program[1].count, 40u);
  EXPECT_THAT(more->communicators[program[1].communicator].ranks, ElementsAre(1, 5));
  EXPECT_EQ(program[2].count, 100u);
  EXPECT_EQ(more->communicators[program[2].communicator].ranks.size(), 8u);
  EXPECT_EQ(more->communicators.size(), 2u + 4 + 1);
  ExpectMatches(*more);
}

TEST(TraceRetargetTest, MoreReplicasOfTheSameExpertsExchangeAsMuch) {
  Diagnostics diagnostics;
  const auto more = RetargetTrace(TwoByTwoExperts(), {.data = 4, .expert = 2},
                                  {.data = 8, .expert = 2}, "t", diagnostics);
  ASSERT_TRUE(more) << diagnostics.ToString();
  const auto& program = more->operations[GlobalRank{5}];
  EXPECT_EQ(program[0].count, 60u);
  EXPECT_THAT(more->communicators[program[0].communicator].ranks, ElementsAre(4, 5));
  EXPECT_EQ(program[1].count, 80u);
  EXPECT_THAT(more->communicators[program[1].communicator].ranks, ElementsAre(1, 3, 5, 7));
  ExpectMatches(*more);
}

// If all data parallel ranks share the experts, two communicators have the same ranks; their calls
// say which is which.
TEST(TraceRetargetTest, ExpertsOfAllDataParallelRanksAreRecognizedByTheirCalls) {
  Trace trace;
  trace.rank_count = 2;
  trace.communicators = {{.name = "dp", .ranks = GlobalRanksOf({0, 1})},
                         {.name = "ep", .ranks = GlobalRanksOf({0, 1})}};
  trace.operations.resize(2);
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    trace.operations[rank].push_back(Call(CollectiveKind::kAllToAll, 1, 60));
    trace.operations[rank].push_back(Call(CollectiveKind::kAllReduce, 0, 100));
  }
  Diagnostics diagnostics;
  const auto more =
      RetargetTrace(trace, {.data = 2, .expert = 2}, {.data = 4, .expert = 2}, "t", diagnostics);
  ASSERT_TRUE(more) << diagnostics.ToString();
  const auto& program = more->operations[GlobalRank{3}];
  EXPECT_THAT(more->communicators[program[0].communicator].ranks, ElementsAre(2, 3));
  EXPECT_THAT(more->communicators[program[1].communicator].ranks, ElementsAre(0, 1, 2, 3));
  ExpectMatches(*more);
}

// The messages of `trace` by sender and receiver.
std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> Messages(const Trace& trace) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> messages;
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    for (const TraceOperation& operation : trace.operations[rank]) {
      if (operation.kind != CollectiveKind::kSend) continue;
      const auto& ranks = trace.communicators[operation.communicator].ranks;
      messages[{rank, ranks[operation.peer]}].push_back(operation.count);
    }
  }
  return messages;
}

TEST(TraceRetargetTest, MoreStagesAreMoreInnerStages) {
  for (const uint32_t stages : {2u, 3u, 6u}) {
    SCOPED_TRACE(stages);
    Diagnostics diagnostics;
    const auto made =
        RetargetTrace(FourStages(), {.pipeline = 4}, {.pipeline = stages}, "t", diagnostics);
    ASSERT_TRUE(made) << diagnostics.ToString();
    std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> expected;
    for (uint32_t stage = 0; stage + 1 < stages; ++stage) {
      expected[{stage, stage + 1}] = {70, 70};
      expected[{stage + 1, stage}] = {50, 50};
    }
    EXPECT_EQ(Messages(*made), expected);
    EXPECT_EQ(made->communicators.size(), stages - 1 + 1);
    const TraceOperation& last = made->operations[GlobalRank{0}].back();
    EXPECT_EQ(last.kind, CollectiveKind::kAllReduce);
    EXPECT_THAT(made->communicators[last.communicator].ranks, ElementsAre(0, stages - 1));
    ExpectMatches(*made);
  }
}

TEST(TraceRetargetTest, MessagesOnACommunicatorOfAllStagesGoToNeighbors) {
  Trace trace = FourStages();
  trace.communicators = {{.name = "pp", .ranks = GlobalRanksOf({0, 1, 2, 3})}};
  for (uint32_t stage = 0; stage < 4; ++stage) {
    for (TraceOperation& operation : trace.operations[GlobalRank{stage}]) {
      operation.communicator = 0;
      if (IsSendOrRecv(operation.kind))
        operation.peer = operation.peer == 1 ? stage + 1 : stage - 1;
    }
    if (!IsSendOrRecv(trace.operations[GlobalRank{stage}].back().kind))
      trace.operations[GlobalRank{stage}].pop_back();
  }
  ExpectMatches(trace);
  Diagnostics diagnostics;
  const auto made = RetargetTrace(trace, {.pipeline = 4}, {.pipeline = 5}, "t", diagnostics);
  ASSERT_TRUE(made) << diagnostics.ToString();
  EXPECT_EQ(made->communicators.size(), 1u);
  const auto messages = Messages(*made);
  EXPECT_EQ(messages.size(), 8u);
  EXPECT_EQ(messages.at({3, 4}), (std::vector<uint64_t>{70, 70}));
  ExpectMatches(*made);
}

std::string Refusal(const Trace& trace, const TraceDivision& from, const TraceDivision& to) {
  Diagnostics diagnostics;
  EXPECT_FALSE(RetargetTrace(trace, from, to, "t", diagnostics));
  return diagnostics.ToString();
}

TEST(TraceRetargetTest, WhatIsNotSoundIsRefused) {
  EXPECT_THAT(Refusal(TwoByTwo(), {.tensor = 2, .data = 3}, {.tensor = 2, .data = 4}),
              HasSubstr("4 ranks are not 2 tensor x 3 data"));
  Trace other = TwoByTwo();
  other.communicators.push_back({.name = "odd", .ranks = GlobalRanksOf({0, 3})});
  EXPECT_THAT(Refusal(other, {.tensor = 2, .data = 2}, {.tensor = 2, .data = 4}),
              HasSubstr("communicators[4]: \"odd\" of 2 ranks is no group"));
  Trace uneven = TwoByTwo();
  uneven.operations[GlobalRank{2}][0].count = 99;
  EXPECT_THAT(Refusal(uneven, {.tensor = 2, .data = 2}, {.tensor = 2, .data = 4}),
              HasSubstr("ranks[2]: its calls differ from those of rank 0"));
}

TEST(TraceRetargetTest, ExpertsThatDoNotFollowARuleAreRefused) {
  EXPECT_THAT(Refusal(TwoByTwoExperts(), {.data = 4, .expert = 3}, {.data = 4, .expert = 2}),
              HasSubstr("expert: 3 expert parallel ranks do not divide 4 data parallel ones"));
  EXPECT_THAT(
      Refusal(TwoByTwoExperts(), {.data = 4, .expert = 2}, {.tensor = 2, .data = 4, .expert = 2}),
      HasSubstr("communicators[0]: \"ep0\" is of expert parallel ranks, whose tokens"));
  Trace routed = TwoByTwoExperts();
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    TraceOperation& send = routed.operations[rank][0];
    send.kind = rank % 2 == 0 ? CollectiveKind::kSend : CollectiveKind::kRecv;
    send.peer = 1 - rank % 2;
  }
  EXPECT_THAT(Refusal(routed, {.data = 4, .expert = 2}, {.data = 4, .expert = 4}),
              HasSubstr("ranks[1]: its calls differ from those of rank 0"));
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    routed.operations[rank][0].kind = CollectiveKind::kSend;
    routed.operations[rank][0].peer = 1;
  }
  EXPECT_THAT(Refusal(routed, {.data = 4, .expert = 2}, {.data = 4, .expert = 4}),
              HasSubstr("ranks[0].operations[0]: is a message whose peers would be others"));
}

TEST(TraceRetargetTest, SchedulesThatDependOnTheStagesAreRefused) {
  const auto refusal = [](const Trace& trace, uint32_t stages) {
    return Refusal(trace, {.pipeline = 4}, {.pipeline = stages});
  };
  EXPECT_THAT(
      Refusal(TwoByTwo(), {.tensor = 2, .data = 2}, {.tensor = 2, .data = 2, .pipeline = 2}),
      HasSubstr("1 stages cannot become 2: no inner stage says"));
  EXPECT_THAT(refusal(FourStages(), 1), HasSubstr("4 stages cannot become 1"));
  // One forward pass, one backward pass, and so on, as in 1F1B.
  Trace alternating = FourStages();
  for (uint32_t stage = 0; stage < 4; ++stage) {
    auto& program = alternating.operations[GlobalRank{stage}];
    const size_t messages = stage == 0 || stage == 3 ? 1 : 2;  // of a pass
    std::rotate(program.begin() + static_cast<ptrdiff_t>(messages),
                program.begin() + static_cast<ptrdiff_t>(2 * messages),
                program.begin() + static_cast<ptrdiff_t>(3 * messages));
  }
  EXPECT_THAT(refusal(alternating, 5),
              HasSubstr("ranks[0].operations[2]: is of a forward pass after a backward pass"));
  Trace different = FourStages();
  different.operations[GlobalRank{2}].push_back(different.operations[GlobalRank{2}].back());
  EXPECT_THAT(refusal(different, 5), HasSubstr("ranks[2]: its calls differ from those of rank 1"));
  Trace growing = FourStages();  // the first stage sends other sizes than the inner ones
  growing.operations[GlobalRank{0}][0].count = growing.operations[GlobalRank{1}][0].count = 71;
  growing.operations[GlobalRank{2}][0].count = 71;
  EXPECT_THAT(refusal(growing, 5), HasSubstr("ranks[1]: sends forward what the first stage does"));
  Trace skipping = FourStages();
  skipping.communicators[0].ranks = GlobalRanksOf({0, 2});
  skipping.operations[GlobalRank{0}][0].communicator = 0;
  EXPECT_THAT(refusal(skipping, 5), HasSubstr("is a message to a stage that is no neighbor"));
}

}  // namespace
}  // namespace railyard
