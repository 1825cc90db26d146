// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/job/job.h"

#include <chrono>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::HasSubstr;

class BuildJobTest : public ::testing::Test {
 protected:
  // A trace of `rank_count` ranks with the communicator "world" over all of them.
  explicit BuildJobTest(uint32_t rank_count = 4) {
    trace_.origin = "nccl-log";
    trace_.nccl_version = "2.27.5";
    trace_.rank_count = rank_count;
    trace_.source_files = {"job.log"};
    std::vector<uint32_t> ranks(rank_count);
    std::iota(ranks.begin(), ranks.end(), 0u);
    trace_.communicators.push_back({"world", GlobalRanksOf(ranks)});
    trace_.operations.resize(rank_count);
  }

  TraceOperation& Add(uint32_t rank, CollectiveKind kind, uint64_t count) {
    TraceOperation operation;
    operation.kind = kind;
    operation.count = count;
    operation.source_line = ++line_;
    trace_.operations[GlobalRank{rank}].push_back(operation);
    return trace_.operations[GlobalRank{rank}].back();
  }
  void AddOnAll(CollectiveKind kind, uint64_t count) {
    for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) Add(rank, kind, count);
  }
  void AddP2p(uint32_t rank, CollectiveKind kind, uint32_t peer, uint64_t count, uint32_t group) {
    TraceOperation& operation = Add(rank, kind, count);
    operation.peer = peer;
    operation.group = group;
  }
  Job Build() {
    auto job = BuildJob(trace_, diagnostics_);
    EXPECT_TRUE(job.has_value()) << diagnostics_.ToString();
    return job ? *std::move(job) : Job();
  }
  std::string BuildErrors() {
    EXPECT_FALSE(BuildJob(trace_, diagnostics_).has_value());
    return diagnostics_.ToString();
  }

  Trace trace_;
  Diagnostics diagnostics_;
  uint32_t line_ = 0;
};

TEST_F(BuildJobTest, RanksOfOneProgramShareTheirOperations) {
  trace_.communicators.push_back({"others", GlobalRanksOf({3, 1})});
  Add(0, CollectiveKind::kAllReduce, 100);
  Add(0, CollectiveKind::kAllToAll, 7);
  for (const GlobalRank rank : {GlobalRank{1}, GlobalRank{2}, GlobalRank{3}}) {
    trace_.operations.SetProgram(GlobalRank{rank},
                                 trace_.operations.program_of_rank(GlobalRank{0}));
  }
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 2u);
  EXPECT_EQ(job.operations.OperationCount(), 8u);
  EXPECT_EQ(job.operations.program_of_rank(GlobalRank{3}),
            job.operations.program_of_rank(GlobalRank{0}));
  EXPECT_EQ(job.operations[GlobalRank{3}][1].p2p_count, 8u);
  EXPECT_EQ(job.CommunicatorRank(CommunicatorIndex{1}, GlobalRank{3}), 0u);
}

TEST_F(BuildJobTest, RanksOfDifferentGroupsShareAProgramAndCallOnTheirOwn) {
  trace_.communicators = {{"a", GlobalRanksOf({0, 1})}, {"b", GlobalRanksOf({3, 2})}};
  Add(0, CollectiveKind::kAllReduce, 100);
  AddP2p(0, CollectiveKind::kSend, 1, 5, 0);
  Add(1, CollectiveKind::kAllReduce, 100);
  AddP2p(1, CollectiveKind::kRecv, 0, 5, 0);
  trace_.operations.SetProgram(GlobalRank{3}, trace_.operations.program_of_rank(GlobalRank{0}));
  trace_.operations.SetProgram(GlobalRank{2}, trace_.operations.program_of_rank(GlobalRank{1}));
  trace_.communicators_of_rank = {{0}, {}, {1}, {1}};
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 4u);
  for (uint32_t index = 0; index < 2; ++index) {
    const auto collective = [&](GlobalRank rank) {
      return job.CollectiveOf(rank, job.operations[rank][index]);
    };
    EXPECT_EQ(collective(GlobalRank{0}), collective(GlobalRank{1}));
    EXPECT_EQ(collective(GlobalRank{2}), collective(GlobalRank{3}));
    EXPECT_EQ(job.collectives[collective(GlobalRank{0})].communicator, 0u);
    EXPECT_EQ(job.collectives[collective(GlobalRank{3})].communicator, 1u);
  }
  EXPECT_TRUE(job.p2p_calls[job.operations[GlobalRank{3}][1].p2p_first].is_send);
  EXPECT_EQ(job.operations.program_of_rank(GlobalRank{3}),
            job.operations.program_of_rank(GlobalRank{0}));
  EXPECT_EQ(job.operations.program_of_rank(GlobalRank{2}),
            job.operations.program_of_rank(GlobalRank{1}));
  EXPECT_NE(job.operations.program_of_rank(GlobalRank{1}),
            job.operations.program_of_rank(GlobalRank{0}));
  EXPECT_EQ(job.p2p_calls.size(), 2u);  // each list once
}

