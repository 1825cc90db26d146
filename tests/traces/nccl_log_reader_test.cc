// SPDX-License-Identifier: GPL-2.0-only
#include "traces/nccl_log/nccl_log_reader.h"

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

constexpr const char* kComm0 = "0x55aa00000010";
constexpr const char* kComm1 = "0x55bb00000010";

// Two ranks on one server that made one communicator.
std::string TwoRanks() {
  return InitLines(0, 2, kComm0, "0xc0ffee") + InitLines(1, 2, kComm1, "0xc0ffee");
}
std::string Line(uint32_t rank, CallText call) {
  call.comm = rank == 0 ? kComm0 : kComm1;
  return Prefix(rank) + CallMessage(call) + "\n";
}
std::string OnBoth(const CallText& call) { return Line(0, call) + Line(1, call); }

std::vector<uint64_t> Counts(const Trace& trace, uint32_t rank) {
  std::vector<uint64_t> counts;
  for (const TraceOperation& operation : trace.operations[GlobalRank{rank}])
    counts.push_back(operation.count);
  return counts;
}
std::vector<uint32_t> Groups(const Trace& trace, uint32_t rank) {
  std::vector<uint32_t> groups;
  for (const TraceOperation& operation : trace.operations[GlobalRank{rank}])
    groups.push_back(operation.group);
  return groups;
}

TEST(NcclLogReaderTest, RanksComeFromInitLines) {
  // Printed in the other order, so that neither line order nor pid can be what counts.
  const ImportResult result =
      Import(InitLines(1, 2, kComm1, "0xc0ffee") + InitLines(0, 2, kComm0, "0xc0ffee") +
             Line(1, {.name = "Broadcast", .count = 5, .root = 1}) +
             Line(0, {.name = "Broadcast", .count = 5, .root = 1}));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  const Trace& trace = *result.import.trace;
  EXPECT_EQ(trace.rank_count, 2u);
  ASSERT_EQ(trace.communicators.size(), 1u);
  EXPECT_EQ(trace.communicators[0].name, "0xc0ffee");
  EXPECT_THAT(trace.communicators[0].ranks, ElementsAre(0, 1));
  ASSERT_EQ(trace.operations[GlobalRank{0}].size(), 1u);
  EXPECT_EQ(trace.operations[GlobalRank{0}][0].kind, CollectiveKind::kBroadcast);
  EXPECT_EQ(trace.operations[GlobalRank{0}][0].root, 1u);
  EXPECT_EQ(trace.operations[GlobalRank{0}][0].source_line, 6u);
  EXPECT_EQ(trace.operations[GlobalRank{1}][0].source_line, 5u);
  EXPECT_TRUE(result.import.report.assumed.empty());
}

TEST(NcclLogReaderTest, OrderIsThatOfTheLinesThoughOpCountStaysZero) {
  const ImportResult result =
      Import(TwoRanks() + Line(0, {.count = 1}) + Line(0, {.count = 2}) + Line(1, {.count = 1}) +
             Line(0, {.count = 3}) + Line(1, {.count = 2}) + Line(1, {.count = 3}));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_THAT(Counts(*result.import.trace, 0), ElementsAre(1, 2, 3));
  EXPECT_THAT(Counts(*result.import.trace, 1), ElementsAre(1, 2, 3));
}

TEST(NcclLogReaderTest, StreamsAreNumberedPerRank) {
  const ImportResult result =
      Import(TwoRanks() + OnBoth({.stream = "0x55cc00000010"}) +
             OnBoth({.stream = "0x55cc00000020"}) + OnBoth({.stream = "0x55cc00000010"}));
  ASSERT_TRUE(result.import.trace);
  std::vector<uint32_t> streams;
  for (const auto& operation : result.import.trace->operations[GlobalRank{1}]) {
    streams.push_back(operation.stream);
  }
  EXPECT_THAT(streams, ElementsAre(0, 1, 0));
}

