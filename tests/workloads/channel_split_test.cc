// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/channel_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<uint64_t> BytesOf(const std::vector<ChannelShare>& shares) {
  std::vector<uint64_t> bytes;
  uint64_t next = 0;
  for (const ChannelShare& share : shares) {
    if (share.bytes != 0) {
      EXPECT_EQ(share.offset_bytes, next) << "shares have a gap or overlap";
    }
    next += share.bytes;
    bytes.push_back(share.bytes);
  }
  return bytes;
}

TEST(SplitOverChannels, DividesALargeAllReduceEqually) {
  // 64 MiB, weight 2: 8 MiB of traffic per channel, 256 cells of 16 KiB.
  EXPECT_THAT(BytesOf(SplitOverChannels({23007, CollectiveKind::kAllReduce, 16u << 20, 4, 32, 16})),
              Each(4u << 20));
}

TEST(SplitOverChannels, GivesUpChannelsBelow32KiBEach) {
  // 100,000 B: 3 channels; traffic 200,000 / 3 → 66,672 → 3 cells of 16 KiB; 7 cells: 3 + 3 + 1.
  EXPECT_THAT(BytesOf(SplitOverChannels({23007, CollectiveKind::kAllReduce, 25'000, 4, 8, 4})),
              ElementsAre(49'152, 49'152, 1'696, 0));
  EXPECT_THAT(BytesOf(SplitOverChannels({23007, CollectiveKind::kAllReduce, 256, 4, 8, 4})),
              ElementsAre(1'024, 0, 0, 0));
}

TEST(SplitOverChannels, WeighsAllGatherByTheRanks) {
  // 8 x 1 MiB on 24 channels: 349,536 of traffic each → 11 cells of 4 KiB; 256 = 23 x 11 + 3.
  std::vector<uint64_t> expected(24, 45'056);
  expected.back() = 12'288;
  EXPECT_EQ(BytesOf(SplitOverChannels({23007, CollectiveKind::kAllGather, 1u << 20, 1, 8, 24})),
            expected);
  EXPECT_EQ(BytesOf(SplitOverChannels({23007, CollectiveKind::kReduceScatter, 1u << 18, 4, 8, 24})),
            expected);
}

TEST(SplitOverChannels, HalvesTheCellsBefore229) {
  // Cells of 8 KiB; 25,000 x 4 B: traffic 200,000 / 3 = 66,666 → 5 cells; 13 cells: 5 + 5 + 3.
  EXPECT_THAT(BytesOf(SplitOverChannels({22705, CollectiveKind::kAllReduce, 25'000, 4, 8, 4})),
              ElementsAre(40'960, 40'960, 18'080, 0));
}

TEST(SplitOverChannels, PutsWhatDoesNotFitOnTheLastChannel) {
  // 300 cells of 8 KiB and one byte on three channels: 100 + 100 + 101 cells.
  EXPECT_THAT(
      BytesOf(SplitOverChannels({22705, CollectiveKind::kAllReduce, 3 * 100 * 8192 + 1, 1, 8, 3})),
      ElementsAre(819'200, 819'200, 819'201));
}

TEST(SplitOverChannels, UsesOneChannelWhereThereIsOne) {
  EXPECT_THAT(BytesOf(SplitOverChannels({22705, CollectiveKind::kBroadcast, 1'000'003, 1, 8, 1})),
              ElementsAre(1'000'003));
}

TEST(SplitOverChannels, LeavesAllChannelsIdleWithoutData) {
  EXPECT_THAT(BytesOf(SplitOverChannels({22705, CollectiveKind::kReduce, 0, 4, 8, 4})), Each(0u));
}

TEST(SplitOverChannels, CoversEverySizeOnce) {
  for (const uint32_t version : {22705u, 23007u}) {
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                      CollectiveKind::kReduceScatter, CollectiveKind::kReduce}) {
      for (const uint32_t channels : {1u, 2u, 3u, 16u, 24u, 64u}) {
        for (uint64_t count = 1; count < (uint64_t{1} << 36); count = count * 7 + 3) {
          uint64_t sum = 0;
          for (const uint64_t bytes :
               BytesOf(SplitOverChannels({version, kind, count, 2, 17, channels}))) {
            sum += bytes;
          }
          ASSERT_EQ(sum, count * 2);
        }
      }
    }
  }
}

}  // namespace
}  // namespace railyard