TEST_F(BuildJobTest, RanksOfGroupsThatAreNotAsLargeHaveOperationsOfTheirOwn) {
  trace_.communicators = {{"three", GlobalRanksOf({0, 1, 2})}, {"one", GlobalRanksOf({3})}};
  Add(0, CollectiveKind::kAllReduce, 100);
  for (const GlobalRank rank : {GlobalRank{1}, GlobalRank{2}, GlobalRank{3}}) {
    trace_.operations.SetProgram(GlobalRank{rank},
                                 trace_.operations.program_of_rank(GlobalRank{0}));
  }
  trace_.communicators_of_rank = {{0}, {0}, {0}, {1}};
  const Job job = Build();
  EXPECT_EQ(job.operations.program_of_rank(GlobalRank{2}),
            job.operations.program_of_rank(GlobalRank{0}));
  EXPECT_NE(job.operations.program_of_rank(GlobalRank{3}),
            job.operations.program_of_rank(GlobalRank{0}));
}

// Describes a trace file, whose log need not be there, and which may be of no log.
TEST_F(BuildJobTest, CallsWithoutALineAreFoundInTheTraceFile) {
  trace_.file = "job.trace";
  AddOnAll(CollectiveKind::kAllReduce, 100);
  for (GlobalRank rank{0}; rank < trace_.rank_count; ++rank) {
    trace_.operations[GlobalRank{rank}].front().source_line = 0;
  }
  trace_.operations[GlobalRank{2}].front().count = 99;
  EXPECT_THAT(BuildErrors(), HasSubstr("job.trace:1:1: error: call 1 of rank 2 on "));
  trace_.operations[GlobalRank{2}].front().source_line = 7;
  EXPECT_THAT(BuildErrors(), HasSubstr("job.log:7:1: error: call 1 of rank 2 on "));
}

TEST_F(BuildJobTest, ASharedProgramWithoutACallOfTheOthersIsAnError) {
  Add(0, CollectiveKind::kAllReduce, 100);
  trace_.operations.SetProgram(GlobalRank{1}, trace_.operations.program_of_rank(GlobalRank{0}));
  trace_.operations.SetProgram(GlobalRank{2}, trace_.operations.program_of_rank(GlobalRank{0}));
  EXPECT_THAT(BuildErrors(), HasSubstr("rank 3 of communicator world makes 0 collective calls"));
}

TEST_F(BuildJobTest, SendsOfOneProgramAreEachRanksOwn) {
  // Both receive from rank 0, each its own message.
  Add(1, CollectiveKind::kRecv, 5).peer = 0;
  trace_.operations.SetProgram(GlobalRank{2}, trace_.operations.program_of_rank(GlobalRank{1}));
  AddP2p(0, CollectiveKind::kSend, 1, 5, 0);
  AddP2p(0, CollectiveKind::kSend, 2, 5, 0);
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 2u);
  EXPECT_NE(job.CollectiveOf(GlobalRank{1}, job.operations[GlobalRank{1}][0]),
            job.CollectiveOf(GlobalRank{2}, job.operations[GlobalRank{2}][0]));
}

