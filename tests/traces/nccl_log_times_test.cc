// SPDX-License-Identifier: GPL-2.0-only
// Time stamps of calls become time that passes on the host; calls that were wrapped are joined.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/log_text.h"
#include "traces/nccl_log/log_time.h"

namespace railyard::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kComms[] = {"0x55aa00000010", "0x55bb00000010"};

std::string Inits() {
  return InitLines(0, 2, kComms[0], "0xc0ffee") + InitLines(1, 2, kComms[1], "0xc0ffee");
}

std::string CallLine(uint32_t rank, CallText call) {
  call.comm = kComms[rank];
  return Prefix(rank) + CallMessage(call) + "\n";
}

std::string OnBothAt(const std::string& stamp, const CallText& call) {
  return stamp + CallLine(0, call) + stamp + CallLine(1, call);
}

TEST(LogTimeTest, ReadsWhatTheFormatsOfNcclPrint) {
  // `date -u -d '2026-05-05 06:16:47' +%s` is 1777961807.
  constexpr int64_t kSeconds = 1'777'961'807;
  constexpr int64_t kNs = 1'000'000'000;
  for (const char* text : {"[2026-05-05 06:16:47] ", "2026-05-05T06:16:47 ", "2026-05-05 06:16:47Z",
                           "[1777961807] ", "[2026-05-05 06:16:47]"}) {
    const auto time = TimeAtEndOf(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(time->ns, kSeconds * kNs) << text;
    EXPECT_EQ(time->decimals, 0) << text;
  }
  for (const char* text : {"[2026-05-05T06:16:47-0700] ", "2026-05-05 06:16:47+02:00"}) {
    const auto time = TimeAtEndOf(text);  // all of a host have the same offset
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(time->ns, kSeconds * kNs) << text;
  }
  const auto micro = TimeAtEndOf("rank 3: [2026-05-05 06:16:47.000125] ");
  ASSERT_TRUE(micro);
  EXPECT_EQ(micro->ns, kSeconds * kNs + 125'000);
  EXPECT_EQ(micro->decimals, 6);
  const auto of_day = TimeAtEndOf("[00:01:02.5]");
  ASSERT_TRUE(of_day);
  EXPECT_EQ(of_day->ns, 62'500'000'000);
}

TEST(LogTimeTest, TakesNothingElseForATime) {
  for (const char* text :
       {"", "[0] ", "2026-13-05 06:16:47", "[2026-02-30 06:16:47]", "06:16", "[25:16:47]",
        "1777961807 ", "[06:16:47.1234567890]", "[9999-01-01 00:00:00]", "[2026-05-05_06:16:47]",
        "[12345678901234567890]", "[:::::::]", "host:12:13 "}) {
    EXPECT_FALSE(TimeAtEndOf(text)) << text;
  }
}

TEST(NcclLogTimesTest, ACallDoesNotBeginBeforeItsTime) {
  const ImportResult result =
      Import(Inits() + OnBothAt("[2026-05-05 06:16:47.100] ", {.count = 1}) +
             OnBothAt("[2026-05-05 06:16:47.350] ", {.op_count = "1", .count = 2}) +
             OnBothAt("[2026-05-05 06:16:47.350] ", {.op_count = "2", .count = 3}));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    const auto& program = result.import.trace->operations[GlobalRank{rank}];
    ASSERT_EQ(program.size(), 4u);
    EXPECT_EQ(program[0].count, 1u);
    EXPECT_EQ(program[0].after, 0u);
    EXPECT_EQ(program[1].kind, CollectiveKind::kCompute);
    EXPECT_EQ(program[1].compute_before_ps, 250'000'000'000);
    EXPECT_NE(program[1].stream, program[0].stream);
    EXPECT_EQ(program[2].count, 2u);
    EXPECT_EQ(program[2].after, 2u);
    EXPECT_EQ(program[3].after, 2u);
    EXPECT_EQ(program[3].compute_before_ps, 0);
  }
  EXPECT_EQ(result.import.report.calls_imported(), 6u);
  EXPECT_THAT(result.import.report.assumed,
              Contains(HasSubstr("6 of 6 calls have time stamps of their host, to 1 ms")));
}

TEST(NcclLogTimesTest, TimesCanBeIgnored) {
  const ImportResult result = Import(Inits() + OnBothAt("[2026-05-05 06:16:47] ", {}) +
                                         OnBothAt("[2026-05-05 06:16:49] ", {.op_count = "1"}),
                                     {.ignore_times = true});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.trace->operations[GlobalRank{0}].size(), 2u);
  EXPECT_THAT(result.import.report.assumed, Not(Contains(HasSubstr("time stamps"))));
}

TEST(NcclLogTimesTest, AClockThatIsSetBackIsCounted) {
  const ImportResult result = Import(Inits() + OnBothAt("[2026-05-05 06:16:47] ", {}) +
                                     OnBothAt("[2026-05-05 06:16:40] ", {.op_count = "1"}) +
                                     OnBothAt("[2026-05-05 06:16:41] ", {.op_count = "2"}));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  const auto& program = result.import.trace->operations[GlobalRank{0}];
  ASSERT_EQ(program.size(), 4u);
  EXPECT_EQ(program[2].compute_before_ps, 1'000'000'000'000);
  EXPECT_THAT(result.import.report.assumed, Contains(HasSubstr("2 time stamps are earlier")));
}

TEST(NcclLogTimesTest, TimesInOtherFormatsAreCounted) {
  for (const char* stamp : {"[05/May/2026 06:16:47] ", "May  5 06:16:47 ", "[06:16:47 PM] "}) {
    const ImportResult result =
        Import(Inits() + OnBothAt(stamp, {}) + OnBothAt("[1,0]<stdout>: ", {.op_count = "1"}));
    ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
    EXPECT_EQ(result.import.trace->operations[GlobalRank{0}].size(), 2u);
    EXPECT_THAT(result.import.report.assumed,
                Contains(HasSubstr("2 calls have a time in a format that is not read")))
        << stamp;
  }
}

TEST(NcclLogTimesTest, TheCallsOfAGroupBeginTogether) {
  std::string log = Inits();
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    const uint32_t peer = 1 - rank;
    log += "[2026-05-05 06:16:47] " + CallLine(rank, {.op_count = "0"});
    log +=
        "[2026-05-05 06:16:48] " + CallLine(rank, {.name = "Send", .op_count = "1", .root = peer});
    log +=
        "[2026-05-05 06:16:49] " + CallLine(rank, {.name = "Recv", .op_count = "1", .root = peer});
    log += "[2026-05-05 06:16:51] " + CallLine(rank, {.op_count = "2"});
  }
  const ImportResult result = Import(log);
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  const auto& program = result.import.trace->operations[GlobalRank{1}];
  ASSERT_EQ(program.size(), 6u);
  EXPECT_EQ(program[1].compute_before_ps, 1'000'000'000'000);
  EXPECT_EQ(program[2].group, program[3].group);
  EXPECT_EQ(program[3].after, 2u);
  EXPECT_EQ(program[4].compute_before_ps, 3'000'000'000'000);
  EXPECT_EQ(program[5].after, 5u);
}

TEST(NcclLogTimesTest, RanksThatAreMissingHaveTheGapsToo) {
  const ImportResult result =
      Import(InitLines(0, 2, kComms[0], "0xc0ffee") + "[2026-05-05 06:16:47] " + CallLine(0, {}) +
                 "[2026-05-05 06:16:49] " + CallLine(0, {.op_count = "1"}),
             {.missing_ranks = MissingRanks::kReconstruct});
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  const auto& program = result.import.trace->operations[GlobalRank{1}];
  ASSERT_EQ(program.size(), 3u);
  EXPECT_EQ(program[1].compute_before_ps, 2'000'000'000'000);
  EXPECT_EQ(program[2].after, 2u);
  EXPECT_EQ(result.import.report.calls_reconstructed, 2u);
}

// Wherever a terminal breaks the line, before its last pointer, the call is the same.
TEST(NcclLogTimesTest, AWrappedCallIsJoined) {
  const std::string line = CallLine(0, {.count = 1'048'576});
  const ImportResult whole = Import(Inits() + line + CallLine(1, {.count = 1'048'576}));
  ASSERT_TRUE(whole.import.trace);
  const size_t first = line.find("INFO ") + 6;
  const size_t last = line.find("stream 0x") + 8;
  for (size_t at = first; at < last; ++at) {
    std::string wrapped = line;
    wrapped.insert(at, "\n");
    const ImportResult result = Import(Inits() + wrapped + CallLine(1, {.count = 1'048'576}));
    ASSERT_TRUE(result.import.trace) << wrapped << result.diagnostics.ToString();
    EXPECT_EQ(result.import.report.calls_imported(), 2u) << wrapped;
    EXPECT_EQ(result.import.trace->operations[GlobalRank{0}],
              whole.import.trace->operations[GlobalRank{0}])
        << wrapped;
    EXPECT_THAT(result.import.report.assumed,
                Contains(HasSubstr("1 call wrapped over several lines is joined again")));
  }
}

// Ray's LogDeduplicator prints one of the lines that differ in numbers alone, and how many there
// were.
TEST(NcclLogTimesTest, LinesThatRayLeftOutAreCounted) {
  std::string line = CallLine(0, {});
  line.insert(line.size() - 1, " [repeated 3x across cluster]");
  std::string other = CallLine(1, {});
  other.insert(other.size() - 1, " [repeated 1x across cluster]");
  const ImportResult result = Import(Inits() + line + other + "x [repeated 9x across cluster]\n");
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_THAT(result.import.report.assumed,
              Contains(HasSubstr("Ray left out 2 lines of NCCL because they resembled others")));
}

TEST(NcclLogTimesTest, ACallMayBeWrappedTwiceAndLoseItsBlanks) {
  std::string line = CallLine(0, {});
  line.replace(line.find(" recvbuff"), 1, "\n");
  line.replace(line.find(" comm"), 1, "\n");
  const ImportResult result = Import(Inits() + line + CallLine(1, {}));
  ASSERT_TRUE(result.import.trace) << result.diagnostics.ToString();
  EXPECT_EQ(result.import.report.calls_imported(), 2u);
}

TEST(NcclLogTimesTest, WhatIsNoContinuationIsNotJoined) {
  std::string cut = CallLine(0, {});
  cut = cut.substr(0, cut.find(" comm"));
  for (const char* next : {"Epoch 3", "", "comm 0x12 [nranks=x]"}) {
    const ImportResult result =
        Import(Inits() + cut + "\n" + next + "\n" + CallLine(0, {}) + CallLine(1, {}));
    EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kTruncatedLine).count, 1u) << next;
    EXPECT_EQ(result.import.report.calls_seen(), 3u) << next;
  }
  // The next process's line is its own.
  const ImportResult result = Import(Inits() + cut + "\n" + CallLine(1, {}) + CallLine(0, {}));
  EXPECT_EQ(result.import.report.DroppedFor(CallDropReason::kTruncatedLine).count, 1u);
}

}  // namespace
}  // namespace railyard::testing