TEST(NcclLogReaderTest, FilesOfOneProcessEachAreOneJob) {
  const TemporaryFile first(InitLines(0, 2, kComm0, "0x1") + Line(0, {}));
  const TemporaryFile second(InitLines(1, 2, kComm1, "0x1") + Line(1, {}));
  Diagnostics diagnostics;
  const TraceImport import = ReadNcclLogs({.files = {first.path(), second.path()}}, diagnostics);
  ASSERT_TRUE(import.trace) << diagnostics.ToString();
  EXPECT_EQ(import.trace->operations[GlobalRank{1}][0].source_file, 1u);
  EXPECT_EQ(import.report.files[0].calls_seen, 1u);
  EXPECT_EQ(import.report.files[1].calls_imported, 1u);
  ExpectCallsAddUp(import.report);
}

TEST(NcclLogReaderTest, APointerUsedAgainIsAnotherCommunicator) {
  // One process per device; the same pointer stands for a 2-rank and later for a 1-rank
  // communicator, with and without a line that says it was destroyed.
  for (const bool destroyed : {true, false}) {
    std::string log = TwoRanks() + OnBoth({.count = 1});
    for (GlobalRank rank{0}; rank < 2; ++rank) {
      const char* comm = rank == 0 ? kComm0 : kComm1;
      if (destroyed) {
        log += fmt::format("{}comm {} rank {} nranks 2 cudaDev {} busId 1b000 - Destroy COMPLETE\n",
                           Prefix(rank), comm, rank, rank);
      }
      log += InitLines(rank, 2, comm, "0xbeef");
    }
    const ImportResult result = Import(log + OnBoth({.count = 2}));
    ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
    EXPECT_EQ(result.import.trace->communicators.size(), 2u);
    EXPECT_EQ(result.import.trace->operations[GlobalRank{0}][0].communicator, 0u);
    EXPECT_EQ(result.import.trace->operations[GlobalRank{0}][1].communicator, 1u);
  }
}

// A job of 4 ranks on 2 servers that splits its communicator by server, then by device.
std::string SplitJob(const std::string& split_word, const std::string& comm_id_tail) {
  std::string log;
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    log += InitLines(rank, 4, fmt::format("0x55aa000000{}0", rank), "0x1", 2);
  }
  for (uint32_t split = 1; split <= 2; ++split) {
    for (GlobalRank rank{0}; rank < 4; ++rank) {
      const uint32_t color = split == 1 ? rank / 2 : rank % 2;
      const uint32_t own = split == 1 ? rank % 2 : rank / 2;
      std::string tail;
      if (!comm_id_tail.empty()) tail = fmt::format(" commId 0x{}{}{}", comm_id_tail, split, color);
      if (comm_id_tail == "of color") tail = fmt::format(" commId 0x5c{}", color);
      const std::string head = fmt::format(
          "{}ncclCommSplit comm 0x55bb000000{}{} rank {} nranks 2 cudaDev {} nvmlDev {} busId "
          "1b000 "
          "parent 0x55aa000000{}0 {}color {} key {}{}",
          Prefix(rank, 2), split, rank, own, rank % 2, rank % 2, rank,
          split_word.empty() ? "" : fmt::format("{} {} ", split_word, split), color, rank, tail);
      log += head + (comm_id_tail.empty() ? "- Init START\n" : " - Init START\n");
      log += head + " - Init COMPLETE\n";
    }
  }
  for (uint32_t split = 1; split <= 2; ++split) {
    for (GlobalRank rank{0}; rank < 4; ++rank) {
      log += Prefix(rank, 2) +
             CallMessage({.count = split, .comm = fmt::format("0x55bb000000{}{}", split, rank)}) +
             "\n";
    }
  }
  return log;
}

TEST(NcclLogReaderTest, SplitsAreJoinedInTheFormsOfEveryVersion) {
  const std::vector<std::pair<std::string, std::string>> forms = {
      {"", "7"},            // 2.21: commId
      {"", "of color"},     // before 2.24 it may be made of the parent's and the color
      {"", ""},             // 2.23: parent and color only
      {"splitCount", ""},   // 2.24
      {"childCount", ""}};  // 2.29
  for (const auto& [word, comm_id] : forms) {
    const ImportResult result = Import(SplitJob(word, comm_id));
    ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
    const Trace& trace = *result.import.trace;
    EXPECT_EQ(trace.rank_count, 4u);
    ASSERT_EQ(trace.communicators.size(), 4u);
    EXPECT_THAT(trace.communicators[0].ranks, ElementsAre(0, 1));
    EXPECT_THAT(trace.communicators[1].ranks, ElementsAre(2, 3));
    EXPECT_THAT(trace.communicators[2].ranks, ElementsAre(0, 2));
    EXPECT_THAT(trace.communicators[3].ranks, ElementsAre(1, 3));
    EXPECT_TRUE(result.import.report.assumed.empty());
  }
}