TEST_F(BuildJobTest, MatchesCallsByOrderOnEachCommunicator) {
  trace_.communicators.push_back({"pair", GlobalRanksOf({2, 0})});
  AddOnAll(CollectiveKind::kAllReduce, 100);
  Add(2, CollectiveKind::kAllGather, 7).communicator = 1;
  AddOnAll(CollectiveKind::kReduceScatter, 30);
  Add(0, CollectiveKind::kAllGather, 7).communicator = 1;  // later than on rank 2: no matter
  trace_.operations[GlobalRank{1}][1].compute_before_ps = 5;
  trace_.operations[GlobalRank{1}][1].stream = 3;
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 3u);
  EXPECT_EQ(job.collectives[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(job.collectives[0].bytes, 400u);
  EXPECT_EQ(job.collectives[0].rank_count, 4u);
  EXPECT_EQ(job.collectives[1].kind, CollectiveKind::kReduceScatter);
  EXPECT_EQ(job.collectives[1].bytes, 4u * 30 * 4);
  EXPECT_EQ(job.collectives[2].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(job.collectives[2].bytes, 2u * 7 * 4);
  ASSERT_EQ(job.operations[GlobalRank{2}].size(), 3u);
  EXPECT_EQ(job.CollectiveOf(GlobalRank{2}, job.operations[GlobalRank{2}][1]), 2u);
  EXPECT_EQ(job.CommunicatorRank(job.collectives[2].communicator, GlobalRank{2}), 0u);
  EXPECT_EQ(job.CommunicatorRank(
                job.collectives[job.CollectiveOf(GlobalRank{0}, job.operations[GlobalRank{0}][2])]
                    .communicator,
                GlobalRank{0}),
            1u);
  EXPECT_EQ(job.operations[GlobalRank{1}][1].compute_before_ps, 5);
  EXPECT_EQ(job.operations[GlobalRank{1}][1].stream, 3u);
  EXPECT_EQ(job.nccl_version, "2.27.5");
  EXPECT_EQ(job.rank_count, 4u);
}

TEST_F(BuildJobTest, TakesTheAlgorithmFromWhicheverRankStatesIt) {
  AddOnAll(CollectiveKind::kAllReduce, 100);
  trace_.operations[GlobalRank{2}][0].algorithm = Algorithm::kRing;
  trace_.operations[GlobalRank{2}][0].protocol = Protocol::kSimple;
  const Job job = Build();
  EXPECT_EQ(job.collectives[0].logged_algorithm, Algorithm::kRing);
  EXPECT_EQ(job.collectives[0].logged_protocol, Protocol::kSimple);
}

TEST_F(BuildJobTest, ReportsCallsThatDifferWithBothLines) {
  AddOnAll(CollectiveKind::kAllReduce, 100);
  AddOnAll(CollectiveKind::kAllReduce, 100);  // lines 5 to 8
  trace_.operations[GlobalRank{2}][1].count = 200;
  const std::string errors = BuildErrors();
  EXPECT_THAT(errors, HasSubstr("job.log:7"));
  EXPECT_THAT(errors,
              HasSubstr("call 2 of rank 2 on communicator world is AllReduce of 200 float32, "
                        "that of rank 0 is AllReduce of 100 float32: the count differs"));
  EXPECT_THAT(errors, HasSubstr("job.log:5"));
  EXPECT_THAT(errors, HasSubstr("note"));
}

TEST_F(BuildJobTest, ReportsEveryWayCallsCanDiffer) {
  const auto differs = [&](const std::function<void(TraceOperation&)>& change) {
    diagnostics_ = {};
    trace_.operations = {};
    trace_.operations.resize(4);
    AddOnAll(CollectiveKind::kBroadcast, 100);
    for (size_t rank = 0; rank < trace_.operations.size(); ++rank) {
      auto& operations = trace_.operations[GlobalRank{rank}];
      operations[0].algorithm = Algorithm::kRing;
      operations[0].protocol = Protocol::kSimple;
    }
    change(trace_.operations[GlobalRank{1}][0]);
    return BuildErrors();
  };
  EXPECT_THAT(differs([](auto& call) { call.kind = CollectiveKind::kReduce; }),
              HasSubstr("the kind differs"));
  EXPECT_THAT(differs([](auto& call) { call.datatype = Datatype::kInt8; }),
              HasSubstr("the datatype differs"));
  EXPECT_THAT(differs([](auto& call) { call.root = 2; }), HasSubstr("the root differs"));
  EXPECT_THAT(differs([](auto& call) { call.algorithm = Algorithm::kTree; }),
              HasSubstr("the algorithm differs"));
  EXPECT_THAT(differs([](auto& call) { call.protocol = Protocol::kLl; }),
              HasSubstr("the protocol differs"));
}

TEST_F(BuildJobTest, ReportsOnlyTheFirstDifferenceOfACommunicator) {
  AddOnAll(CollectiveKind::kAllReduce, 100);
  AddOnAll(CollectiveKind::kAllGather, 100);
  trace_.operations[GlobalRank{1}].erase(trace_.operations[GlobalRank{1}].begin());
  BuildErrors();
  EXPECT_EQ(diagnostics_.findings().size(), 2u);  // an error and its note
}

TEST_F(BuildJobTest, NamesRanksWithFewerCalls) {
  AddOnAll(CollectiveKind::kAllReduce, 100);
  AddOnAll(CollectiveKind::kAllGather, 100);  // rank 0's is line 5
  trace_.operations[GlobalRank{3}].pop_back();
  const std::string errors = BuildErrors();
  EXPECT_THAT(errors, HasSubstr("job.log:5"));
  EXPECT_THAT(errors, HasSubstr("rank 3 of communicator world makes 1 collective calls, rank 0 "
                                "makes 2: it lacks this AllGather"));
}

TEST_F(BuildJobTest, JoinsASendAndItsRecv) {
  AddP2p(1, CollectiveKind::kSend, 3, 10, 0);
  AddP2p(3, CollectiveKind::kRecv, 1, 10, 0);
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 1u);
  EXPECT_EQ(job.collectives[0].kind, CollectiveKind::kSend);
  EXPECT_TRUE(job.collectives[0].is_p2p());
  EXPECT_EQ(job.collectives[0].bytes, 40u);
  EXPECT_EQ(job.collectives[0].rank_count, 2u);
  EXPECT_EQ(job.collectives[0].count, 0u);
  ASSERT_EQ(job.operations[GlobalRank{3}].size(), 1u);
  const JobOperation& recv = job.operations[GlobalRank{3}][0];
  ASSERT_EQ(recv.p2p_count, 1u);
  EXPECT_FALSE(job.p2p_calls[recv.p2p_first].is_send);
  EXPECT_EQ(job.p2p_calls[recv.p2p_first].peer, 1u);
  EXPECT_EQ(job.p2p_calls[recv.p2p_first].bytes, 40u);
}

TEST_F(BuildJobTest, KeepsMessagesOfOnePairInOrder) {
  AddP2p(0, CollectiveKind::kSend, 1, 1, 0);
  AddP2p(0, CollectiveKind::kSend, 1, 2, 0);
  AddP2p(1, CollectiveKind::kRecv, 0, 1, 0);
  AddP2p(1, CollectiveKind::kRecv, 0, 2, 0);
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 2u);
  EXPECT_EQ(job.CollectiveOf(GlobalRank{0}, job.operations[GlobalRank{0}][1]),
            job.CollectiveOf(GlobalRank{1}, job.operations[GlobalRank{1}][1]));
  EXPECT_EQ(
      job.collectives[job.CollectiveOf(GlobalRank{1}, job.operations[GlobalRank{1}][1])].bytes, 8u);
}

