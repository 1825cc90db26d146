// SPDX-License-Identifier: GPL-2.0-only
// Logs that hold only some ranks, and ranks that only a map gives.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/log_text.h"

namespace railyard::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kReconstruct = NcclLogOptions::MissingRanks::kReconstruct;

std::string Comm(uint32_t rank) { return fmt::format("0x55aa000000{:02x}", rank); }
std::string JobInit(uint32_t rank, uint32_t nranks, uint32_t ranks_per_host = 8) {
  return InitLines(rank, nranks, Comm(rank), "0x1", ranks_per_host);
}
std::string Line(uint32_t rank, uint32_t nranks, CallText call, uint32_t ranks_per_host = 8) {
  call.comm = Comm(rank);
  call.nranks = nranks;
  return Prefix(rank, ranks_per_host) + CallMessage(call) + "\n";
}

// Ranks 0 and 1 of a job of 4.
std::string HalfOfFour() {
  return JobInit(0, 4) + JobInit(1, 4) + Line(0, 4, {.name = "Broadcast", .root = 3}) +
         Line(1, 4, {.name = "Broadcast", .root = 3}) + Line(0, 4, {.count = 7}) +
         Line(1, 4, {.count = 7});
}

TEST(NcclLogMissingRanksTest, MissingProcessesAreRefused) {
  const ImportResult result = Import(HalfOfFour());
  EXPECT_THAT(result.diagnostics.ToString(),
              HasSubstr("missing_ranks: the job has 4 ranks, the logs hold no process known to be "
                        "rank 2 to 3 (give their logs as well, or missing_ranks: RECONSTRUCT"));
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kRanksMissing).count, 4u);
}

TEST(NcclLogMissingRanksTest, ASilentMemberIsRefused) {
  const ImportResult result = Import(JobInit(0, 2) + JobInit(1, 2) + Line(0, 2, {}));
  EXPECT_THAT(result.diagnostics.ToString(),
              HasSubstr("missing_ranks: communicator 0x1 has 2 ranks, the logs hold no call of its "
                        "rank 1 (give their logs"));
}

TEST(NcclLogMissingRanksTest, MissingRanksRepeatTheProgram) {
  const ImportResult result = Import(HalfOfFour(), {.missing_ranks = kReconstruct});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  const Trace& trace = *result.import.trace;
  EXPECT_THAT(trace.communicators[0].ranks, ElementsAre(0, 1, 2, 3));
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    ASSERT_EQ(trace.operations[GlobalRank{rank}].size(), 2u);
    EXPECT_EQ(trace.operations[GlobalRank{rank}][0].kind, CollectiveKind::kBroadcast);
    EXPECT_EQ(trace.operations[GlobalRank{rank}][0].root, 3u);
    EXPECT_EQ(trace.operations[GlobalRank{rank}][1].count, 7u);
    EXPECT_EQ(trace.operations[GlobalRank{rank}][1].source_line == 0, rank >= 2);
  }
  EXPECT_EQ(result.import.report.calls_seen(), 4u);
  EXPECT_EQ(result.import.report.calls_reconstructed, 4u);
  EXPECT_EQ(result.import.report.ranks_reconstructed, 2u);
  EXPECT_THAT(result.import.report.reconstructed,
              Contains(HasSubstr("ranks 2 to 3 make the calls of rank 0")));
}

TEST(NcclLogMissingRanksTest, RanksPresentMustAgreeToBeRepeated) {
  const ImportResult result =
      Import(JobInit(0, 4) + JobInit(1, 4) + Line(0, 4, {.count = 7}) + Line(1, 4, {.count = 8}),
             {.missing_ranks = kReconstruct});
  EXPECT_THAT(result.diagnostics.ToString(), HasSubstr("call 1 of rank 1 on communicator 0x1"));
}