TEST(NcclLogReaderTest, UnnamedCommunicatorsOfOneSizeAreDistinguishedByTheirRegularLayout) {
  // Up to 2.14 no line holds a commId: 4 ranks, and communicators of ranks {0,1} and {2,3}.
  std::string log;
  const auto complete = [](uint32_t rank, uint32_t own, uint32_t size, const std::string& comm) {
    return fmt::format("{}comm {} rank {} nranks {} cudaDev {} busId 1b000 - Init COMPLETE\n",
                       Prefix(rank), comm, own, size, rank);
  };
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    log += complete(rank, rank, 4, fmt::format("0x55aa0{}", rank));
    log += complete(rank, rank % 2, 2, fmt::format("0x55bb0{}", rank));
  }
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    log += Prefix(rank) + CallMessage({.comm = fmt::format("0x55bb0{}", rank)}) + "\n";
  }
  const ImportResult result = Import(log);
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  ASSERT_EQ(result.import.trace->communicators.size(), 2u);
  EXPECT_THAT(result.import.trace->communicators[0].ranks, ElementsAre(0, 1));
  EXPECT_THAT(result.import.trace->communicators[1].ranks, ElementsAre(2, 3));
  EXPECT_THAT(result.import.report.assumed, Contains(HasSubstr("only regular layout")));
}

TEST(NcclLogReaderTest, OneProcessMayDriveSeveralDevices) {
  std::string log;
  for (uint32_t device = 0; device < 2; ++device) {
    log += fmt::format(
        "h:9:{} [{}] NCCL INFO comm 0x55aa{} rank {} nranks 2 cudaDev {} nvmlDev {} busId 1b000 "
        "commId 0x1 - Init COMPLETE\n",
        10 + device, device, device, 1 - device, device, device);
  }
  for (uint32_t device = 0; device < 2; ++device) {
    log += fmt::format("h:9:{} [{}] NCCL INFO {}\n", 10 + device, device,
                       CallMessage({.comm = fmt::format("0x55aa{}", device)}));
  }
  const ImportResult result = Import(log);
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.trace->rank_count, 2u);
  EXPECT_EQ(result.import.trace->operations[GlobalRank{1}][0].source_line,
            3u);  // device 0 is rank 1
}

TEST(NcclLogReaderTest, WithoutInitLinesACompleteJobIsRankedByHostAndDevice) {
  std::string log;
  for (const char* host : {"node10", "node2"}) {
    for (uint32_t device = 0; device < 2; ++device) {
      log += fmt::format("{}:{}:1 [{}] NCCL INFO {}\n", host, 50 - device, device,
                         CallMessage({.nranks = 4}));
    }
  }
  const ImportResult result = Import(log);
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  // node2 stands before node10: lines 3, 4, then 1, 2.
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    EXPECT_EQ(result.import.trace->operations[GlobalRank{rank}][0].source_line, (rank + 2) % 4 + 1);
  }
  EXPECT_THAT(result.import.report.assumed,
              Contains(HasSubstr("global ranks follow the order of host name, device and pid")));
}

// The second job takes the same two GPUs, or is the next of a sweep.
TEST(NcclLogReaderTest, TheLogOfSeveralJobsIsRefused) {
  for (const uint32_t second_size : {2u, 4u}) {
    std::string log;
    const auto add_job = [&](uint32_t first_pid, uint32_t ranks) {
      for (GlobalRank rank{0}; rank < ranks; ++rank) {
        const std::string prefix = fmt::format("h:{}:1 [{}] NCCL INFO ", first_pid + rank, rank);
        const std::string comm = fmt::format("0x55aa{}", rank);
        log += fmt::format(
            "{}comm {} rank {} nranks {} cudaDev {} nvmlDev {} busId {}b000 commId "
            "0x{} - Init COMPLETE\n",
            prefix, comm, rank, ranks, rank, rank, rank + 1, first_pid);
        log += prefix + CallMessage({.comm = comm, .nranks = ranks}) + "\n";
      }
    };
    add_job(100, 2);
    add_job(200, second_size);
    const ImportResult result = Import(log);
    EXPECT_FALSE(result.import.trace);
    EXPECT_THAT(result.diagnostics.ToString(),
                HasSubstr(":5:1: error: processes 100 and 200 of h use the same GPU (busId 1b000), "
                          "and no communicator has all processes: these are several jobs "
                          "(expected the log of one)"));
  }
}