TEST_F(BuildJobTest, JoinsGroupsThatTalkToOneAnother) {
  // 0 → 1 → 2, rank 1's Recv and Send in one group; rank 3 apart.
  AddP2p(0, CollectiveKind::kSend, 1, 10, 0);
  AddP2p(1, CollectiveKind::kRecv, 0, 10, 7);
  AddP2p(1, CollectiveKind::kSend, 2, 20, 7);
  AddP2p(2, CollectiveKind::kRecv, 1, 20, 0);
  AddOnAll(CollectiveKind::kAllReduce, 5);
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 2u);
  EXPECT_EQ(job.collectives[0].kind, CollectiveKind::kSend);
  EXPECT_EQ(job.collectives[0].bytes, 20u * 4);  // what rank 1 sends is most
  EXPECT_EQ(job.collectives[0].rank_count, 3u);
  EXPECT_EQ(job.operations[GlobalRank{1}].size(), 2u);
  EXPECT_EQ(job.operations[GlobalRank{1}][0].p2p_count, 2u);
  EXPECT_EQ(job.CollectiveOf(GlobalRank{3}, job.operations[GlobalRank{3}][0]), 1u);
}

TEST_F(BuildJobTest, AddsTheComputeOfAGroup) {
  AddP2p(0, CollectiveKind::kSend, 1, 10, 7);
  AddP2p(0, CollectiveKind::kSend, 2, 10, 7);
  trace_.operations[GlobalRank{0}][0].compute_before_ps = 100;
  trace_.operations[GlobalRank{0}][1].compute_before_ps = 20;
  AddP2p(1, CollectiveKind::kRecv, 0, 10, 0);
  AddP2p(2, CollectiveKind::kRecv, 0, 10, 0);
  const Job job = Build();
  EXPECT_EQ(job.operations[GlobalRank{0}][0].compute_before_ps, 120);
}