TEST(NcclLogMissingRanksTest, RepeatedPeersKeepTheirDistance) {
  // A ring shift on 4 ranks: send to the next, receive from the one before.
  std::string log;
  for (GlobalRank rank{0}; rank < 2; ++rank) log += JobInit(rank, 4);
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    log += Line(rank, 4, {.name = "Send", .root = (rank + 1) % 4});
    log += Line(rank, 4, {.name = "Recv", .root = (rank + 3) % 4});
  }
  const ImportResult result = Import(log, {.missing_ranks = kReconstruct});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    const auto& operations = result.import.trace->operations[GlobalRank{rank}];
    ASSERT_EQ(operations.size(), 2u);
    EXPECT_EQ(operations[0].peer, (rank + 1) % 4);
    EXPECT_EQ(operations[1].peer, (rank + 3) % 4);
    EXPECT_EQ(operations[1].group, 1u);
  }
}

TEST(NcclLogMissingRanksTest, AGroupMayListItsPeersInAnyOrder) {
  // An AlltoAll lists peers 0 to 3 on every rank, which is another order of distances on each.
  std::string log;
  for (GlobalRank rank{0}; rank < 2; ++rank) log += JobInit(rank, 4);
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    for (uint32_t peer = 0; peer < 4; ++peer) {
      log += Line(rank, 4, {.name = "Send", .root = peer});
      log += Line(rank, 4, {.name = "Recv", .root = peer});
    }
  }
  const ImportResult result = Import(log, {.missing_ranks = kReconstruct});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.trace->operations[GlobalRank{3}].size(), 8u);
}

TEST(NcclLogMissingRanksTest, RanksThatSendOtherwiseCannotBeRepeated) {
  const ImportResult result =
      Import(JobInit(0, 4) + JobInit(1, 4) + Line(0, 4, {.name = "Send", .root = 1}) +
                 Line(1, 4, {.name = "Recv", .root = 0}),
             {.missing_ranks = kReconstruct});
  EXPECT_THAT(result.diagnostics.ToString(),
              HasSubstr("missing_ranks: rank 1 sends and receives otherwise than rank 0 does"));
}

// 8 ranks on 4 servers of 2: communicators of 2 within a server and of 4 across, by two splits.
std::string TwoLevelJob(const std::vector<uint32_t>& ranks) {
  std::string log;
  for (const uint32_t rank : ranks) log += JobInit(rank, 8, 2);
  for (const uint32_t rank : ranks) {
    for (uint32_t split = 1; split <= 2; ++split) {
      const uint32_t own = split == 1 ? rank % 2 : rank / 2;
      const uint32_t color = split == 1 ? rank / 2 : rank % 2;
      log += fmt::format(
          "{}ncclCommSplit comm 0x55bb0{}0{} rank {} nranks {} cudaDev {} nvmlDev {} busId 1b000 "
          "parent {} splitCount {} color {} key {} - Init COMPLETE\n",
          Prefix(rank, 2), split, rank, own, split == 1 ? 2 : 4, rank % 2, rank % 2, Comm(rank),
          split, color, rank);
    }
  }
  for (const uint32_t rank : ranks) {
    log += Prefix(rank, 2) +
           CallMessage({.count = 5, .comm = fmt::format("0x55bb010{}", rank), .nranks = 2}) + "\n";
    log += Prefix(rank, 2) +
           CallMessage({.name = "AllGather",
                        .count = 6,
                        .comm = fmt::format("0x55bb020{}", rank),
                        .nranks = 4}) +
           "\n";
    log += Line(rank, 8, {.count = 7}, 2);
  }
  return log;
}

TEST(NcclLogMissingRanksTest, TheLogOfOneServerPlacesTheCommunicatorsOfAll) {
  const ImportResult result = Import(TwoLevelJob({2, 3}), {.missing_ranks = kReconstruct});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  const Trace& trace = *result.import.trace;
  EXPECT_EQ(trace.rank_count, 8u);
  for (GlobalRank rank{0}; rank < 8; ++rank) {
    ASSERT_EQ(trace.operations[GlobalRank{rank}].size(), 3u) << rank;
    const auto ranks_of = [&](size_t i) {
      return trace.communicators[trace.operations[GlobalRank{rank}][i].communicator].ranks;
    };
    EXPECT_THAT(ranks_of(0), ElementsAre(rank / 2 * 2, rank / 2 * 2 + 1));
    EXPECT_THAT(ranks_of(1), ElementsAre(rank % 2, rank % 2 + 2, rank % 2 + 4, rank % 2 + 6));
    EXPECT_EQ(ranks_of(2).size(), 8u);
  }
  EXPECT_EQ(trace.communicators.size(), 4u + 2u + 1u);
}

