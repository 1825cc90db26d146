// SPDX-License-Identifier: GPL-2.0-only
// Profiles of several ranks, or of one: their clocks, and whose calls belong together.
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/traces/kineto/kineto_text.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

// Rank 1 says 250 us more for what is the same time: each AllReduce ends there when it ends on rank
// 0, though one of its kernels began later. The first pair is 1 us further apart.
std::string KernelsOfRank(int rank, int ahead_us) {
  std::string events;
  for (int i = 0; i < 3; ++i) {
    const int late = rank == 1 && i == 2 ? 30 : 0;
    const int start = 1'000 + 500 * i + ahead_us + late + (rank == 1 && i == 0 ? 1 : 0);
    events += (i == 0 ? "" : ",") +
              Kernel(std::to_string(start), std::to_string(80 - late), 7, i + 1, kAllReduce);
  }
  return events;
}

TEST(KinetoRanksTest, DifferencesOfClocksAreFoundAndHaveNoEffect) {
  const Imported imported = Import({File(0, KernelsOfRank(0, 0)), File(1, KernelsOfRank(1, 250))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  const auto& skew = imported.import.report.clock_skew;
  ASSERT_TRUE(skew);
  EXPECT_EQ(skew->rank, 1u);
  EXPECT_EQ(skew->other, 0u);
  EXPECT_EQ(skew->ps, 250'000'000);
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{1}][1].compute_before_ps, 419'000'000);
}

// Times are relative to baseTimeNanoseconds: what rank 1 says is 4 us earlier is 1.5 us later.
TEST(KinetoRanksTest, TimesOfRanksAreRelativeToTheBaseOfTheirFile) {
  const std::string base = "{\"baseTimeNanoseconds\": 17000000000000";
  const auto file = [&](int rank, int ahead_us, const std::string& last_digits) {
    return base + last_digits + ", " +
           File(static_cast<uint32_t>(rank), KernelsOfRank(rank, ahead_us)).substr(1);
  };
  const Imported imported = Import({file(0, 4, "00000"), file(1, 0, "05500")});
  ASSERT_TRUE(imported.import.report.clock_skew) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.report.clock_skew->ps, 1'500'000);
}

TEST(KinetoRanksTest, ClocksOfARankAloneAreNotCompared) {
  EXPECT_FALSE(Import({File(0, KernelsOfRank(0, 0))}).import.report.clock_skew);
}

TEST(KinetoRanksTest, AKernelThatIsThereTwiceCountsOnce) {
  const std::string kernel = Kernel("1", "1", 7, 1, kAllReduce);
  const Imported imported = Import({File(0, kernel + "," + kernel)});
  ASSERT_TRUE(imported.import.trace);
  EXPECT_EQ(imported.import.report.calls_imported(), 1u);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kRecordedTwice).count, 1u);
}

TEST(KinetoRanksTest, RanksThatDisagreeLoseTheirCallsFromThereOn) {
  std::string other = kAllReduce;
  other.replace(other.find("1000"), 4, "2000");
  const Imported imported = Import(
      {File(0, Kernel("1", "1", 7, 1, kAllReduce) + "," + Kernel("3", "1", 7, 2, kAllReduce)),
       File(1, Kernel("1", "1", 7, 1, kAllReduce) + "," + Kernel("3", "1", 7, 2, other))});
  ASSERT_TRUE(imported.import.trace);
  EXPECT_EQ(imported.import.report.calls_imported(), 2u);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kRanksDisagree).count, 2u);
}

