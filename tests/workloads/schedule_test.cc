// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/schedule.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

// Ring Simple with 4-byte elements: two slices, at least 32 KiB, in units of 16 elements.
constexpr MessageRule kTwoSlices{2, 32 << 10, 64, 4, 1, 1};

void ExpectSlices(uint64_t chunk_bytes, uint64_t first, uint64_t second) {
  const Slice a = SliceOf(kTwoSlices, chunk_bytes, 0);
  const Slice b = SliceOf(kTwoSlices, chunk_bytes, 1);
  EXPECT_EQ(a.offset_bytes, 0u);
  EXPECT_EQ(a.bytes, first);
  EXPECT_EQ(b.offset_bytes, first);
  EXPECT_EQ(b.bytes, second);
}

TEST(SliceOf, HalvesAFullChunk) { ExpectSlices(2 << 20, 1 << 20, 1 << 20); }

TEST(SliceOf, RoundsTheFirstSliceUpToItsGrain) { ExpectSlices(100'000, 50'048, 49'952); }

TEST(SliceOf, MakesNoFirstSliceBelowTheMinimum) { ExpectSlices(40 << 10, 32 << 10, 8 << 10); }

TEST(SliceOf, PostsAnEmptySecondSliceOfASmallChunk) {
  ExpectSlices(32 << 10, 32 << 10, 0);
  ExpectSlices(1'000, 1'000, 0);
}

TEST(SliceOf, PostsTwoEmptySlicesOfAnEmptyChunk) { ExpectSlices(0, 0, 0); }

TEST(SliceOf, KeepsAChunkOfOneSliceWhole) {
  const Slice slice = SliceOf({}, 12'345, 0);
  EXPECT_EQ(slice.offset_bytes, 0u);
  EXPECT_EQ(slice.bytes, 12'345u);
}

}  // namespace
}  // namespace railyard
