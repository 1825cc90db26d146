// SPDX-License-Identifier: GPL-2.0-only
#include "traces/goal/goal_reader.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/reference_dir.h"
#include "tests/traces/imported_files.h"
#include "traces/goal/goal_binary.h"
#include "workloads/job/job.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;
using testing::ImportedFiles;
using ::testing::Pair;

// A trace whose calls match one another.
void ExpectMatches(const Trace& trace) {
  Diagnostics diagnostics;
  EXPECT_TRUE(BuildJob(trace, diagnostics).has_value()) << diagnostics.ToString();
}

constexpr const char* kPingPong = R"(// two ranks
num_ranks 2
rank 0 {
a: calc 100
b: send 8b to 1 tag 5
b requires a
c: recv 16b from 1 tag 6 cpu 1 nic 0
c requires b
}
rank 1 {
x: recv 8b from 0 tag 5
y: calc 50
y requires x
z: send 16b to 0 tag 6
z requires y
}
)";

// Returns whether all operations can end if each waits for the one before it on its stream and for
// `after`, and a message for both of its ends. No communicator has more than one message.
bool Ends(const Trace& trace) {
  std::vector<std::vector<bool>> has_ended(trace.rank_count);
  std::vector<std::vector<std::vector<uint32_t>>> streams(trace.rank_count);
  std::vector<std::vector<size_t>> at(trace.rank_count);
  uint64_t left = 0;
  for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
    const auto& program = trace.operations[rank];
    has_ended[rank].resize(program.size());
    for (uint32_t i = 0; i < program.size(); ++i) {
      if (streams[rank].size() <= program[i].stream) streams[rank].resize(program[i].stream + 1);
      streams[rank][program[i].stream].push_back(i);
      ++left;
    }
    at[rank].resize(streams[rank].size());
  }
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    std::map<uint32_t, std::vector<std::pair<GlobalRank, uint32_t>>> begun;  // by communicator
    for (GlobalRank rank{0}; rank < trace.rank_count; ++rank) {
      for (uint32_t stream = 0; stream < streams[rank].size(); ++stream) {
        if (at[rank][stream] == streams[rank][stream].size()) continue;
        const uint32_t i = streams[rank][stream][at[rank][stream]];
        const TraceOperation& operation = trace.operations[rank][i];
        if (operation.after > 0 && !has_ended[rank][operation.after - 1]) continue;
        auto& ends = begun[trace.CommunicatorOf(rank, operation.communicator)];
        ends.emplace_back(rank, i);
        if (operation.kind != CollectiveKind::kCompute && ends.size() < 2) continue;
        for (const auto& [of, number] : ends) {
          has_ended[of][number] = true;
          ++at[of][trace.operations[of][number].stream];
          --left;
        }
        ends.clear();
        has_moved = true;
      }
    }
  }
  return left == 0;
}

// 5 ranks that send to and receive from all others, without dependencies, more messages than there
// are streams. A Send that waits for a stream may only wait for what precedes it on all ranks.
TEST(GoalReaderTest, MoreOperationsThanStreamsDoNotWaitInACircle) {
  constexpr int kRanks = 5;
  constexpr int kMessages = 520;  // of a pair, in each direction
  std::string text = "num_ranks " + std::to_string(kRanks) + "\n";
  for (int rank = 0; rank < kRanks; ++rank) {
    text += "rank " + std::to_string(rank) + " {\n";
    int line = 0;
    for (const char* const kind : {"send 64b to ", "recv 64b from "}) {
      for (int i = 0; i < kMessages * kRanks; ++i) {
        const int other = i % kRanks;
        if (other == rank) continue;
        text += "l" + std::to_string(++line) + ": " + kind + std::to_string(other) + "\n";
      }
    }
    text += "}\n";
  }
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("a.goal", text)});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_THAT(import.report.ToString(), HasSubstr("a rank has 4096 streams"));
  constexpr int kSends = kRanks * (kRanks - 1) * kMessages;
  EXPECT_THAT(files.Kind(CollectiveKind::kSend), Pair(kSends, kSends * 64));
  ExpectMatches(*import.trace);
  EXPECT_TRUE(Ends(*import.trace));
}

