// SPDX-License-Identifier: GPL-2.0-only
#include "traces/trace/trace_check.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::HasSubstr;

Trace TwoRanks() {
  Trace trace;
  trace.rank_count = 2;
  trace.source_files = {"a.log"};
  trace.communicators = {{.name = "world", .ranks = GlobalRanksOf({0, 1})}};
  TraceOperation operation;
  operation.count = 4;
  operation.source_line = 1;
  trace.operations.resize(2);
  for (size_t rank = 0; rank < 2; ++rank) trace.operations[GlobalRank{rank}] = {operation};
  return trace;
}

std::string Findings(const Trace& trace) {
  Diagnostics diagnostics;
  const bool sound = CheckTrace(trace, "t.trace", diagnostics);
  EXPECT_EQ(sound, !diagnostics.HasErrors());
  return diagnostics.ToString();
}

TEST(TraceCheckTest, ASoundTraceHasNoFindings) { EXPECT_EQ(Findings(TwoRanks()), ""); }

TEST(TraceCheckTest, RankCountIsLimited) {
  Trace trace = TwoRanks();
  trace.rank_count = 0;
  EXPECT_THAT(Findings(trace), HasSubstr("rank_count: 0 is out of range (1 to 1000000)"));
  trace.rank_count = kTraceRanksMax + 1;
  EXPECT_THAT(Findings(trace), HasSubstr("rank_count: 1000001 is out of range"));
}

TEST(TraceCheckTest, EveryRankHasAListOfOperations) {
  Trace trace = TwoRanks();
  trace.operations.resize(1);
  EXPECT_THAT(Findings(trace), HasSubstr("operations: 1 lists of operations for 2 ranks"));
}

TEST(TraceCheckTest, CommunicatorsHoldExistingRanksOnce) {
  Trace trace = TwoRanks();
  trace.communicators[0].ranks = GlobalRanksOf({0, 2});
  EXPECT_THAT(Findings(trace),
              HasSubstr("communicators[0].ranks[1]: rank 2 does not exist (0 to 1)"));
  trace.communicators[0].ranks = GlobalRanksOf({1, 1});
  EXPECT_THAT(Findings(trace), HasSubstr("communicators[0].ranks[1]: rank 1 is in the communicator "
                                         "twice"));
  trace.communicators[0].ranks = {};
  EXPECT_THAT(Findings(trace), HasSubstr("communicators[0].ranks: is empty"));
}

TEST(TraceCheckTest, NumbersOfCommunicatorsStandForSome) {
  Trace trace = TwoRanks();
  trace.communicators = {{.name = "a", .ranks = GlobalRanksOf({0})},
                         {.name = "b", .ranks = GlobalRanksOf({1})}};
  trace.operations.SetProgram(GlobalRank{1}, trace.operations.program_of_rank(GlobalRank{0}));
  trace.communicators_of_rank = {{0}, {1}};
  EXPECT_EQ(Findings(trace), "");
  trace.operations[GlobalRank{0}][0].communicator = 1;
  EXPECT_THAT(Findings(trace),
              HasSubstr("ranks[1].operations[0].communicator: 1 does not exist (there are 1)"));
  trace.operations[GlobalRank{0}][0].communicator = 0;
  trace.communicators_of_rank[1] = {0};
  EXPECT_THAT(Findings(trace), HasSubstr("ranks[1].operations[0].communicator: rank 1 is not in "
                                         "communicator 0"));
  trace.communicators_of_rank[1] = {2};
  EXPECT_THAT(Findings(trace),
              HasSubstr("ranks[1].communicators[0]: 2 does not exist (there are 2)"));
  trace.communicators_of_rank = {{0}};
  EXPECT_THAT(Findings(trace), HasSubstr("communicators_of_rank: 1 lists for 2 ranks"));
}

// Each of them is held against the size of its own group.
TEST(TraceCheckTest, RanksThatShareAProgramAreLookedAtInTheirGroups) {
  Trace trace = TwoRanks();
  trace.rank_count = 3;
  trace.communicators = {{.name = "a", .ranks = GlobalRanksOf({0, 1})},
                         {.name = "b", .ranks = GlobalRanksOf({2})}};
  trace.operations.resize(3);
  trace.operations[GlobalRank{0}][0].kind = CollectiveKind::kBroadcast;
  trace.operations[GlobalRank{0}][0].root = 1;
  for (const GlobalRank rank : {GlobalRank{1}, GlobalRank{2}}) {
    trace.operations.SetProgram(rank, trace.operations.program_of_rank(GlobalRank{0}));
  }
  trace.communicators_of_rank = {{0}, {0}, {1}};
  EXPECT_EQ(Findings(trace),
            "t.trace:1:1: error: ranks[2].operations[0].root: 1 is outside the communicator (0 to "
            "0)\n");
}