TEST(NcclLogReaderTest, DisjointCommunicatorsWithoutAJobCommunicatorAreRankedByHostAndDevice) {
  std::string log;
  for (GlobalRank rank{0}; rank < 4; ++rank) {
    const std::string comm = fmt::format("0x55aa{}", rank);
    log += fmt::format(
        "{}comm {} rank {} nranks 2 cudaDev {} nvmlDev 0 busId {}b000 commId 0x{} - "
        "Init COMPLETE\n",
        Prefix(rank, 2), comm, rank % 2, rank % 2, rank % 2 + 1, 5 + rank / 2);
    log += Prefix(rank, 2) + CallMessage({.comm = comm}) + "\n";
  }
  const ImportResult result = Import(log);
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.trace->rank_count, 4u);
  EXPECT_THAT(result.import.trace->communicators[1].ranks, ElementsAre(2, 3));
  EXPECT_THAT(result.import.report.assumed,
              Contains(HasSubstr("no communicator spans all processes")));
}

TEST(NcclLogReaderTest, ALineWithoutPrefixBelongsToTheOneProcessWithThatCommunicator) {
  const ImportResult result =
      Import(TwoRanks() + Line(0, {.count = 1}) + CallMessage({.count = 1, .comm = kComm1}) + "\n" +
             OnBoth({.count = 2}));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_THAT(Counts(*result.import.trace, 1), ElementsAre(1, 2));
  EXPECT_THAT(result.import.report.assumed, Contains(HasSubstr("1 calls whose line lost its")));
}

TEST(NcclLogReaderTest, ALineWithoutPrefixOfAnUnknownCommunicatorIsDropped) {
  const ImportResult result =
      Import(TwoRanks() + OnBoth({}) + CallMessage({.comm = "0x55ff00000010"}) + "\n");
  ASSERT_TRUE(result.import.trace);
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kUnknownProcess).count, 1u);
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kUnknownProcess).first_lines[0].line,
            7u);
}

TEST(NcclLogReaderTest, AHostNameGluedToALineBeforeIsRecognized) {
  std::string both = OnBoth({.count = 1});
  // The break between the two calls is lost; "node0" starts with no hexadecimal digit, "a100" does.
  both.erase(both.find('\n'), 1);
  for (const char* host : {"node0", "a100"}) {
    std::string log = TwoRanks() + both + OnBoth({.count = 2});
    for (size_t at = log.find("node0"); at != std::string::npos; at = log.find("node0", at + 4)) {
      log.replace(at, 5, host);
    }
    const ImportResult result = Import(log);
    ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
    EXPECT_THAT(Counts(*result.import.trace, 1), ElementsAre(1, 2)) << host;
    EXPECT_EQ(result.import.trace->operations[GlobalRank{0}][1].stream, 0u) << host;
  }
}

// ---- Calls that are dropped. ----

TEST(NcclLogReaderTest, DropsCallsForTheirOwnFaultWithTheReason) {
  std::string old_form = Prefix(0) +
                         "opCount 0 sendbuff 0x1 recvbuff 0x2 count 3 size 4 datatype 7 op 0 comm "
                         "0x55aa00000010 [nranks=2] stream 0x3\n";
  const ImportResult result = Import(
      TwoRanks() + OnBoth({}) + OnBoth({.count = 0}) + Line(0, {.name = "PutSignal"}) +
      Line(0, {.datatype = 99}) + Line(0, {.root = 2}) + Line(0, {.count = uint64_t{1} << 60}) +
      Line(0, {.nranks = 2'000'000}) + Prefix(0) + "AllReduce: opCount 0 sendbuff\n" + old_form);
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  const ImportReport& report = result.import.report;
  EXPECT_EQ(report.calls_seen(), 11u);
  EXPECT_EQ(report.calls_imported(), 2u);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kZeroCount).count, 2u);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kUnsupportedKind).count, 1u);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kUnknownDatatype).count, 1u);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kOutOfRange).count, 3u);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kTruncatedLine).count, 1u);
  EXPECT_EQ(report.DroppedFor(CallDropReason::kTruncatedLine).first_lines[0].detail,
            "no \"sendbuff\"");
  EXPECT_EQ(report.DroppedFor(CallDropReason::kUnnamedOperation).count, 1u);
}