// The 4,100 messages are independent; those without a stream of their own follow small ones.
TEST(GoalReaderTest, LargeMessagesHoldUpNoOthers) {
  std::string sends;
  std::string recvs;
  for (int i = 0; i < 4100; ++i) {
    const std::string number = std::to_string(i);
    const std::string bytes = i == 0 ? "1000000000b" : "8b";
    sends += "s" + number + ": send " + bytes + " to 1 tag 0\n";
    recvs += "r" + number + ": recv " + bytes + " from 0 tag 0\n";
  }
  ImportedFiles files;
  const TraceImport& import = files.Import(
      {files.Write("a.goal", "num_ranks 2\nrank 0 {\n" + sends + "}\nrank 1 {\n" + recvs + "}\n")});
  ASSERT_TRUE(import.trace) << files.findings();
  const auto& program = import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 4100u);
  EXPECT_EQ(program[0].count, 1'000'000'000u);
  for (size_t i = 1; i < program.size(); ++i) EXPECT_NE(program[i].stream, program[0].stream) << i;
}

// As of MPI: LogGOPSim matches by source and tag. A Recv that is too small for a
// message is not that message's.
TEST(GoalReaderTest, ARecvMayBeLargerThanItsMessage) {
  const auto text = [](const char* recv) {
    return std::string("num_ranks 2\nrank 0 {\na: send 1000b to 1 tag 7\n}\nrank 1 {\na: recv ") +
           recv + " from 0 tag 7\n}\n";
  };
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("a.goal", text("4096b"))});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.trace->operations[GlobalRank{1}][0].count, 1000u);
  EXPECT_THAT(import.report.ToString(), HasSubstr("1 Recvs are larger than their messages"));
  files.Import({files.Write("b.goal", text("999b"))});
  EXPECT_EQ(files.Dropped(CallDropReason::kRanksDisagree), 2u);
}

TEST(GoalReaderTest, DependenciesBecomeOrderAndComputationBecomesGaps) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("a.goal", kPingPong)});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.format, "goal");
  EXPECT_THAT(files.Kind(CollectiveKind::kSend), Pair(2, 24));
  EXPECT_THAT(files.Kind(CollectiveKind::kRecv), Pair(2, 24));
  const auto& first = import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].kind, CollectiveKind::kSend);
  EXPECT_EQ(first[0].count, 8u);
  EXPECT_EQ(first[0].compute_before_ps, 100'000);
  EXPECT_EQ(first[1].kind, CollectiveKind::kRecv);
  EXPECT_EQ(first[1].stream, first[0].stream);
  const auto& second = import.trace->operations[GlobalRank{1}];
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(second[1].compute_before_ps, 50'000);
  ExpectMatches(*import.trace);
}

TEST(GoalReaderTest, TagsDecideWhichSendMeetsWhichRecv) {
  ImportedFiles files;
  // Sent as tags 1, 2; received as 2, 1: by order alone sizes would not fit.
  const TraceImport& import = files.Import({files.Write("a.goal", R"(num_ranks 2
rank 0 {
send 10b to 1 tag 1
send 20b to 1 tag 2
}
rank 1 {
recv 20b from 0 tag 2
recv 10b from 0 tag 1
}
)")});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.calls_dropped(), 0u);
  ExpectMatches(*import.trace);
}

// ATLAHS makes tags of 14 digits, and numbers CPUs over all streams of a server.
TEST(GoalReaderTest, TagsAndPlacesMayBeLarge) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("a.goal", R"(num_ranks 2
rank 0 {
send 10b to 1 tag 50000120001 cpu 260 nic 0
send 20b to 1 tag 50000120002 cpu 261 nic 0
}
rank 1 {
recv 20b from 0 tag 50000120002 cpu 260 nic 0
recv 10b from 0 tag 50000120001 cpu 260 nic 0
}
)")});
  ASSERT_TRUE(import.trace) << files.findings();
  EXPECT_EQ(import.report.calls_dropped(), 0u);
  ExpectMatches(*import.trace);
}

TEST(GoalReaderTest, SendsThatWouldWaitForThemselvesAreEager) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("a.goal", R"(num_ranks 2
rank 0 {
s: send 8b to 1
r: recv 8b from 1
r requires s
}
rank 1 {
s: send 8b to 0
r: recv 8b from 0
r requires s
}
)")});
  ASSERT_TRUE(import.trace) << files.findings();
  ASSERT_EQ(import.report.assumed.size(), 1u);
  EXPECT_THAT(import.report.assumed[0], HasSubstr("would wait for itself"));
  // Neither Recv waits for a Send.
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    const auto& program = import.trace->operations[rank];
    ASSERT_EQ(program.size(), 2u);
    EXPECT_NE(program[0].stream, program[1].stream);
    EXPECT_EQ(program[1].after, 0u);
  }
  ExpectMatches(*import.trace);
}