TEST(TraceCheckTest, CallersAreMembersOfTheirCommunicator) {
  Trace trace = TwoRanks();
  trace.communicators[0].ranks = GlobalRanksOf({0});
  EXPECT_THAT(Findings(trace), HasSubstr("ranks[1].operations[0].communicator: rank 1 is not in "
                                         "communicator 0"));
  trace = TwoRanks();
  trace.operations[GlobalRank{1}][0].communicator = 7;
  EXPECT_THAT(Findings(trace), HasSubstr("communicator: 7 does not exist (there are 1)"));
}

TEST(TraceCheckTest, RootsAndPeersAreInTheCommunicator) {
  Trace trace = TwoRanks();
  trace.operations[GlobalRank{0}][0].root = 2;
  EXPECT_THAT(Findings(trace), HasSubstr("operations[0].root: 2 is outside the communicator"));
  trace = TwoRanks();
  trace.operations[GlobalRank{0}][0].peer = 2;
  EXPECT_THAT(Findings(trace), HasSubstr("operations[0].peer: 2 is outside the communicator"));
}

TEST(TraceCheckTest, SizesStayBelowTheLimitWithoutOverflow) {
  Trace trace = TwoRanks();
  trace.operations[GlobalRank{0}][0].count = uint64_t{1} << 47;  // x 4 bytes x 2 ranks = 2^50
  EXPECT_EQ(Findings(trace), "");
  trace.operations[GlobalRank{0}][0].count += 1;
  EXPECT_THAT(Findings(trace), HasSubstr("exceed 1125899906842624 bytes"));
  trace.operations[GlobalRank{0}][0].count = UINT64_MAX;
  EXPECT_THAT(Findings(trace), HasSubstr("exceed 1125899906842624 bytes"));
  trace.operations[GlobalRank{0}][0].count = 0;
  EXPECT_THAT(Findings(trace), HasSubstr("operations[0].count: is 0"));
}

TEST(TraceCheckTest, RanksBeginEquallyManyIterations) {
  Trace trace = TwoRanks();
  trace.operations[GlobalRank{1}].back().begins_iteration = true;
  EXPECT_THAT(Findings(trace),
              HasSubstr("ranks[1].operations: begin 1 iterations, those of rank 0 0 "
                        "(expected equally many)"));
  trace.operations[GlobalRank{0}].back().begins_iteration = true;
  EXPECT_EQ(Findings(trace), "");
}

TEST(TraceCheckTest, StreamsGroupsGapsAndSourcesAreInRange) {
  Trace trace = TwoRanks();
  trace.operations[GlobalRank{0}][0].stream = kStreamsPerRankMax;
  EXPECT_THAT(Findings(trace), HasSubstr("stream: 65536 is out of range (0 to 65535)"));
  trace = TwoRanks();
  trace.operations[GlobalRank{0}][0].group = 1;
  EXPECT_THAT(Findings(trace), HasSubstr("group: is set for AllReduce (only Send and Recv"));
  trace.operations[GlobalRank{0}][0].group = 0;
  trace.operations[GlobalRank{0}][0].all_to_all = 1;
  EXPECT_THAT(Findings(trace), HasSubstr("all_to_all: is set without a group (the calls of an "
                                         "AllToAllv are Sends and Recvs of one group)"));
  trace = TwoRanks();
  trace.operations[GlobalRank{0}][0].in_place = true;
  EXPECT_THAT(Findings(trace), HasSubstr("in_place: is set for AllReduce (only AllToAll, Gather "
                                         "and Scatter copy within a rank)"));
  trace = TwoRanks();
  trace.operations[GlobalRank{0}][0].loss_tolerance_ppm = 1'000'000;
  EXPECT_THAT(Findings(trace), HasSubstr("loss_tolerance_ppm: 1000000 is out of range (expected 0 "
                                         "to 999999)"));
  trace = TwoRanks();
  trace.operations[GlobalRank{0}][0].measured_ps = -1;
  EXPECT_THAT(Findings(trace), HasSubstr("measured_ps: is negative"));
  trace.operations[GlobalRank{0}][0].measured_ps = 0;
  trace.operations[GlobalRank{0}][0].compute_before_ps = -1;
  EXPECT_THAT(Findings(trace), HasSubstr("compute_before_ps: is negative"));
  trace = TwoRanks();
  trace.operations[GlobalRank{0}][0].source_file = 1;
  EXPECT_THAT(Findings(trace), HasSubstr("source_file: 1 does not exist (there are 1)"));
}

TEST(TraceCheckTest, ManyErrorsEndWithTheirCount) {
  Trace trace = TwoRanks();
  TraceOperation bad = trace.operations[GlobalRank{0}][0];
  bad.root = 9;
  trace.operations[GlobalRank{0}].assign(30, bad);
  EXPECT_THAT(Findings(trace), HasSubstr("10 more errors of this kind in the trace"));
}

}  // namespace
}  // namespace railyard
