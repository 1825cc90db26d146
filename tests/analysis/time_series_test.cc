// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/result/time_series.h"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace railyard::testing {
namespace {

constexpr int64_t kBin = TimeSeries::kFirstBinPs;

LinkBin Carried(uint32_t link, uint64_t packets) {
  return {.link = link,
          .wire_bytes = 100 * packets,
          .payload_bytes = 90 * packets,
          .packets = packets,
          .paused_ps = static_cast<int64_t>(packets)};
}

LinkBin SumOf(const TimeSeries& series, uint32_t link) {
  LinkBin sum;
  for (const TimeBin& bin : series.bins()) {
    for (const LinkBin& row : bin.links) {
      if (row.link == link) sum.Add(row);
    }
  }
  return sum;
}

void ExpectWithoutGaps(const TimeSeries& series) {
  int64_t begin_ps = 0;
  for (const TimeBin& bin : series.bins()) {
    EXPECT_EQ(bin.begin_ps, begin_ps);
    EXPECT_GT(bin.end_ps, begin_ps);
    begin_ps = bin.end_ps;
  }
}

TEST(TimeSeriesTest, WhatEndsWithABinBelongsToIt) {
  TimeSeries series;
  series.Add(0, kBin, LinkRows{Carried(3, 7)}, {.cnp = 2});
  series.Add(kBin, kBin + 1, LinkRows{Carried(1, 5), Carried(3, 1)}, {.cnp = 1});
  ASSERT_EQ(series.bins().size(), 2u);
  ASSERT_EQ(series.bins()[0].links.size(), 1u);
  EXPECT_EQ(series.bins()[0].links.begin()->packets, 7u);
  EXPECT_EQ(series.bins()[0].network.cnp, 2u);
  ASSERT_EQ(series.bins()[1].links.size(), 2u);
  std::vector<uint32_t> links;
  for (const LinkBin& row : series.bins()[1].links) links.push_back(row.link);
  EXPECT_EQ(links, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(series.bins()[1].network.cnp, 1u);
}

// A quarter of the time is in the first bin, a half in the second, and so on.
TEST(TimeSeriesTest, ASpanIsSpreadEvenly) {
  TimeSeries series;
  series.Add(kBin / 2, kBin * 5 / 2, LinkRows{Carried(0, 400)}, {});
  ASSERT_EQ(series.bins().size(), 3u);
  EXPECT_EQ(series.bins()[0].links.begin()->packets, 100u);
  EXPECT_EQ(series.bins()[1].links.begin()->packets, 200u);
  EXPECT_EQ(series.bins()[2].links.begin()->packets, 100u);
}

// Parts are whole numbers, and nothing is lost in rounding them.
TEST(TimeSeriesTest, SumsAreKept) {
  TimeSeries series;
  for (int64_t i = 0; i < 100; ++i) {
    series.Add(i * kBin * 7 / 3, (i + 1) * kBin * 11 / 3, LinkRows{Carried(0, 13), Carried(9, 1)},
               {.timeouts = 1});
  }
  EXPECT_EQ(SumOf(series, 0).packets, 1'300u);
  EXPECT_EQ(SumOf(series, 0).wire_bytes, 130'000u);
  EXPECT_EQ(SumOf(series, 0).payload_bytes, 117'000u);
  EXPECT_EQ(SumOf(series, 0).paused_ps, 1'300);
  EXPECT_EQ(SumOf(series, 9).packets, 100u);
  uint64_t timeouts = 0;
  for (const TimeBin& bin : series.bins()) timeouts += bin.network.timeouts;
  EXPECT_EQ(timeouts, 100u);
  ExpectWithoutGaps(series);
}

TEST(TimeSeriesTest, BinsDoubleWhereTimeGoesBeyondThem) {
  TimeSeries series;
  series.Add(0, kBin, LinkRows{Carried(0, 1)}, {});
  series.Add(kBin, 2 * kBin, LinkRows{Carried(0, 2)}, {});
  series.Add(3 * kBin, static_cast<int64_t>(TimeSeries::kBinsMax) * kBin + 1,
             LinkRows{Carried(1, 1)}, {});
  EXPECT_EQ(series.bin_ps(), 2 * kBin);
  EXPECT_EQ(series.bins()[0].links.begin()->packets, 3u);
  EXPECT_LE(series.bins().size(), TimeSeries::kBinsMax);
  ExpectWithoutGaps(series);
}

// One bin has a silence, however long, and those before and after stay as narrow as they were.
TEST(TimeSeriesTest, ASilenceIsOneBin) {
  TimeSeries series;
  series.Add(0, kBin, LinkRows{Carried(0, 1)}, {});
  series.Skip(4'000'000 * kBin);
  series.Add(series.end_ps(), series.end_ps() + kBin, LinkRows{Carried(0, 2)}, {});
  ASSERT_EQ(series.bins().size(), 3u);
  EXPECT_EQ(series.bin_ps(), kBin);
  EXPECT_TRUE(series.bins()[1].links.empty());
  series.Double();
  ASSERT_EQ(series.bins().size(), 3u);
  EXPECT_EQ(series.bins()[0].end_ps, kBin);
  EXPECT_EQ(series.bins()[2].links.begin()->packets, 2u);
  ExpectWithoutGaps(series);
}

// Bins that cannot be joined without the silences between them are, once there are too many.
TEST(TimeSeriesTest, ManySilencesKeepToTheBudget) {
  TimeSeries series;
  for (int i = 0; i < 1'000; ++i) {
    const int64_t begin_ps = series.end_ps();
    series.Add(begin_ps, begin_ps + kBin, LinkRows{Carried(0, 1)}, {});
    series.Skip(series.end_ps() + 1'000 * kBin);
  }
  EXPECT_LE(series.bins().size(), TimeSeries::kBinsMax);
  EXPECT_EQ(SumOf(series, 0).packets, 1'000u);
  ExpectWithoutGaps(series);
}

TEST(TimeSeriesTest, TheLongestRunThereIs) {
  TimeSeries series;
  series.Add(0, kBin, LinkRows{Carried(0, 1)}, {});
  series.Extend(INT64_MAX);
  EXPECT_LE(series.bins().size(), TimeSeries::kBinsMax);
  EXPECT_EQ(series.end_ps(), INT64_MAX);
  EXPECT_EQ(SumOf(series, 0).packets, 1u);
}

TEST(TimeSeriesTest, RowsKeepToTheBudget) {
  TimeSeries series;
  LinkRows links;
  for (uint32_t link = 0; link < 1'000; ++link) links.Append(Carried(link, 1));
  for (int64_t bin = 0; bin < 200; ++bin) series.Add(bin * kBin, (bin + 1) * kBin, links, {});
  size_t rows = 0;
  for (const TimeBin& bin : series.bins()) rows += bin.links.size();
  EXPECT_LE(rows, TimeSeries::kRowsMax);
  EXPECT_GT(rows, TimeSeries::kRowsMax / 4);
  for (uint32_t link = 0; link < 1'000; link += 333) EXPECT_EQ(SumOf(series, link).packets, 200u);
}

// Twice as wide a bin has the samples of both, and the longer of the two queues.
TEST(TimeSeriesTest, SamplesOfDoubledBins) {
  TimeSeries series;
  const auto queue = [](uint64_t bytes) {
    return LinkRows{LinkBin{.link = 4, .queue_sum_bytes = bytes, .queue_max_bytes = bytes}};
  };
  series.AddSample(kBin, queue(100), {.queue_pairs = 1, .rate_sum_bps = 7, .rate_min_bps = 7});
  series.AddSample(2 * kBin, queue(300), {.queue_pairs = 1, .rate_sum_bps = 5, .rate_min_bps = 5});
  series.AddReplayed(kBin / 2, kBin * 3 / 2);
  series.Extend(2 * kBin + 1);
  ASSERT_EQ(series.bins().size(), 3u);
  EXPECT_EQ(series.bins()[0].replayed_ps, kBin / 2);
  series.Double();
  ASSERT_EQ(series.bins().size(), 2u);
  const TimeBin& bin = series.bins()[0];
  EXPECT_EQ(bin.samples, 2u);
  EXPECT_EQ(bin.replayed_ps, kBin);
  EXPECT_EQ(bin.links.begin()->queue_sum_bytes, 400u);
  EXPECT_EQ(bin.links.begin()->queue_max_bytes, 300u);
  EXPECT_EQ(bin.network.queue_pairs, 2u);
  EXPECT_EQ(bin.network.rate_min_bps, 5u);
  EXPECT_EQ(bin.network.rate_sum_bps, 12);
}

// The last bin ends with the run, and those that it did not reach are gone.
TEST(TimeSeriesTest, TheEnd) {
  TimeSeries series;
  series.Add(0, kBin / 2, LinkRows{Carried(0, 1)}, {});
  series.Extend(3 * kBin);
  series.AddReplayed(0, 3 * kBin);
  series.Finish(kBin * 3 / 2);
  ASSERT_EQ(series.bins().size(), 2u);
  EXPECT_EQ(series.bins()[1].end_ps, kBin * 3 / 2);
  EXPECT_EQ(series.bins()[1].replayed_ps, kBin / 2);
  // 100 bytes in half a microsecond at 1.6 Gbit/s.
  EXPECT_DOUBLE_EQ(UtilizationOf({.wire_bytes = 100}, 1'600'000'000, kBin / 2), 1);
}

}  // namespace
}  // namespace railyard::testing
