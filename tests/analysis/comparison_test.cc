// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/compare/comparison.h"

#include <new>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "analysis/compare/comparison_text.h"
#include "analysis/compare/stored_result.h"
#include "analysis/writers/result_files.h"
#include "simulator/diagnostics/diagnostics.h"
#include "tests/analysis/made_up_run.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

using testing::MadeUpRun;
using testing::ScratchDirectory;

// A result of AllReduces with these durations.
StoredResult ResultOf(const std::vector<int64_t>& durations_ps) {
  StoredResult result;
  result.directory = "a";
  result.status = "COMPLETED";
  for (const int64_t duration_ps : durations_ps) {
    result.collectives.push_back({.index = result.collectives.size(),
                                  .kind = "AllReduce",
                                  .ranks = 8,
                                  .bytes = 1 << 20,
                                  .duration_ps = duration_ps});
  }
  return result;
}

TEST(Comparison, EqualResultsAreEqual) {
  const StoredResult result = ResultOf(std::vector<int64_t>(20, 1'000));
  const Comparison comparison = Compare(result, result);
  const KindComparison& all = comparison.kinds.front();
  EXPECT_EQ(all.verdict, Verdict::kEqual);
  EXPECT_EQ(all.pairs, 20u);
  EXPECT_EQ(all.equal, 20u);
  EXPECT_EQ(all.difference, 0);
  EXPECT_EQ(all.low, 0);
  EXPECT_EQ(all.high, 0);
  EXPECT_FALSE(comparison.Exceeds(0));
}

TEST(Comparison, OneFactorForAllHasAnIntervalOfNoWidth) {
  const Comparison comparison =
      Compare(ResultOf(std::vector<int64_t>(50, 1'000)), ResultOf(std::vector<int64_t>(50, 1'250)));
  const KindComparison& all = comparison.kinds.front();
  EXPECT_EQ(all.verdict, Verdict::kSlower);
  EXPECT_EQ(all.slower, 50u);
  EXPECT_DOUBLE_EQ(all.difference, 0.25);
  EXPECT_DOUBLE_EQ(all.low.value(), 0.25);
  EXPECT_DOUBLE_EQ(all.high.value(), 0.25);
  EXPECT_DOUBLE_EQ(all.median_ratio, 1.25);
  EXPECT_TRUE(comparison.Exceeds(0.2));
  EXPECT_FALSE(comparison.Exceeds(0.3));
}

TEST(Comparison, FasterIsTheOtherWayRound) {
  const Comparison comparison =
      Compare(ResultOf(std::vector<int64_t>(10, 1'000)), ResultOf(std::vector<int64_t>(10, 500)));
  EXPECT_EQ(comparison.kinds.front().verdict, Verdict::kFaster);
  EXPECT_DOUBLE_EQ(comparison.kinds.front().difference, -0.5);
  EXPECT_TRUE(comparison.Exceeds(0.4));
}

// Half of the pairs take 10 % more and half 10 % less: the mean of n resampled signs of 0.1 has the
// standard error 0.1 / sqrt(n), so the interval is 0.196 / sqrt(n) to either side of 0.
TEST(Comparison, WhatCancelsIsNoDifference) {
  constexpr size_t kPairs = 400;
  std::vector<int64_t> second;
  for (size_t i = 0; i < kPairs; ++i) second.push_back(i % 2 == 0 ? 1'100 : 900);
  const Comparison comparison =
      Compare(ResultOf(std::vector<int64_t>(kPairs, 1'000)), ResultOf(second));
  const KindComparison& all = comparison.kinds.front();
  EXPECT_EQ(all.verdict, Verdict::kNoDifference);
  EXPECT_EQ(all.equal, 0u);
  EXPECT_NEAR(all.low.value(), -0.0098, 0.0015);
  EXPECT_NEAR(all.high.value(), 0.0098, 0.0015);
  EXPECT_FALSE(comparison.Exceeds(0));
}

TEST(Comparison, FewPairsHaveNoInterval) {
  const Comparison comparison = Compare(ResultOf({10, 10}), ResultOf({10, 12}));
  EXPECT_FALSE(comparison.kinds.front().low.has_value());
  EXPECT_EQ(comparison.kinds.front().verdict, Verdict::kSlower);
}

TEST(Comparison, OnlyTheSameCollectivesArePaired) {
  StoredResult first = ResultOf({10, 20, 30, 40});
  StoredResult second = ResultOf({10, 20, 30, 40, 50});
  second.collectives[1].kind = "AllGather";
  second.collectives[2].bytes *= 2;
  second.collectives[3].duration_ps.reset();
  const Comparison comparison = Compare(first, second);
  EXPECT_EQ(comparison.kinds.front().pairs, 1u);
  EXPECT_EQ(comparison.first_alone, 3u);
  EXPECT_EQ(comparison.second_alone, 4u);
  EXPECT_TRUE(comparison.Exceeds(1));
}

TEST(Comparison, WithoutPairsThereAreNoFigures) {
  StoredResult second = ResultOf({10, 20});
  for (StoredCollective& collective : second.collectives) collective.ranks = 3;
  const Comparison comparison = Compare(ResultOf({10, 20}), second);
  EXPECT_EQ(comparison.kinds.front().verdict, Verdict::kNothing);
  const std::string json = ComparisonsJson({comparison}, 0.01);
  EXPECT_THAT(json, HasSubstr("\"median_ratio\": null"));
  EXPECT_THAT(json, HasSubstr("\"difference\": null"));
  EXPECT_THAT(ComparisonText(comparison, 0.01),
              HasSubstr("Runs that do not have the same collectives"));
}

TEST(Comparison, KindsAreComparedSeparately) {
  StoredResult first = ResultOf({10, 20});
  first.collectives[1].kind = "AllGather";
  StoredResult second = first;
  second.collectives[1].duration_ps = 40;
  const Comparison comparison = Compare(first, second);
  ASSERT_EQ(comparison.kinds.size(), 3u);
  EXPECT_EQ(comparison.kinds[1].kind, "AllReduce");
  EXPECT_EQ(comparison.kinds[1].verdict, Verdict::kEqual);
  EXPECT_EQ(comparison.kinds[2].kind, "AllGather");
  EXPECT_DOUBLE_EQ(comparison.kinds[2].difference, 1);
}

TEST(Comparison, AnotherStatusExceedsEveryThreshold) {
  StoredResult second = ResultOf({10});
  second.status = "JOB_ABORTED";
  EXPECT_TRUE(Compare(ResultOf({10}), second).Exceeds(1e6));
}

TEST(Comparison, ReadsWhatARunWrote) {
  const ScratchDirectory scratch;
  WriteResults(scratch / "run", MadeUpRun());
  Diagnostics diagnostics;
  const auto result = ReadStoredResult(scratch / "run", diagnostics);
  ASSERT_TRUE(result) << diagnostics.ToString();
  ASSERT_EQ(result->collectives.size(), 3u);
  EXPECT_EQ(result->collectives[0].duration_ps, 1'000'000'000);
  EXPECT_EQ(result->collectives[1].duration_ps, 10'000'000'000);
  EXPECT_EQ(result->collectives[2].kind, "AllGather");
  EXPECT_EQ(Compare(*result, *result).kinds.front().verdict, Verdict::kEqual);
}

TEST(Comparison, RefusesWhatIsNoResult) {
  const ScratchDirectory scratch;
  Diagnostics diagnostics;
  EXPECT_FALSE(ReadStoredResult(scratch / "none", diagnostics));
  EXPECT_EQ(diagnostics.ToString(),
            scratch / "none" + ": error: is no result of a run (expected results.sqlite in it)\n");
}

// Whichever of SQLite's allocations fails, the file is none the worse for it.
TEST(Comparison, AResultThatMemoryDoesNotSufficeForIsNoFinding) {
  const ScratchDirectory scratch;
  WriteResults(scratch / "run", MadeUpRun());
  Diagnostics diagnostics;
  constexpr int64_t kStepBytes = 256;
  int64_t limit_bytes = 1;
  int failures = 0;
  std::optional<StoredResult> result;
  while (!result) {
    sqlite3_hard_heap_limit64(limit_bytes);
    try {
      result = ReadStoredResult(scratch / "run", diagnostics);
    } catch (const std::bad_alloc&) {
      ++failures;
    }
    sqlite3_hard_heap_limit64(0);
    ASSERT_EQ(diagnostics.ToString(), "") << limit_bytes << " bytes";
    limit_bytes += kStepBytes;
  }
  EXPECT_GT(failures, 100);
  EXPECT_EQ(result->collectives[2].kind, "AllGather");
}

TEST(ComparisonText, SaysWhichIsSlower) {
  StoredResult first = ResultOf(std::vector<int64_t>(10, 1'000'000));
  StoredResult second = ResultOf(std::vector<int64_t>(10, 1'500'000));
  second.directory = "b";
  const std::string text = ComparisonText(Compare(first, second), 0.01);
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "b is slower than a: its collectives take 50.00 % more time in all.");
  EXPECT_NE(text.find("This exceeds the threshold of 1 %."), std::string::npos) << text;
}

}  // namespace
}  // namespace railyard
