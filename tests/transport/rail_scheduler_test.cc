// SPDX-License-Identifier: GPL-2.0-only
// Expected values: aws-ofi-nccl, src/nccl_ofi_scheduler.cpp (get_num_stripes,
// set_schedule_by_threshold) and, for messages that take all rails, its version of 2023.
#include "simulator/transport/connections/rail_scheduler.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kKiB = 1024;

uint32_t StripesOf(RailScheduler& scheduler, uint64_t bytes, uint32_t rails = 4) {
  return scheduler.Next(GpuIndex{0}, bytes, rails).stripes;
}

TEST(RailSchedulerTest, AStripeHasAtLeastItsSizeAndTheirNumberDividesThatOfTheRails) {
  RailScheduler scheduler({});
  EXPECT_EQ(StripesOf(scheduler, 0), 1u);
  EXPECT_EQ(StripesOf(scheduler, 128 * kKiB), 1u);
  EXPECT_EQ(StripesOf(scheduler, 128 * kKiB + 1), 2u);
  EXPECT_EQ(StripesOf(scheduler, 384 * kKiB), 2u);  // not 3
  EXPECT_EQ(StripesOf(scheduler, 384 * kKiB + 1), 4u);
  EXPECT_EQ(StripesOf(scheduler, 8192 * kKiB), 4u);
  EXPECT_EQ(StripesOf(scheduler, 8192 * kKiB, 2), 2u);
  EXPECT_EQ(StripesOf(scheduler, 8192 * kKiB, 1), 1u);
}

TEST(RailSchedulerTest, AMessageAboveTheThresholdTakesAllRails) {
  RailScheduler scheduler({.stripe_bytes = 256 * kKiB, .takes_all_rails = true});
  EXPECT_EQ(StripesOf(scheduler, 256 * kKiB), 1u);
  EXPECT_EQ(StripesOf(scheduler, 256 * kKiB + 1), 4u);
}

TEST(RailSchedulerTest, StripesAreCountedWithoutTakingATurn) {
  RailScheduler scheduler({});
  EXPECT_EQ(scheduler.Stripes(256 * kKiB, 4), 2u);
  EXPECT_EQ(scheduler.Next(GpuIndex{0}, 64 * kKiB, 4).first_rail, 0u);
}

TEST(RailSchedulerTest, MessagesOfAGpuTakeItsRailsInTurn) {
  RailScheduler scheduler({});
  std::vector<uint32_t> first;
  for (const uint64_t kib : {64u, 64u, 200u, 64u, 64u}) {
    first.push_back(scheduler.Next(GpuIndex{0}, kib * kKiB, 4).first_rail);
  }
  EXPECT_THAT(first, ElementsAre(0, 1, 2, 0, 1));
  EXPECT_EQ(scheduler.Next(GpuIndex{3}, 64 * kKiB, 4).first_rail, 0u);
}

}  // namespace
}  // namespace railyard