TEST(NcclLogReaderTest, CallsBeyondTheLongestLineAreCountedAndDropped) {
  const std::string call = CallMessage({});
  // The mark of the first call behind the limit lies across it.
  std::string line(kNcclLogLineBytesMax - 5, 'x');
  line += " AllReduce: " + call.substr(call.find("opCount")) + " " + call + "\n";
  const ImportResult result = Import(TwoRanks() + line + OnBoth({}));
  ASSERT_TRUE(result.import.trace);
  EXPECT_EQ(result.import.report.calls_seen(), 4u);
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kLineTooLong).count, 2u);
  EXPECT_EQ(result.import.report.lines_read(), 7u);
}

TEST(NcclLogReaderTest, CallsBeyondTheShortestRanksLogAreDropped) {
  const ImportResult result =
      Import(TwoRanks() + OnBoth({.count = 1}) + OnBoth({.count = 2}) + Line(1, {.count = 3}));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_THAT(Counts(*result.import.trace, 1), ElementsAre(1, 2));
  const DroppedCalls& dropped = result.import.report.DroppedFor(CallDropReason::kIncompleteOnRank);
  ASSERT_EQ(dropped.count, 1u);
  EXPECT_EQ(dropped.first_lines[0].detail, "incomplete on rank 0");
  EXPECT_EQ(dropped.first_lines[0].line, 9u);
}

TEST(NcclLogReaderTest, LogsThatBeginAtDifferentCallsAreAlignedByRisingOpCounts) {
  const ImportResult result = Import(TwoRanks() + Line(0, {.name = "AllGather", .op_count = "d"}) +
                                     Line(0, {.name = "Reduce", .op_count = "e"}) +
                                     Line(1, {.name = "Reduce", .op_count = "e"}) +
                                     Line(1, {.name = "AllReduce", .op_count = "f"}));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  ASSERT_EQ(result.import.trace->operations[GlobalRank{0}].size(), 1u);
  EXPECT_EQ(result.import.trace->operations[GlobalRank{0}][0].kind, CollectiveKind::kReduce);
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 2u);
}

TEST(NcclLogReaderTest, RanksThatDisagreeAreAnErrorWithBothPlaces) {
  const ImportResult result =
      Import(TwoRanks() + OnBoth({}) + Line(0, {.count = 8}) + Line(1, {.count = 9}));
  EXPECT_FALSE(result.import.trace);
  const std::string text = result.diagnostics.ToString();
  EXPECT_THAT(text, HasSubstr(":8:"));
  EXPECT_THAT(text, HasSubstr("call 2 of rank 1 on communicator 0xc0ffee is AllReduce of 9 float32 "
                              "with root 0, that of rank 0 at "));
  EXPECT_THAT(text, HasSubstr(":7 is AllReduce of 8 float32 with root 0 (the same call on every "
                              "rank)"));
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kRanksDisagree).count, 4u);
}

// ---- Point to point. ----

// One AlltoAll of two ranks as groups of Send and Recv.
std::string Exchange(const std::string& op_count, uint64_t count = 10) {
  std::string log;
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    for (uint32_t peer = 0; peer < 2; ++peer) {
      log += Line(rank, {.name = "Send", .op_count = op_count, .count = count, .root = peer});
      log += Line(rank, {.name = "Recv", .op_count = op_count, .count = count, .root = peer});
    }
  }
  return log;
}

