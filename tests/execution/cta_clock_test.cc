// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/execution/lanes/cta_clock.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

constexpr uint64_t kRateBps = 8'000'000'000;  // a byte takes 1 ns
constexpr int64_t kBytePs = 1'000;
constexpr MessageRule kSimple;
constexpr MessageRule kLl = {.line_payload_bytes = 8, .line_wire_bytes = 16};
constexpr MessageRule kLl128 = {.line_payload_bytes = 120, .line_wire_bytes = 128};

TEST(CtaClockTest, TheSameCostsAndLinesHaveOneNumber) {
  CtaClock clock(2);
  const StepCosts costs = {.channel_rate_bps = kRateBps};
  const uint8_t simple = clock.AddCosts(costs, kSimple);
  const uint8_t ll = clock.AddCosts(costs, kLl);
  EXPECT_NE(simple, ll);
  EXPECT_EQ(clock.AddCosts(costs, kSimple), simple);
  EXPECT_EQ(clock.costs(ll), costs);
}

// LL sends lines of 16 B with 8 B of data, LL128 lines of 128 B with 120 B; both send whole lines,
// whose flags are in them.
TEST(CtaClockTest, LinesCarryTheirFlags) {
  CtaClock clock(1);
  const uint8_t simple = clock.AddCosts({}, kSimple);
  const uint8_t ll = clock.AddCosts({}, kLl);
  const uint8_t ll128 = clock.AddCosts({}, kLl128);
  EXPECT_EQ(clock.SizeOf(simple, 1'000).bytes, 1'000u);
  EXPECT_EQ(clock.SizeOf(ll, 100).bytes, 13u * 16);
  EXPECT_EQ(clock.SizeOf(ll, 104).bytes, 13u * 16);
  EXPECT_EQ(clock.SizeOf(ll128, 1'000).bytes, 9u * 128);
  EXPECT_EQ(clock.SizeOf(ll128, 1'000).data_bytes, 1'000u);
  EXPECT_TRUE(clock.HasFlagBehindData(simple));
  EXPECT_FALSE(clock.HasFlagBehindData(ll));
  EXPECT_FALSE(clock.HasFlagBehindData(ll128));
}

TEST(CtaClockTest, ASliceTakesItsBytesAtTheRateOfItsWarps) {
  CtaClock clock(1);
  const uint8_t costs = clock.AddCosts({.channel_rate_bps = kRateBps}, kSimple);
  EXPECT_EQ(clock.SlicePs({.costs = costs}, 8'192), 8'192 * kBytePs);
  EXPECT_EQ(clock.SlicePs({.costs = costs}, 0), 0);
  EXPECT_EQ(clock.SlicePs({.costs = costs, .warp_parts = 1, .warps_of = 4}, 8'192),
            int64_t{4} * 8'192 * kBytePs);
  EXPECT_EQ(clock.SlicePs({.costs = costs, .warp_parts = 3, .warps_of = 4}, 9'000),
            12'000 * kBytePs);
}

// Every thread waits for its line: the last iteration takes as long as a full one. In less than
// one iteration the bytes count.
TEST(CtaClockTest, ThreadsWorkInWholeIterations) {
  CtaClock clock(1);
  const uint8_t costs =
      clock.AddCosts({.channel_rate_bps = kRateBps, .iteration_bytes = 4'096}, kLl);
  EXPECT_EQ(clock.SlicePs({.costs = costs}, 1'000), 1'000 * kBytePs);
  EXPECT_EQ(clock.SlicePs({.costs = costs}, 4'096), 4'096 * kBytePs);
  EXPECT_EQ(clock.SlicePs({.costs = costs}, 4'097), 2 * 4'096 * kBytePs);
}

// Two parts of four warps each, which alone move 4 Gb/s, share 6.
TEST(CtaClockTest, PartsMoveAtTheRateOfTheirWarpsWithinTheirLimit) {
  constexpr uint64_t kGbps = 1'000'000'000;
  CtaClock clock(1);
  const uint8_t costs =
      clock.AddCosts({.warp_rate_bps = kGbps, .parts_rate_bps = 12 * kGbps}, kSimple);
  const WarpShare four = {.of = 2, .warps = 4};
  const PartRates equal = clock.RatesOf(costs, four, four);
  EXPECT_EQ(equal.alone_bps, 4 * kGbps);
  EXPECT_EQ(equal.beside_bps, 3 * kGbps);
  // A slower part leaves the rest to the other, and keeps its own rate.
  const WarpShare one = {.of = 2, .warps = 1};
  EXPECT_EQ(clock.RatesOf(costs, four, one).beside_bps, 4 * kGbps);
  EXPECT_EQ(clock.RatesOf(costs, one, four).beside_bps, 1 * kGbps);
  // No part exceeds the limit, even alone.
  EXPECT_EQ(clock.RatesOf(costs, {.of = 2, .warps = 9}, {}).alone_bps, 6 * kGbps);
  // Without such rates lanes have fixed shares.
  EXPECT_EQ(clock.RatesOf(clock.AddCosts({}, kSimple), four, four).alone_bps, 0u);
}

TEST(CtaClockTest, APartIsSlowerForAsLongAsTheOtherMoves) {
  constexpr PartRates kRates = {.alone_bps = 4'000, .beside_bps = 3'000};
  EXPECT_EQ(CtaClock::PartPs(kRates, 3'000, 0), 3'000);
  EXPECT_EQ(CtaClock::PartPs(kRates, 3'000, -50), 3'000);
  EXPECT_EQ(CtaClock::PartPs(kRates, 3'000, 2'000), 3'500);
  EXPECT_EQ(CtaClock::PartPs(kRates, 3'000, 9'000), 4'000);
  EXPECT_EQ(CtaClock::AheadPs(kRates, 2'000), 500);
}

TEST(CtaClockTest, StepsAtOnceShareOneOverhead) {
  CtaClock clock(1);
  const uint8_t costs = clock.AddCosts({.slice_overhead_ps = 900}, kSimple);
  EXPECT_EQ(clock.OverheadPs({.costs = costs}), 900);
  EXPECT_EQ(clock.OverheadPs({.costs = costs, .steps_at_once = 3}), 300);
}

TEST(CtaClockTest, AGpuAtHalfSpeedTakesTwiceAsLong) {
  CtaClock clock(2);
  EXPECT_TRUE(clock.AllAtOwnSpeed());
  clock.SetSpeed(GpuIndex{1}, 0.5);
  EXPECT_FALSE(clock.AllAtOwnSpeed());
  EXPECT_EQ(clock.AtSpeedOfPs(GpuIndex{0}, 1'000), 1'000);
  EXPECT_EQ(clock.AtSpeedOfPs(GpuIndex{1}, 1'000), 2'000);
  EXPECT_EQ(clock.AtOwnSpeedPs(GpuIndex{0}, 1'000), 1'000);
  EXPECT_EQ(clock.AtOwnSpeedPs(GpuIndex{1}, 1'000), 500);
  EXPECT_FALSE(clock.StandsStill(GpuIndex{1}));
  clock.SetSpeed(GpuIndex{1}, 0);
  EXPECT_TRUE(clock.StandsStill(GpuIndex{1}));
  EXPECT_EQ(clock.AtSpeedOfPs(GpuIndex{1}, 1'000), 1'000);  // what has begun ends as it would have
}

}  // namespace
}  // namespace railyard
