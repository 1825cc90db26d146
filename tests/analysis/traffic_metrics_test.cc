// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/metrics/traffic_metrics.h"

#include <cmath>

#include <gtest/gtest.h>

#include "analysis/metrics/entropy.h"
#include "analysis/result/on_off_load.h"

namespace railyard {
namespace {

TEST(EntropyTest, IsLog2OfEqualPartsAndNoneOfOne) {
  EntropySum even;
  for (int i = 0; i < 12; ++i) even.Add(7);
  EXPECT_NEAR(even.Bits(), std::log2(12.0), 1e-12);
  EXPECT_EQ(even.parts(), 12u);
  EntropySum one;
  one.Add(5);
  one.Add(0);
  EXPECT_EQ(one.Bits(), 0);
  EXPECT_EQ(one.parts(), 1u);
  // 1/2, 1/4, 1/4: 1/2 + 2/4 + 2/4 bits.
  EntropySum uneven;
  uneven.Add(2);
  uneven.Add(1);
  uneven.Add(1);
  EXPECT_NEAR(uneven.Bits(), 1.5, 1e-12);
}

TEST(OnOffLoadTest, HasPeriodAndDutyOfItsWholePeriods) {
  // On for 3, off for 7, four times; out of order.
  const OnOffLoad load = MeasureOnOff({{20, 23}, {0, 3}, {30, 33}, {10, 13}});
  EXPECT_EQ(load.bursts, 4u);
  EXPECT_EQ(load.on_ps, 12);
  EXPECT_EQ(load.period_ps, 10);
  EXPECT_NEAR(*load.duty, 0.3, 1e-12);
}

TEST(OnOffLoadTest, WhatTouchesIsOneBurst) {
  const OnOffLoad load = MeasureOnOff({{0, 3}, {3, 5}, {4, 9}, {6, 7}, {12, 12}});
  EXPECT_EQ(load.bursts, 1u);
  EXPECT_EQ(load.on_ps, 9);
  EXPECT_FALSE(load.period_ps);
  EXPECT_FALSE(load.duty);
  EXPECT_EQ(MeasureOnOff({}).bursts, 0u);
}

TEST(TrafficMetricsTest, AnEvenPairMatrixHasLog2OfItsPairs) {
  RunResult run;
  run.gpu_count = 4;
  for (uint32_t from = 0; from < 4; ++from) {
    for (uint32_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      run.pairs.push_back(
          {.source_gpu = from, .destination_gpu = to, .tiers = "", .payload_bytes = 4});
    }
  }
  EXPECT_NEAR(TrafficOf(run).pair_entropy_bits, std::log2(12.0), 1e-12);
  EXPECT_NEAR(*TrafficOf(run).pair_entropy_share, 1, 1e-12);
}

TEST(TrafficMetricsTest, SizesCountAsOftenAsTheyOccur) {
  RunResult run;
  run.traffic.message_sizes = {{.bytes = 10, .count = 6}, {.bytes = 100, .count = 4}};
  const auto sizes = TrafficOf(run).message_sizes;
  EXPECT_EQ(sizes->count, 10u);
  EXPECT_EQ(sizes->mean, 46);
  EXPECT_EQ(sizes->min, 10u);
  EXPECT_EQ(sizes->p50, 10u);
  EXPECT_EQ(sizes->p90, 100u);
  EXPECT_EQ(sizes->max, 100u);
  EXPECT_FALSE(TrafficOf(RunResult()).message_sizes);
}

TEST(TrafficMetricsTest, LinksWithoutPayloadCountForNothing) {
  RunResult run;
  run.links.resize(3);
  run.links[0].flows = 4;
  run.links[0].flow_entropy_bits = 2;
  run.links[0].load = {.bursts = 2, .on_ps = 5, .period_ps = 10, .duty = 0.25};
  run.links[2].flows = 1;
  const TrafficFigures traffic = TrafficOf(run);
  EXPECT_EQ(traffic.links_used, 2u);
  EXPECT_EQ(traffic.flow_entropy_bits->mean, 1);
  EXPECT_EQ(traffic.link_periods->max_ps, 10);
  EXPECT_EQ(traffic.link_duty->mean, 0.25);
}

}  // namespace
}  // namespace railyard