TEST(NcclLogReaderTest, SendsAndReceivesOfEqualOpCountAreOneGroup) {
  const ImportResult result = Import(TwoRanks() + Exchange("5") + Exchange("6"));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  const Trace& trace = *result.import.trace;
  EXPECT_THAT(Groups(trace, 0), ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
  EXPECT_EQ(trace.operations[GlobalRank{1}][0].kind, CollectiveKind::kSend);
  EXPECT_EQ(trace.operations[GlobalRank{1}][0].peer, 0u);
  EXPECT_EQ(trace.operations[GlobalRank{1}][0].root, 0u);
  EXPECT_EQ(trace.operations[GlobalRank{1}][2].peer, 1u);
}

TEST(NcclLogReaderTest, WhereOpCountNeverChangesGroupsEndWhereTheirFirstCallComesAgain) {
  const ImportResult result = Import(TwoRanks() + Exchange("0") + Exchange("0"));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_THAT(Groups(*result.import.trace, 0), ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
  EXPECT_THAT(result.import.report.assumed, Contains(HasSubstr("2 groups of Send and Recv end")));
}

TEST(NcclLogReaderTest, ACollectiveOrAnotherStreamEndsAGroup) {
  const ImportResult result = Import(
      TwoRanks() + Line(0, {.name = "Send", .root = 1}) + Line(0, {.count = 3}) +
      Line(0, {.name = "Send", .root = 1}) + Line(0, {.name = "Send", .root = 1, .stream = "0x9"}) +
      Line(0, {.name = "Send", .root = 1, .stream = "0x9"}) + Line(1, {.count = 3}) +
      Line(1, {.name = "Recv", .root = 0}) + Line(1, {.name = "Recv", .root = 0}) +
      Line(1, {.name = "Recv", .root = 0}) + Line(1, {.name = "Recv", .root = 0}));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_THAT(Groups(*result.import.trace, 0), ElementsAre(0, 0, 0, 1, 1));
}

TEST(NcclLogReaderTest, SendsWithoutReceivesAtTheEndOfALogAreDropped) {
  const ImportResult result = Import(TwoRanks() + Line(0, {.name = "Send", .count = 1, .root = 1}) +
                                     Line(1, {.name = "Recv", .count = 1, .root = 0}) +
                                     Line(0, {.name = "Send", .count = 2, .root = 1}));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_THAT(Counts(*result.import.trace, 0), ElementsAre(1));
  EXPECT_EQ(
      result.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).first_lines[0].detail,
      "incomplete on rank 1");
}

// ---- Algorithm and protocol. ----

std::string Tuning(uint32_t rank, const std::string& text) { return Prefix(rank) + text + "\n"; }

TEST(NcclLogReaderTest, TuningLinesStateAlgorithmAndProtocolForAllRanks) {
  // Since 2.24 the bytes of an AllGather are count x size, before they are the total.
  for (const char* line : {"AllGather: 40 Bytes -> Algo PAT proto SIMPLE channel{Lo..Hi}={0..1}",
                           "AllGather: 80 Bytes -> Algo 6 proto 2 time 10.0",
                           "80 Bytes -> Algo 6 proto 2 time 10.0"}) {
    const ImportResult result =
        Import(TwoRanks() + Line(0, {.name = "AllGather", .count = 10}) + Tuning(0, line) +
               Line(1, {.name = "AllGather", .count = 10}) + OnBoth({.count = 11}));
    ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
    for (GlobalRank rank{0}; rank < 2; ++rank) {
      const auto& operations = result.import.trace->operations[GlobalRank{rank}];
      EXPECT_EQ(operations[0].algorithm, Algorithm::kPat) << line;
      EXPECT_EQ(operations[0].protocol, Protocol::kSimple) << line;
      EXPECT_EQ(operations[1].algorithm, Algorithm::kUnstated) << line;
    }
    EXPECT_EQ(result.import.report.calls_with_algorithm, 2u);
    EXPECT_EQ(result.import.report.tuning_lines_unmatched, 0u);
  }
}

TEST(NcclLogReaderTest, TuningLinesOfEqualCallsAreTakenInOrder) {
  const ImportResult result =
      Import(TwoRanks() + OnBoth({}) + OnBoth({}) +
             Tuning(0, "AllReduce: 4096 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}") +
             Tuning(0, "AllReduce: 4096 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..0}"));
  ASSERT_TRUE(result.import.trace);
  EXPECT_EQ(result.import.trace->operations[GlobalRank{1}][0].algorithm, Algorithm::kTree);
  EXPECT_EQ(result.import.trace->operations[GlobalRank{1}][1].algorithm, Algorithm::kRing);
  EXPECT_EQ(result.import.trace->operations[GlobalRank{1}][1].protocol, Protocol::kLl128);
}

// NCCL prints these lines since 2.27 (src/scheduler/symmetric_sched.cc) and 2.28.
TEST(NcclLogReaderTest, CallsWithoutAnAlgorithmTakeTheirLine) {
  for (const char* line : {"AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLLMC_R "
                           "nchannels 16 nthreads 512 nWorks 1",
                           "AllReduce [Copy Engine]: 4096 Bytes -> cudaMemcpyBatchAsync"}) {
    const ImportResult result =
        Import(TwoRanks() + OnBoth({}) + Tuning(0, line) + OnBoth({}) +
               Tuning(0, "AllReduce: 4096 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..0}"));
    ASSERT_TRUE(result.import.trace);
    EXPECT_EQ(result.import.trace->operations[GlobalRank{1}][0].algorithm, Algorithm::kUnstated);
    EXPECT_EQ(result.import.trace->operations[GlobalRank{1}][1].algorithm, Algorithm::kRing);
    EXPECT_THAT(result.import.report.assumed,
                ::testing::Contains(HasSubstr("1 collective that symmetric kernels or copy")));
  }
}

TEST(NcclLogReaderTest, ATuningLineThatFitsNoCallOrSeveralCommunicatorsStatesNothing) {
  std::string log = TwoRanks();
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    log += InitLines(rank, 2, fmt::format("0x55dd{}", rank), "0x2");
  }
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    log += Line(rank, {});
    log += Prefix(rank) + CallMessage({.comm = fmt::format("0x55dd{}", rank)}) + "\n";
  }
  log += Tuning(0, "AllReduce: 4096 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}");
  log += Tuning(0, "AllReduce: 123 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}");
  const ImportResult result = Import(log);
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.report.tuning_lines_unmatched, 2u);
  EXPECT_EQ(result.import.report.calls_with_algorithm, 0u);
}