// The profile of rank 1 begins one call later; its clock is 250 us ahead.
TEST(KinetoRanksTest, CallsThatAreNumberedAreMatchedByTheirNumbers) {
  const auto events = [](int first, int last, int ahead_us) {
    std::string text;
    for (int i = first; i <= last; ++i) {
      std::string call = kAllReduce;
      call.replace(call.find("1000, \"Out"), 4, std::to_string(100 * i));
      call.replace(call.find("1000,\n"), 4, std::to_string(100 * i));
      text += (i == first ? "" : ",") + Kernel(std::to_string(1'000 + 500 * i + ahead_us), "80", 7,
                                               i, call + fmt::format(", \"Seq\": {}", i));
    }
    return text;
  };
  const Imported imported = Import({File(0, events(1, 4, 0)), File(1, events(2, 5, 250))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  for (GlobalRank rank{0}; rank < 2; ++rank) {
    const auto& program = imported.import.trace->operations[GlobalRank{rank}];
    ASSERT_EQ(program.size(), 3u);
    EXPECT_EQ(program[0].count, 200u);
    EXPECT_EQ(program[2].count, 400u);
  }
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kIncompleteOnRank).count, 2u);
  ASSERT_TRUE(imported.import.report.clock_skew);
  EXPECT_EQ(imported.import.report.clock_skew->ps, 250'000'000);
}

// Each rank states its own size of an all_gather of unequal tensors.
TEST(KinetoRanksTest, NumberedCallsBehindOneThatDiffersStay) {
  const auto events = [](int rank) {
    std::string text;
    for (int i = 1; i <= 4; ++i) {
      std::string call = kAllReduce;
      if (i == 2) call.replace(call.find("1000, \"Out"), 4, std::to_string(100 * (rank + 1)));
      if (i == 2) call.replace(call.find("1000,\n"), 4, std::to_string(100 * (rank + 1)));
      text += (i == 1 ? "" : ",") +
              Kernel(std::to_string(500 * i), "80", 7, i, call + fmt::format(", \"Seq\": {}", i));
    }
    return text;
  };
  const Imported imported = Import({File(0, events(0)), File(1, events(1))});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{0}].size(), 3u);
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kRanksDisagree).count, 2u);
}

// Two calls of a coalesced group have one number. The kernels state none; their launches do.
TEST(KinetoRanksTest, CallsOfACoalescedGroupShareTheirNumber) {
  const auto launch = [](int id, int number) {
    return fmt::format(R"({{"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1,
"dur": 1, "args": {{"External id": {}, "Seq": {}{}}}}})",
                       id, number, kAllReduce);
  };
  std::string events;
  for (int i = 1; i <= 4; ++i) {
    events += (i == 1 ? "" : ",") + launch(i, (i + 1) / 2) + "," +
              Kernel(std::to_string(100 * i), "10", 7, i, "");
  }
  const Imported imported = Import({File(0, events), File(1, events)});
  ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
  EXPECT_EQ(imported.import.trace->operations[GlobalRank{1}].size(), 4u);
  EXPECT_EQ(imported.import.report.calls_dropped(), 0u);
}

TEST(KinetoRanksTest, MissingRanksAreRefusedOnRequest) {
  const Imported imported = Import({File(0, Kernel("1", "1", 7, 1, kAllReduce))},
                                   {.missing_ranks = MissingRanks::kRefuse});
  EXPECT_FALSE(imported.import.trace);
  EXPECT_THAT(imported.diagnostics.ToString(), HasSubstr("1 of 2 ranks are missing"));
  EXPECT_EQ(imported.import.report.DroppedFor(CallDropReason::kRanksMissing).count, 1u);
}

TEST(KinetoRanksTest, ProfilesOfOneRankThatOverlapAreNamed) {
  const auto step = [](const std::string& start, int correlation) {
    return File(0, Kernel(start, "50", 7, correlation, kAllReduce));
  };
  for (const auto& [second, overlaps] :
       {std::pair("149", true), std::pair("20", true), std::pair("150", false)}) {
    const Imported imported = Import({step("100", 1), step(second, 2)});
    ASSERT_TRUE(imported.import.trace) << imported.diagnostics.ToString();
    const std::string text = imported.import.report.ToString();
    EXPECT_EQ(text.find("of rank 0 overlap or are not in order of time") != std::string::npos,
              overlaps)
        << text;
    EXPECT_EQ(imported.diagnostics.ToString().find("rank1.json: warning: the profiles ") !=
                  std::string::npos,
              overlaps);
  }
}

}  // namespace
}  // namespace railyard
