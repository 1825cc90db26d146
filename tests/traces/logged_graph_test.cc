// SPDX-License-Identifier: GPL-2.0-only
// Rings and trees as a log's lines state them. The lines' forms are NCCL's: src/init.cc ("Channel",
// "Trees") and src/graph/connect.cc ("Ring").
#include "traces/trace/logged_graph.h"

#include <algorithm>
#include <string>
#include <variant>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/log_text.h"
#include "traces/nccl_log/nccl_log_line.h"
#include "traces/nccl_log/nccl_log_reader.h"
#include "traces/trace/trace_check.h"
#include "traces/trace/trace_file.h"

namespace railyard {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Ring = std::vector<uint32_t>;
using Parents = std::vector<int32_t>;

constexpr const char* kPrefix = "node0:7:8 [0] NCCL INFO ";

template <typename Record>
std::vector<Record> RecordsOf(const std::string& message) {
  static std::string line;
  line = kPrefix + message;
  std::vector<Record> records;
  for (const LogRecord& record : ParseNcclLogLine(line)) {
    if (const auto* of_kind = std::get_if<Record>(&record)) records.push_back(*of_kind);
  }
  return records;
}

TEST(LoggedGraphTest, LinesOfRingsAreRead) {
  const auto rings = RecordsOf<LogRing>("Ring 07 : 1 -> 0 -> 15");
  ASSERT_EQ(rings.size(), 1u);
  EXPECT_EQ(rings[0].channel, 7u);
  EXPECT_EQ(rings[0].rank, 0u);
  EXPECT_EQ(rings[0].next, 15u);
  // 2.23 pads to the width of the largest rank, 2.22 takes four columns.
  for (const char* text : {"Channel 01/16 :  0  8 15", "Channel 01/16 :    0   8  15"}) {
    const auto whole = RecordsOf<LogWholeRing>(text);
    ASSERT_EQ(whole.size(), 1u) << text;
    EXPECT_EQ(whole[0].channel, 1u);
    EXPECT_EQ(whole[0].channel_count, 16u);
    EXPECT_THAT(whole[0].ranks, ElementsAre(0, 8, 15));
  }
  EXPECT_THAT(RecordsOf<LogWholeRing>("Channel 01/16 : 0 8 15 ..."), IsEmpty());
  EXPECT_THAT(RecordsOf<LogWholeRing>("Channel 00/0 : 1[1] -> 2[2] via P2P/CUMEM"), IsEmpty());
}

TEST(LoggedGraphTest, EveryChannelOfALineOfTreesIsRead) {
  const auto places =
      RecordsOf<LogTreePlace>("Trees [0] 1/8/-1->0->-1 [1] -1/-1/-1->0->7 [2] 1/-1/-1->0->7");
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].rank, 0u);
  EXPECT_EQ(places[0].parent, -1);
  EXPECT_EQ(places[2].channel, 2u);
  EXPECT_EQ(places[2].parent, 7);
  EXPECT_EQ(RecordsOf<LogTreePlace>("Trees [0] 1/8/-1->0->-1 [1] -1/-1").size(), 1u);
}

// NCCL's buffer ends within a number: that channel is not taken.
TEST(LoggedGraphTest, TheLastPlaceOfALineThatWasCutIsLeftOut) {
  std::string text = "Trees";
  uint32_t channels = 0;
  while (text.size() < 1'040) {
    text += " [" + std::to_string(channels++) + "] 1/-1/-1->0->12";
  }
  EXPECT_EQ(RecordsOf<LogTreePlace>(text).size(), channels - 1);
}

TEST(LoggedGraphTest, RingsAndTreesAreWhatTheyMustBe) {
  EXPECT_TRUE(IsRing({0, 2, 1}, 3));
  EXPECT_FALSE(IsRing({1, 0, 2}, 3));
  EXPECT_FALSE(IsRing({0, 1}, 3));
  EXPECT_FALSE(IsRing({0, 1, 1}, 3));
  EXPECT_FALSE(IsRing({0, 1, 3}, 3));
  EXPECT_TRUE(IsTree({-1, 0, 0, 0}, 4));
  EXPECT_FALSE(IsTree({-1, 0, 0, 0, 0}, 5));
  EXPECT_FALSE(IsTree({-1, 2, 1}, 3));
  EXPECT_FALSE(IsTree({-1, -1, 0}, 3));
  EXPECT_FALSE(IsTree({-1, 3, 0}, 3));
}

TEST(LoggedGraphTest, WhatSomeRanksLackIsNotStated) {
  LoggedGraph first;
  first.next = {{0, 1}};
  first.parent = {{0, -1}};
  LoggedGraph second;
  second.next = {{0, 0}};
  second.parent = {{0, 0}};
  EXPECT_THAT(RingsOf(std::vector<const LoggedGraph*>{&first, &second}), ElementsAre(Ring{0, 1}));
  EXPECT_THAT(TreeParentsOf(std::vector<const LoggedGraph*>{&first, &second}),
              ElementsAre(Parents{-1, 0}));
  const std::vector<const LoggedGraph*> one = {&first, nullptr};
  EXPECT_THAT(RingsOf(one), IsEmpty());
  EXPECT_THAT(TreeParentsOf(one), IsEmpty());
  // Rank 0's whole rings do without the others.
  first.rings = {{0, {0, 1}}, {1, {0, 1}}};
  first.ring_count = 2;
  EXPECT_THAT(RingsOf(one), ElementsAre(Ring{0, 1}, Ring{0, 1}));
  first.ring_count = 3;
  EXPECT_THAT(RingsOf(one), IsEmpty());
}