TEST(NcclLogMissingRanksTest, ReconstructionOfACompleteLogChangesNothing) {
  const std::string log = TwoLevelJob({0, 1, 2, 3, 4, 5, 6, 7});
  const ImportResult refuse = Import(log);
  const ImportResult reconstruct = Import(log, {.missing_ranks = kReconstruct});
  ASSERT_TRUE(refuse.import.trace && reconstruct.import.trace);
  EXPECT_EQ(refuse.import.report.ToString().find("reconstructed: 0"),
            reconstruct.import.report.ToString().find("reconstructed: 0"));
  EXPECT_EQ(refuse.import.trace->communicators.size(), 7u);
  EXPECT_EQ(reconstruct.import.report.calls_reconstructed, 0u);
}

TEST(NcclLogMissingRanksTest, CallsOnCommunicatorsThatCannotBePlacedAreDropped) {
  // Rank 0 alone: its communicators of 2 may be neighbours or any regular distance apart.
  const ImportResult result = Import(TwoLevelJob({0}), {.missing_ranks = kReconstruct});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kAmbiguousCommunicator).count, 2u);
  EXPECT_EQ(result.import.trace->operations[GlobalRank{7}].size(), 1u);
}

TEST(NcclLogMissingRanksTest, RanksWithDifferentProgramsCannotBeRepeated) {
  std::string log = TwoLevelJob({2, 3});
  const size_t last = log.rfind('\n', log.size() - 2);
  const ImportResult result = Import(log.substr(0, last + 1), {.missing_ranks = kReconstruct});
  EXPECT_THAT(result.diagnostics.ToString(),
              HasSubstr("missing_ranks: rank 3 makes other calls than rank 2, so the missing ranks "
                        "0 to 1, 4 to 7 cannot repeat them"));
}

TEST(NcclLogMissingRanksTest, AnAbsurdReconstructionIsRefused) {
  std::string log;
  for (int i = 0; i < 21; ++i) {
    log += Prefix(0) + CallMessage({.count = 1, .nranks = 1'000'000}) + " task 0 globalrank 0\n";
  }
  const ImportResult result = Import(log, {.missing_ranks = kReconstruct});
  EXPECT_THAT(result.diagnostics.ToString(),
              HasSubstr("more than 20000000 calls would be reconstructed"));
}

// ---- Ranks from elsewhere than communicator lines. ----

TEST(NcclLogMissingRanksTest, ARankMapPlacesProcesses) {
  const std::string log = Line(0, 2, {.name = "Broadcast"}) + Line(1, 2, {.name = "Broadcast"});
  const ImportResult result =
      Import(log, {.rank_map = {{.host = "node0", .pid = 1000, .rank = 1},
                                {.host = "node0", .pid = 1001, .rank = 0}}});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.trace->operations[GlobalRank{1}][0].source_line, 1u);
}

TEST(NcclLogMissingRanksTest, ARankMapNamesTheDevicesOfOneProcess) {
  std::string log;
  for (uint32_t device = 0; device < 2; ++device) {
    log += fmt::format("h:9:9 [{}] NCCL INFO {}\n", device,
                       CallMessage({.comm = fmt::format("0x55aa{}", device)}));
  }
  const ImportResult result =
      Import(log, {.rank_map = {{.host = "h", .pid = 9, .device = 0, .rank = 1},
                                {.host = "h", .pid = 9, .device = 1, .rank = 0}}});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.trace->operations[GlobalRank{0}][0].source_line, 2u);
  const ImportResult vague = Import(log, {.rank_map = {{.host = "h", .pid = 9, .rank = 1}}});
  EXPECT_THAT(vague.diagnostics.ToString(),
              HasSubstr("rank_map[0]: h:9 drives 2 devices (say which: device: 0)"));
}