TEST_F(BuildJobTest, RecognizesAnAllToAll) {
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    for (uint32_t peer = 0; peer < 4; ++peer) {
      AddP2p(rank, CollectiveKind::kSend, peer, 16, 1);
      AddP2p(rank, CollectiveKind::kRecv, peer, 16, 1);
    }
  }
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 1u);
  EXPECT_EQ(job.collectives[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(job.collectives[0].count, 16u);
  EXPECT_EQ(job.collectives[0].bytes, 4u * 16 * 4);
  EXPECT_EQ(job.operations[GlobalRank{2}][0].p2p_count, 8u);
}

TEST_F(BuildJobTest, CallsAnUnequalExchangeSendRecv) {
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    for (uint32_t peer = 0; peer < 4; ++peer) {
      AddP2p(rank, CollectiveKind::kSend, peer, rank + 2 * peer, 1);
      AddP2p(rank, CollectiveKind::kRecv, peer, peer + 2 * rank, 1);
    }
  }
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 1u);
  EXPECT_EQ(job.collectives[0].kind, CollectiveKind::kSend);
  // Rank 3 receives most: 4 B x (rank + 2 x 3) from each other rank.
  EXPECT_EQ(job.collectives[0].bytes, 4u * (6 + 7 + 8));
}

// nccl-tests' sendrecv_perf on two ranks: each sends S to the other, and S is the size.
TEST_F(BuildJobTest, TwoRanksThatSwapAreASendRecv) {
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}}) {
    AddP2p(rank, CollectiveKind::kSend, 1 - rank, 16, 1);
    AddP2p(rank, CollectiveKind::kRecv, 1 - rank, 16, 1);
  }
  trace_.communicators[0].ranks = GlobalRanksOf({0, 1});
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 1u);
  EXPECT_EQ(job.collectives[0].kind, CollectiveKind::kSend);
  EXPECT_EQ(job.collectives[0].bytes, 16u * 4);
}

// Its alltoall_perf: each sends half of S to itself as well.
TEST_F(BuildJobTest, TwoRanksThatSendToThemselvesTooAreAnAllToAll) {
  for (const GlobalRank rank : {GlobalRank{0}, GlobalRank{1}}) {
    for (const uint32_t peer : {0u, 1u}) {
      AddP2p(rank, CollectiveKind::kSend, peer, 16, 1);
      AddP2p(rank, CollectiveKind::kRecv, peer, 16, 1);
    }
  }
  trace_.communicators[0].ranks = GlobalRanksOf({0, 1});
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 1u);
  EXPECT_EQ(job.collectives[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(job.collectives[0].bytes, 2u * 16 * 4);
}

// Ranks 0 and 1 talk, 2 and 3 do, in the first; nobody but 1 and 2 in the second.
TEST_F(BuildJobTest, AnAllToAllvIsOneCollectiveThoughFewPairsTalk) {
  const auto exchange = [this](uint32_t all_to_all, uint32_t from, uint32_t to) {
    AddP2p(from, CollectiveKind::kSend, to, uint64_t{10} * all_to_all, all_to_all);
    trace_.operations[GlobalRank{from}].back().all_to_all = all_to_all;
    AddP2p(to, CollectiveKind::kRecv, from, uint64_t{10} * all_to_all, all_to_all);
    trace_.operations[GlobalRank{to}].back().all_to_all = all_to_all;
  };
  for (const auto& [from, to] : {std::pair{0u, 1u}, {1u, 0u}, {2u, 3u}}) exchange(1, from, to);
  exchange(2, 1, 2);
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 2u);
  for (const JobCollective& collective : job.collectives) {
    EXPECT_TRUE(collective.is_all_to_all_v);
    EXPECT_EQ(collective.kind, CollectiveKind::kSend);
  }
  EXPECT_EQ(job.collectives[0].rank_count, 4u);
  EXPECT_EQ(job.collectives[0].bytes, 3u * 10 * 4);
  EXPECT_EQ(job.collectives[1].rank_count, 2u);
  EXPECT_EQ(job.collectives[1].bytes, 20u * 4);
}