// Four processes; rings 0 2 1 3 and its reverse, chains to rank 3 and to rank 0.
std::string Log(bool has_ring_of_rank_2) {
  const std::vector<Ring> rings = {{0, 2, 1, 3}, {0, 3, 1, 2}};
  std::string text = "NCCL version 2.27.5+cuda12.9\n";
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const std::string prefix = fmt::format("node0:10{0}:20{0} [{0}] NCCL INFO ", rank);
    const std::string init = fmt::format(
        "{0}ncclCommInitRank comm 0xa{1} rank {1} nranks 4 cudaDev {1} nvmlDev {1} busId 1000 "
        "commId 0x1 - Init ",
        prefix, rank);
    text += init + "START\n";
    for (uint32_t channel = 0; channel < 2; ++channel) {
      if (rank == 2 && !has_ring_of_rank_2) continue;
      const Ring& ring = rings[channel];
      const auto at = static_cast<size_t>(std::find(ring.begin(), ring.end(), rank) - ring.begin());
      text += fmt::format("{}Ring 0{} : {} -> {} -> {}\n", prefix, channel, ring[(at + 3) % 4],
                          rank, ring[(at + 1) % 4]);
    }
    const int before = rank == 0 ? -1 : static_cast<int>(rank) - 1;
    const int behind = rank == 3 ? -1 : static_cast<int>(rank) + 1;
    text += fmt::format("{0}Trees [0] {1}/-1/-1->{2}->{3} [1] {3}/-1/-1->{2}->{1}\n", prefix,
                        before, rank, behind);
    text += init + "COMPLETE\n";
    text += fmt::format(
        "{}AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x2 count 1024 datatype 7 op 0 root 0 comm "
        "0xa{} [nranks=4] stream 0x3\n",
        prefix, rank);
  }
  return text;
}

Trace TraceOf(const std::string& log, ImportReport* report = nullptr) {
  testing::ImportResult result = testing::Import(log);
  EXPECT_EQ(result.diagnostics.ToString(), "");
  if (report != nullptr) *report = result.import.report;
  return result.import.trace.value_or(Trace{});
}

TEST(LoggedGraphTest, ACommunicatorHasTheRingsAndTreesOfItsLines) {
  const Trace trace = TraceOf(Log(true));
  ASSERT_EQ(trace.communicators.size(), 1u);
  EXPECT_THAT(trace.communicators[0].rings, ElementsAre(Ring{0, 2, 1, 3}, Ring{0, 3, 1, 2}));
  EXPECT_THAT(trace.communicators[0].tree_parents,
              ElementsAre(Parents{1, 2, 3, -1}, Parents{-1, 0, 1, 2}));
}

TEST(LoggedGraphTest, LinesThatDoNotGiveAllAreReported) {
  ImportReport report;
  const Trace trace = TraceOf(Log(false), &report);
  ASSERT_EQ(trace.communicators.size(), 1u);
  EXPECT_THAT(trace.communicators[0].rings, IsEmpty());
  EXPECT_THAT(trace.communicators[0].tree_parents, SizeIs(2));
  EXPECT_THAT(
      report.assumed,
      Contains(HasSubstr("rings of communicator 0x1 are those of NCCL's rules: the lines of "
                         "its ranks do not give all")));
}

TEST(LoggedGraphTest, ATraceFileKeepsThem) {
  const Trace trace = TraceOf(Log(true));
  const testing::TemporaryFile file("", ".trace");
  WriteTrace(file.path(), trace);
  Diagnostics diagnostics;
  const auto read = ReadTrace(file.path(), diagnostics);
  ASSERT_TRUE(read) << diagnostics.ToString();
  EXPECT_EQ(read->communicators[0].rings, trace.communicators[0].rings);
  EXPECT_EQ(read->communicators[0].tree_parents, trace.communicators[0].tree_parents);
}

TEST(LoggedGraphTest, ATraceWithOthersIsRefused) {
  Trace trace = TraceOf(Log(true));
  trace.communicators[0].rings[1] = {0, 1, 2};
  trace.communicators[0].tree_parents[0] = {1, 0, 3, -1};
  Diagnostics diagnostics;
  EXPECT_FALSE(CheckTrace(trace, "a.trace", diagnostics));
  EXPECT_EQ(
      diagnostics.ToString(),
      "a.trace:1:1: error: communicators[0].rings[1]: is no ring of 4 ranks (each of them once, 0 "
      "first)\n"
      "a.trace:1:1: error: communicators[0].trees[0]: is no tree of 4 ranks (one root, at most 3 "
      "children each)\n");
}

}  // namespace
}  // namespace railyard
