// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/faults/fault_timeline.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<FaultInterval> IntervalsOf(const FaultTimeline& timeline, uint64_t seed,
                                       size_t count_max = 100'000) {
  std::vector<FaultInterval> intervals;
  std::optional<FaultInterval> interval;
  while (intervals.size() < count_max &&
         (interval = timeline.Interval(intervals.size(), interval, seed))) {
    intervals.push_back(*interval);
  }
  return intervals;
}

TEST(FaultTimelineTest, WithoutMoreItHoldsOnce) {
  FaultTimeline timeline;
  timeline.at_ps = 5;
  timeline.until_ps = 9;
  EXPECT_THAT(IntervalsOf(timeline, 1), ElementsAre(FaultInterval{5, 9}));
}

TEST(FaultTimelineTest, ItRepeatsWithItsPeriodSoManyTimes) {
  FaultTimeline timeline;
  timeline.at_ps = 1'000;
  timeline.until_ps = 1'200;
  timeline.period_ps = 700;
  timeline.count = 3;
  EXPECT_THAT(IntervalsOf(timeline, 1),
              ElementsAre(FaultInterval{1'000, 1'200}, FaultInterval{1'700, 1'900},
                          FaultInterval{2'400, 2'600}));
}

TEST(FaultTimelineTest, ARepetitionWithoutEndEndsWithTime) {
  FaultTimeline timeline;
  timeline.until_ps = kPsPerSecond;
  timeline.period_ps = kNeverPs / 10;
  timeline.count = UINT64_MAX;
  const auto intervals = IntervalsOf(timeline, 1);
  EXPECT_EQ(intervals.size(), 10u);
  EXPECT_LT(intervals.back().from_ps, intervals.back().until_ps);
}

// Uniform over [0, jitter): mean half of it, and its standard error over n draws is
// jitter / sqrt(12 n). Intervals keep their length.
TEST(FaultTimelineTest, JitterIsEvenAndOfEachIntervalAlone) {
  constexpr size_t kCount = 10'000;
  FaultTimeline timeline;
  timeline.until_ps = 100;
  timeline.period_ps = 2'000'000;
  timeline.jitter_ps = 1'000'000;
  timeline.count = kCount;
  const auto intervals = IntervalsOf(timeline, 7);
  ASSERT_EQ(intervals.size(), kCount);
  double sum = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const int64_t late_ps = intervals[i].from_ps - static_cast<int64_t>(i) * timeline.period_ps;
    EXPECT_GE(late_ps, 0);
    EXPECT_LT(late_ps, timeline.jitter_ps);
    EXPECT_EQ(intervals[i].until_ps - intervals[i].from_ps, 100);
    sum += static_cast<double>(late_ps);
  }
  const double error = 1'000'000 / std::sqrt(12.0 * kCount);
  EXPECT_NEAR(sum / kCount, 500'000, 4 * error);
  // Whichever is asked for, whatever was asked for before.
  EXPECT_EQ(timeline.Interval(77, std::nullopt, 7), intervals[77]);
  EXPECT_NE(timeline.Interval(77, std::nullopt, 8), intervals[77]);
}

TEST(FaultTimelineTest, WhatWasRecordedIsReplayed) {
  FaultTimeline timeline;
  timeline.recorded = {{3, 5}, {9, kNeverPs}};
  EXPECT_EQ(IntervalsOf(timeline, 1), timeline.recorded);
}

// Kolmogorov-Smirnov against 1 - exp(-x / mean), at the 1 % level: 1.63 / sqrt(n).
void ExpectExponential(std::vector<double> draws, double mean) {
  std::sort(draws.begin(), draws.end());
  const auto n = static_cast<double>(draws.size());
  double distance = 0;
  for (size_t i = 0; i < draws.size(); ++i) {
    const double expected = 1 - std::exp(-draws[i] / mean);
    distance = std::max({distance, std::abs(expected - static_cast<double>(i) / n),
                         std::abs(expected - static_cast<double>(i + 1) / n)});
  }
  EXPECT_LT(distance, 1.63 / std::sqrt(n));
}

TEST(FaultTimelineTest, TimesBetweenFailuresAndToRepairAreExponential) {
  FaultTimeline timeline;
  timeline.mean_between_ps = 100 * kPsPerSecond;
  timeline.mean_repair_ps = 3 * kPsPerSecond;
  const auto intervals = IntervalsOf(timeline, 11, 20'000);
  ASSERT_EQ(intervals.size(), 20'000u);
  std::vector<double> between;
  std::vector<double> repair;
  int64_t up_ps = 0;
  for (const FaultInterval& interval : intervals) {
    between.push_back(static_cast<double>(interval.from_ps - up_ps));
    repair.push_back(static_cast<double>(interval.until_ps - interval.from_ps));
    up_ps = interval.until_ps;
  }
  ExpectExponential(between, static_cast<double>(timeline.mean_between_ps));
  ExpectExponential(repair, static_cast<double>(timeline.mean_repair_ps));
}

TEST(FaultTimelineTest, ChanceBeginsNothingOutsideItsTime) {
  FaultTimeline timeline;
  timeline.at_ps = 50 * kPsPerSecond;
  timeline.until_ps = 60 * kPsPerSecond;
  timeline.training_ps = kPsPerSecond / 10;
  timeline.mean_between_ps = kPsPerSecond;
  timeline.mean_repair_ps = kPsPerSecond / 5.0;
  const auto intervals = IntervalsOf(timeline, 3);
  ASSERT_GT(intervals.size(), 2u);
  EXPECT_GE(intervals.front().from_ps, timeline.at_ps);
  EXPECT_LT(intervals.back().from_ps, timeline.until_ps);
  for (size_t i = 1; i < intervals.size(); ++i) {
    EXPECT_GT(intervals[i].from_ps, intervals[i - 1].until_ps + timeline.training_ps);
  }
}

// A mean of many years yields no failure within a run, and sums stay in range.
TEST(FaultTimelineTest, WhatComesAfterAllTimeDoesNotCome) {
  FaultTimeline timeline;
  timeline.mean_between_ps = static_cast<double>(kNeverPs);
  timeline.mean_repair_ps = static_cast<double>(kNeverPs);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    int64_t before_ps = 0;
    for (const FaultInterval& interval : IntervalsOf(timeline, seed)) {
      EXPECT_GT(interval.from_ps, before_ps);
      EXPECT_GT(interval.until_ps, interval.from_ps);
      before_ps = interval.until_ps;
    }
  }
  timeline.until_ps = 1;
  EXPECT_THAT(IntervalsOf(timeline, 1), IsEmpty());
}

}  // namespace
}  // namespace railyard