TEST_F(BuildJobTest, ReportsASendWithoutARecv) {
  AddP2p(0, CollectiveKind::kSend, 1, 10, 0);
  AddP2p(0, CollectiveKind::kSend, 1, 10, 0);
  AddP2p(1, CollectiveKind::kRecv, 0, 10, 0);
  EXPECT_THAT(BuildErrors(), HasSubstr("job.log:2:1: error: Send 2 from rank 0 to rank 1 of "
                                       "communicator world has no Recv"));
}

TEST_F(BuildJobTest, ReportsARecvWithoutASend) {
  AddP2p(1, CollectiveKind::kRecv, 0, 10, 0);
  EXPECT_THAT(BuildErrors(), HasSubstr("Recv 1 from rank 0 to rank 1 of communicator world has no "
                                       "Send"));
}

TEST_F(BuildJobTest, ReportsSizesThatDisagreeWithBothLines) {
  AddP2p(0, CollectiveKind::kSend, 1, 10, 0);
  AddP2p(1, CollectiveKind::kRecv, 0, 11, 0);
  const std::string errors = BuildErrors();
  EXPECT_THAT(errors, HasSubstr("job.log:2"));
  EXPECT_THAT(errors, HasSubstr("Recv of 44 B from rank 0 by rank 1 of communicator world meets a "
                                "Send of 40 B"));
  EXPECT_THAT(errors, HasSubstr("job.log:1"));
}

TEST_F(BuildJobTest, ReportsASendToItselfOutsideTheGroupOfTheRecv) {
  AddP2p(0, CollectiveKind::kSend, 0, 10, 0);
  AddP2p(0, CollectiveKind::kRecv, 0, 10, 0);
  EXPECT_THAT(BuildErrors(), HasSubstr("rank 0 of communicator world sends to itself and receives "
                                       "in another group"));
}

class BuildJobWithManyRanksTest : public BuildJobTest {
 protected:
  BuildJobWithManyRanksTest() : BuildJobTest(40) {}
};

TEST_F(BuildJobWithManyRanksTest, CountsUnmatchedMessagesBeyondTwenty) {
  for (uint32_t peer = 1; peer < 40; ++peer) AddP2p(0, CollectiveKind::kSend, peer, 1, 1);
  EXPECT_THAT(BuildErrors(), HasSubstr("19 more pairs of ranks"));
  EXPECT_EQ(diagnostics_.findings().size(), 21u);
}