TEST(NcclLogMissingRanksTest, AFaultyRankMapIsLocated) {
  const std::string log = JobInit(0, 2) + JobInit(1, 2) + Line(0, 2, {}) + Line(1, 2, {});
  const SourceLocation where{.file = "s.textproto", .line = 4, .column = 2};
  const auto findings = [&](std::vector<NcclLogOptions::RankOf> map) {
    return Import(log, {.rank_map = std::move(map)}).diagnostics.ToString();
  };
  EXPECT_THAT(findings({{.host = "node0", .pid = 1, .rank = 0, .where = where}}),
              HasSubstr("s.textproto:4:2: error: rank_map[0]: no communicator in the logs is of "
                        "host node0, pid 1 (host and pid as in a line's prefix HOST:PID:TID)"));
  EXPECT_THAT(findings({{.host = "node0", .pid = 1000, .rank = 0},
                        {.host = "node0", .pid = 1001, .rank = 0}}),
              HasSubstr("rank_map[1]: rank 0 is given twice (also by rank_map[0])"));
  EXPECT_THAT(findings({{.host = "node0", .pid = 1000, .rank = 0},
                        {.host = "node0", .pid = 1000, .rank = 1}}),
              HasSubstr("rank_map[1]: node0:1000 [0] has rank 0 already"));
  EXPECT_THAT(findings({{.host = "node0", .pid = 1000, .rank = 1'000'000}}),
              HasSubstr("rank_map[0]: rank 1000000 is too large (0 to 999999)"));
  EXPECT_THAT(
      findings({{.host = "node0", .pid = 1000, .rank = 1}}),
      HasSubstr("rank_map: node0:1000 [0] is given as rank 1, the log's Init lines say rank "
                "0 (leave it out of rank_map)"));
}

TEST(NcclLogMissingRanksTest, InitTimingsGiveTheRankOfAProcess) {
  std::string log;
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    log += fmt::format("{}Init timings - ncclCommInitRank: rank {} nranks 2 total 1.0 (kernels\n",
                       Prefix(rank), 1 - rank);
    log += Line(rank, 2, {});
  }
  const ImportResult result = Import(log);
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.trace->operations[GlobalRank{1}][0].source_line, 2u);
}

// RCCL's `globalrank` is the rank in the call's communicator. Where no Init line gives it, that of
// the largest communicator is the global rank.
TEST(NcclLogMissingRanksTest, RcclStatesTheRankInTheCommunicator) {
  const auto call = [](uint32_t process, const char* comm, uint32_t nranks, uint32_t rank) {
    return Prefix(process) + CallMessage({.comm = comm, .nranks = nranks}) +
           fmt::format(" task 0 globalrank {}\n", rank);
  };
  const ImportResult of_two = Import(call(0, "0x1", 2, 1) + call(1, "0x2", 2, 0));
  ASSERT_TRUE(of_two.import.trace) << of_two.diagnostics.ToString();
  EXPECT_EQ(of_two.import.trace->operations[GlobalRank{1}][0].source_line, 1u);

  // Pairs of a job of four: each process is rank 0 or 1 in its pair.
  std::string log;
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    log += JobInit(rank, 4);
    log += fmt::format(
        "{}ncclCommInitRank comm 0x77{} rank {} nranks 2 cudaDev {} nvmlDev {} busId 1b000 commId "
        "0x{} - Init COMPLETE\n",
        Prefix(rank), rank, rank % 2, rank, rank, 2 + rank / 2);
  }
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    log += call(rank, fmt::format("0x77{}", rank).c_str(), 2, rank % 2);
  }
  const ImportResult of_four = Import(log);
  ASSERT_TRUE(of_four.import.trace) << of_four.diagnostics.ToString();
  const Trace& trace = *of_four.import.trace;
  EXPECT_EQ(trace.rank_count, 4u);
  EXPECT_EQ(of_four.import.report.calls_imported(), 4u);
  EXPECT_THAT(trace.communicators[trace.operations[GlobalRank{3}][0].communicator].ranks,
              ElementsAre(2, 3));
}