// ---- Whole inputs. ----

TEST(NcclLogReaderTest, ReportsTheVersion) {
  const ImportResult result = Import("NCCL version 2.21.5+cuda12.4\n" + TwoRanks() + OnBoth({}));
  ASSERT_TRUE(result.import.trace);
  EXPECT_EQ(result.import.trace->nccl_version, "2.21.5");
  EXPECT_EQ(result.import.trace->origin, "nccl-log");
}

TEST(NcclLogReaderTest, AFileWithoutCallsIsAnErrorThatSaysHowToGetThem) {
  const ImportResult result = Import("hello\nworld");
  EXPECT_FALSE(result.import.trace);
  EXPECT_THAT(result.diagnostics.ToString(),
              HasSubstr("no call was found (NCCL prints them with NCCL_DEBUG=INFO"));
  EXPECT_EQ(result.import.report.lines_read(), 2u);
}

TEST(NcclLogReaderTest, WhereNoCallIsLeftTheErrorSaysWhy) {
  const ImportResult result = Import(TwoRanks() + OnBoth({.count = 0}));
  EXPECT_THAT(result.diagnostics.ToString(),
              HasSubstr("none of the 2 calls can be imported: 2 count 0"));
}

TEST(NcclLogReaderTest, MissingFilesDirectoriesAndDoublesAreFindings) {
  const TemporaryFile file(TwoRanks() + OnBoth({}));
  Diagnostics diagnostics;
  const TraceImport import = ReadNcclLogs(
      {.files = {file.path(), "/nonexistent.log", ::testing::TempDir(), file.path()}}, diagnostics);
  EXPECT_FALSE(import.trace);
  EXPECT_THAT(diagnostics.ToString(), HasSubstr("/nonexistent.log: error: does not exist"));
  EXPECT_THAT(diagnostics.ToString(), HasSubstr("is a directory (an NCCL log was expected)"));
  EXPECT_THAT(diagnostics.ToString(), HasSubstr("is given twice (each log once)"));
  EXPECT_EQ(import.report.DroppedFor(CallDropReason::kImportFailed).count, 2u);
  ExpectCallsAddUp(import.report);
}

TEST(NcclLogReaderTest, TwoProcessesWithOneRankAreAnError) {
  const ImportResult result =
      Import(InitLines(0, 2, kComm0, "0x1") + Prefix(1) +
             "comm 0x55bb00000010 rank 0 nranks 2 cudaDev 1 busId 1 commId 0x1 - Init "
             "COMPLETE\n" +
             OnBoth({}));
  EXPECT_THAT(result.diagnostics.ToString(), HasSubstr("error:"));
  EXPECT_FALSE(result.import.trace);
}

}  // namespace
}  // namespace railyard::testing