TEST_F(BuildJobTest, ExpandsTheAllToAllCallOfTheApi) {
  AddOnAll(CollectiveKind::kAllToAll, 25);
  const Job job = Build();
  ASSERT_EQ(job.collectives.size(), 1u);
  EXPECT_EQ(job.collectives[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(job.collectives[0].bytes, 4u * 25 * 4);
  EXPECT_EQ(job.p2p_calls.size(), 8u);  // one list for all ranks
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    const JobOperation& operation = job.operations[GlobalRank{rank}][0];
    ASSERT_EQ(operation.p2p_count, 8u);
    for (uint32_t i = 0; i < 8; ++i) {
      const P2pCall& call = job.p2p_calls[operation.p2p_first + i];
      EXPECT_EQ(call.peer, i / 2);
      EXPECT_EQ(call.is_send, i % 2 == 0);
      EXPECT_EQ(call.bytes, 100u);
    }
  }
}

// Ranks 2 and 3 share the operations of ranks 0 and 1, but not their collective.
TEST_F(BuildJobTest, PlansAllToAllsOfSomeSizeAsAWhole) {
  trace_.communicators = {{"a", GlobalRanksOf({0, 1})}, {"b", GlobalRanksOf({2, 3})}};
  trace_.communicators_of_rank = {{0}, {0}, {1}, {1}};
  Add(0, CollectiveKind::kAllToAll, 25);
  for (GlobalRank rank{1}; rank < 4; ++rank) {
    trace_.operations.SetProgram(GlobalRank{rank},
                                 trace_.operations.program_of_rank(GlobalRank{0}));
  }
  Job job = Build();
  for (GlobalRank rank{1}; rank < 4; ++rank) {
    ASSERT_EQ(job.operations.program_of_rank(GlobalRank{rank}),
              job.operations.program_of_rank(GlobalRank{0}));
  }
  Job larger = job;
  PlanAllToAllsWhole(4, larger);
  EXPECT_TRUE(larger.operations[GlobalRank{0}][0].is_p2p);
  Job both = job;
  PlanAllToAllsWhole(2, both);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    EXPECT_FALSE(both.operations[GlobalRank{rank}][0].is_p2p);
    EXPECT_EQ(both.operations.program_of_rank(GlobalRank{rank}),
              both.operations.program_of_rank(GlobalRank{0}));
  }
  // AllToAlls of expert kernels are not changed.
  job.collectives[job.CollectiveOf(GlobalRank{2}, job.operations[GlobalRank{2}][0])].expert_kernel =
      ExpertKernel::kDeepEp;
  PlanAllToAllsWhole(2, job);
  EXPECT_FALSE(job.operations[GlobalRank{0}][0].is_p2p);
  EXPECT_FALSE(job.operations[GlobalRank{1}][0].is_p2p);
  EXPECT_TRUE(job.operations[GlobalRank{2}][0].is_p2p);
  EXPECT_EQ(job.operations[GlobalRank{3}][0].p2p_count, 4u);
}

TEST_F(BuildJobTest, ExpandsGatherAndScatterCallsOfTheApi) {
  AddOnAll(CollectiveKind::kGather, 25);
  AddOnAll(CollectiveKind::kScatter, 25);
  for (size_t rank = 0; rank < trace_.operations.size(); ++rank) {
    trace_.operations[GlobalRank{rank}][0].root = trace_.operations[GlobalRank{rank}][1].root = 2;
  }
  const Job job = Build();
  EXPECT_TRUE(job.collectives[0].is_p2p());
  EXPECT_TRUE(job.collectives[1].is_p2p());
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    const JobOperation& gather = job.operations[GlobalRank{rank}][0];
    const JobOperation& scatter = job.operations[GlobalRank{rank}][1];
    EXPECT_EQ(gather.p2p_count, rank == 2 ? 5u : 1u);
    EXPECT_EQ(scatter.p2p_count, rank == 2 ? 5u : 1u);
    EXPECT_TRUE(job.p2p_calls[gather.p2p_first].is_send);
    EXPECT_EQ(job.p2p_calls[gather.p2p_first].peer, 2u);
    const P2pCall& last = job.p2p_calls[scatter.p2p_first + scatter.p2p_count - 1];
    EXPECT_FALSE(last.is_send);
    EXPECT_EQ(last.peer, 2u);
  }
}

class BuildJobOf16RanksTest : public BuildJobTest {
 protected:
  BuildJobOf16RanksTest() : BuildJobTest(16) {}
};

TEST_F(BuildJobOf16RanksTest, MatchesManyCollectivesInLinearTime) {
  constexpr uint32_t kCalls = 60'000;
  for (size_t rank = 0; rank < trace_.operations.size(); ++rank) {
    auto& operations = trace_.operations[GlobalRank{rank}];
    operations.resize(kCalls);
    for (TraceOperation& operation : operations) operation.count = 8192;
  }
  const auto start = std::chrono::steady_clock::now();
  const Job job = Build();
  EXPECT_EQ(job.collectives.size(), kCalls);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace railyard