TEST(NcclLogMissingRanksTest, RcclsRanksThatCannotBeAreDropped) {
  const std::string one =
      Prefix(0) + CallMessage({.comm = "0x1", .nranks = 2}) + " task 0 globalrank ";
  const std::string two =
      Prefix(1) + CallMessage({.comm = "0x2", .nranks = 2}) + " task 0 globalrank ";
  const ImportResult result = Import(one + "1\n" + one + "0\n" + two + "0\n" + two + "2\n");
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.report.calls_imported(), 2u);
  EXPECT_THAT(result.import.report.ToString(),
              HasSubstr("globalrank 0 on a communicator in which its process is rank 1"));
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kOutOfRange).count, 2u);
}

// The first stage of a pipeline of two: ranks 0 and 1 send to 2 and 3, which are not in the log. If
// these did the same, rank 0 would get messages for which it has no Recv.
TEST(NcclLogMissingRanksTest, MessagesOfOneStageAreNotRepeated) {
  std::string log;
  for (GlobalRank rank{0}; rank < 2; ++rank) log += JobInit(rank, 4);
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    log += Line(rank, 4, {.name = "Send", .root = rank + 2});
    log += Line(rank, 4, {.count = 7});
  }
  const ImportResult result = Import(log, {.missing_ranks = kReconstruct});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kRanksMissing).count, 2u);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    ASSERT_EQ(result.import.trace->operations[GlobalRank{rank}].size(), 1u);
    EXPECT_EQ(result.import.trace->operations[GlobalRank{rank}][0].kind,
              CollectiveKind::kAllReduce);
  }
}

TEST(NcclLogMissingRanksTest, TheLastProcessTakesTheLastRank) {
  const std::string log = JobInit(0, 2) + Line(0, 2, {}) + Line(1, 2, {});
  const ImportResult result = Import(log);
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_THAT(result.import.report.assumed,
              Contains(HasSubstr("node0:1001 [1] is rank 1, the only one left")));
}

TEST(NcclLogMissingRanksTest, WithoutAnyRankTheErrorPointsToTheRankMap) {
  const ImportResult result =
      Import(Line(0, 4, {}) + Line(1, 4, {}), {.missing_ranks = kReconstruct});
  EXPECT_THAT(
      result.diagnostics.ToString(),
      HasSubstr("none of the 2 calls can be imported: 2 rank unknown (a rank_map says which "
                "rank each process is; if they are in the order of their names: "
                "--rank-map node0:1000=0 --rank-map node0:1001=1)"));
}

TEST(NcclLogMissingRanksTest, SymmetricRanksAreThoseOfAnyProcess) {
  const std::string log = Line(6, 4, {}) + Line(6, 4, {.name = "AllGather", .op_count = "1"});
  const ImportResult result =
      Import(log, {.missing_ranks = kReconstruct, .ranks_are_symmetric = true});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  const Trace& trace = *result.import.trace;
  ASSERT_EQ(trace.rank_count, 4u);
  EXPECT_EQ(result.import.report.calls_imported(), 2u);
  EXPECT_EQ(result.import.report.calls_reconstructed, 6u);
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    ASSERT_EQ(trace.operations[GlobalRank{rank}].size(), 2u) << rank;
    EXPECT_EQ(trace.operations[GlobalRank{rank}][1].kind, CollectiveKind::kAllGather) << rank;
  }
}

TEST(NcclLogMissingRanksTest, SymmetricRanksSendNoMessages) {
  const ImportResult result = Import(Line(6, 4, {}) + Line(6, 4, {.name = "Send", .root = 1}),
                                     {.missing_ranks = kReconstruct, .ranks_are_symmetric = true});
  EXPECT_THAT(result.diagnostics.ToString(),
              HasSubstr(":2:1: error: --ranks symmetric: Send is not the same on all ranks"));
}

TEST(NcclLogMissingRanksTest, SymmetricRanksHaveNoGroupsOfTheirOwn) {
  const ImportResult result =
      Import(Line(6, 4, {}) + Prefix(6) + CallMessage({.comm = "0x9", .nranks = 2}) + "\n",
             {.missing_ranks = kReconstruct, .ranks_are_symmetric = true});
  EXPECT_THAT(result.diagnostics.ToString(),
              HasSubstr("AllReduce is on a communicator of 2 of the 4 ranks"));
}

}  // namespace
}  // namespace railyard::testing