TEST(GoalReaderTest, IrequiresWaitsForTheBeginningOnly) {
  ImportedFiles files;
  const TraceImport& import = files.Import({files.Write("a.goal", R"(num_ranks 2
rank 0 {
a: calc 7
b: send 8b to 1
b requires a
c: send 9b to 1
c irequires b
}
rank 1 {
recv 8b from 0
recv 9b from 0
}
)")});
  ASSERT_TRUE(import.trace) << files.findings();
  // The second Send may begin when the first begins, 7 ns in: both wait for the computation.
  const auto& program = import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 3u);
  EXPECT_EQ(program[0].kind, CollectiveKind::kCompute);
  EXPECT_EQ(program[0].compute_before_ps, 7'000);
  for (size_t i = 1; i < 3; ++i) {
    EXPECT_TRUE(program[i].stream == program[0].stream || program[i].after == 1u);
  }
}

TEST(GoalReaderTest, BinaryHoldsWhatTextSays) {
  GoalSchedule schedule;
  schedule.ranks.resize(2);
  schedule.ranks[0] = {{.kind = GoalKind::kCalc, .size = 3},
                       {.kind = GoalKind::kSend, .peer = 1, .size = 8, .tag = 4, .waits_for = {0}}};
  schedule.ranks[1] = {{.kind = GoalKind::kRecv, .peer = 0, .size = 8, .tag = 4}};
  const std::string binary = GoalBinaryOf(schedule);
  // txt2bin: 14 bytes of head, 16 a rank, 8 + 4 a root + 39 an operation + 4 a dependency.
  EXPECT_EQ(binary.size(), 14u + 2 * 16 + (8 + 4 + 2 * 39 + 4) + (8 + 4 + 39));
  ImportedFiles files;
  const TraceImport of_binary = files.Import({files.Write("a.bin", binary)});
  ASSERT_TRUE(of_binary.trace) << files.findings();
  const TraceImport& of_text = files.Import({files.Write("a.goal", GoalTextOf(schedule))});
  ASSERT_TRUE(of_text.trace) << files.findings();
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    ASSERT_EQ(of_binary.trace->operations[rank].size(), of_text.trace->operations[rank].size());
    for (size_t i = 0; i < of_binary.trace->operations[rank].size(); ++i) {
      TraceOperation a = of_binary.trace->operations[rank][i];
      a.source_line = of_text.trace->operations[rank][i].source_line;
      EXPECT_EQ(a, of_text.trace->operations[rank][i]);
    }
  }
}

TEST(GoalReaderTest, EveryTruncationOfTheBinaryFormIsAnError) {
  GoalSchedule schedule;
  schedule.ranks.resize(2);
  schedule.ranks[0] = {{.kind = GoalKind::kSend, .peer = 1, .size = 8}};
  schedule.ranks[1] = {{.kind = GoalKind::kRecv, .peer = 0, .size = 8}};
  const std::string binary = GoalBinaryOf(schedule);
  for (size_t size = 0; size < binary.size(); ++size) {
    size_t at = 0;
    Diagnostics diagnostics;
    const auto read = ReadGoalBinary(
        [&](char* to, size_t bytes) {
          const size_t count = std::min(bytes, size - at);
          binary.copy(to, count, at);
          at += count;
          return count;
        },
        "a.bin", diagnostics);
    EXPECT_FALSE(read.has_value()) << size;
    EXPECT_TRUE(diagnostics.HasErrors()) << size;
  }
}

TEST(GoalReaderTest, CountsOfTheBinaryFormCostNoMemoryUntilTheirBytesAreThere) {
  std::string binary = GoalBinaryOf({.ranks = {{}}});
  // Bytes 8 to 11 say how many ranks there are.
  binary.replace(8, 4, std::string("\x40\x42\x0f\x00", 4));  // a million
  ImportedFiles files;
  files.Import({files.Write("a.bin", binary)});
  EXPECT_THAT(files.findings(), HasSubstr("the file ends here"));
}

struct BadText {
  const char* text;
  const char* finding;
};

class GoalBadTextTest : public ::testing::TestWithParam<BadText> {};

TEST_P(GoalBadTextTest, IsALocatedError) {
  ImportedFiles files;
  files.Import({files.Write("a.goal", GetParam().text)});
  EXPECT_THAT(files.findings(), HasSubstr(GetParam().finding));
}

INSTANTIATE_TEST_SUITE_P(
    All, GoalBadTextTest,
    ::testing::Values(
        BadText{"num_ranks 2\nrank 0 {\nx requires y\n}\n", "a.goal:3:1: error: label \"x\""},
        BadText{"num_ranks 2\nrank 0 {\na: calc 1\na: calc 2\n}\n", "a.goal:4:1: error: label"},
        BadText{"num_ranks 2\nrank 2 {\n}\n", "a.goal:2:6: error: \"2\" is out of range"},
        BadText{"num_ranks 2\nrank 0 {\nsend 8b to 7\n}\n", "a.goal:3:12: error: \"7\" is out of"},
        BadText{"num_ranks 2\nrank 0 {\n", "ends within a rank"},
        BadText{"num_ranks 2\nrank 0 {\n}\nrank 0 {\n}\n", "is there twice"},
        BadText{"num_ranks 99999999999\n", "is out of range (expected a number up to 1000000)"},
        BadText{"num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\nb requires a\n"
                "c: send 1b to 0\n}\n",
                "waits for itself"}));

TEST(GoalReaderTest, CallsThatCannotBeReplayedAreCounted) {
  ImportedFiles files;
  files.Import({files.Write("a.goal", R"(num_ranks 2
rank 0 {
send 8b to 1
send 0b to 1
recv 8b from -1
send 2000000000000000b to 1
send 5b to 0
send 6b to 1 tag 9
}
rank 1 {
recv 8b from 0
}
)")});
  EXPECT_EQ(files.import().report.calls_seen(), 7u);
  EXPECT_EQ(files.import().report.calls_imported(), 2u);
  EXPECT_EQ(files.Dropped(CallDropReason::kZeroCount), 1u);
  EXPECT_EQ(files.Dropped(CallDropReason::kUnknownRank), 1u);
  EXPECT_EQ(files.Dropped(CallDropReason::kOutOfRange), 2u);
  EXPECT_EQ(files.Dropped(CallDropReason::kIncompleteOnRank), 1u);
}

TEST(GoalReaderTest, ReferenceTreeHasThirtyOneMessages) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  ImportedFiles files;
  const TraceImport& import = files.Import({reference_dir + "/traces/goal/binary_tree_32.goal"});
  ASSERT_TRUE(import.trace) << files.findings();
  // grep -c 'send 1b' binary_tree_32.goal; grep -c 'recv 1b' binary_tree_32.goal
  EXPECT_THAT(files.Kind(CollectiveKind::kSend), Pair(31, 31));
  EXPECT_THAT(files.Kind(CollectiveKind::kRecv), Pair(31, 31));
  EXPECT_EQ(import.trace->rank_count, 32u);
  ExpectMatches(*import.trace);
}

}  // namespace
}  // namespace railyard
