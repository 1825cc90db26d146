// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/state/state_archive.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Counters of two parts of different widths.
struct Parts {
  uint32_t narrow = 0;
  uint64_t wide = 0;

  void Visit(StateArchive& archive) {
    archive.Count(narrow);
    archive.Count(wide);
  }
  CountSnapshot Counts() {
    StateArchive archive(0);
    Visit(archive);
    return archive.TakeCounts();
  }
  // While it counts 5 and 7.
  CountChanges Episode() {
    const CountSnapshot before = Counts();
    narrow += 5;
    wide += 7;
    return ChangesBetween(before, Counts());
  }
};

TEST(StateArchiveTest, ACountThatOverflowsItsWidthChangesByTheSame) {
  Parts far = {.narrow = 100, .wide = 100};
  Parts near = {.narrow = UINT32_MAX - 2, .wide = UINT64_MAX - 2};
  const CountChanges changes = far.Episode();
  EXPECT_EQ(near.Episode(), changes);
  StateArchive add(changes);
  near.Visit(add);
  EXPECT_EQ(near.narrow, 7u);  // 2^32 - 3 and twice 5
  EXPECT_EQ(near.wide, 11u);
}

// Instants that have passed are alike, however long ago; values are identified by their places.
TEST(StateArchiveTest, StatesAreRelativeToWhenTheyWereTaken) {
  const auto state_of = [](int64_t now_ps, int64_t instant_ps, uint32_t value) {
    StateArchive archive(now_ps);
    archive.Instant(instant_ps);
    archive.Value(value);
    return archive.TakeState();
  };
  EXPECT_EQ(state_of(100, 90, 3), state_of(1'000, 50, 3));
  EXPECT_EQ(state_of(100, 110, 3), state_of(1'000, 1'010, 3));
  EXPECT_FALSE(state_of(100, 110, 3) == state_of(100, 111, 3));
  EXPECT_FALSE(state_of(100, 90, 3) == state_of(100, 103, 0));
  const StateSnapshot state = state_of(100, 110, 3);
  EXPECT_EQ(state.instants_ahead_ps, 10);
  StateArchive put(state, 5'000);
  int64_t instant_ps = 0;
  uint32_t value = 0;
  put.Instant(instant_ps);
  put.Value(value);
  EXPECT_EQ(instant_ps, 5'010);
  EXPECT_EQ(value, 3u);
}

// Values and counts are at places of their own, so one visit can put and add.
TEST(StateArchiveTest, AStateIsPutAndCountsAreAddedInOneVisit) {
  uint32_t value = 3;
  int64_t instant_ps = 110;
  Parts parts = {.narrow = 1, .wide = 1};
  const auto visit = [&](StateArchive& archive) {
    archive.Value(value);
    parts.Visit(archive);
    archive.Section();
    archive.Instant(instant_ps);
    archive.Count(parts.wide);
  };
  StateArchive take(100);
  visit(take);
  const StateSnapshot state = take.TakeState();
  const CountChanges changes = {{0, uint64_t{5} << 32}, {1, 7}, {1u << kSectionShift, 9}};

  value = 8;
  instant_ps = 0;
  StateArchive put_and_add(state, changes, 1'000);
  visit(put_and_add);
  EXPECT_EQ(value, 3u);
  EXPECT_EQ(instant_ps, 1'010);
  EXPECT_EQ(parts.narrow, 6u);
  EXPECT_EQ(parts.wide, 1u + 7 + 9);
}

TEST(StateArchiveTest, AStateTakenAloneIsTheSameAsWithCounts) {
  uint32_t value = 3;
  Parts parts = {.narrow = 1, .wide = 1};
  const auto visit = [&](StateArchive& archive) {
    parts.Visit(archive);
    archive.Value(value);
  };
  StateArchive with_counts(0);
  visit(with_counts);
  StateArchive alone = StateArchive::OfState(0);
  visit(alone);
  EXPECT_EQ(alone.TakeState(), with_counts.TakeState());
  EXPECT_THAT(alone.TakeCounts(), ElementsAre(IsEmpty()));
  EXPECT_THAT(with_counts.TakeCounts(), ElementsAre(SizeIs(2)));
}

// A walk of two vectors, one after the other, of which the first grows.
struct GrowingParts {
  std::vector<uint32_t> first;
  std::vector<uint32_t> second;

  void Visit(StateArchive& archive) {
    for (uint32_t& value : first) {
      archive.Value(value);
      archive.Count(value);
    }
    archive.Section();
    for (uint32_t& value : second) {
      archive.Value(value);
      archive.Count(value);
    }
  }
};

TEST(StateArchiveTest, WhatIsNewInOneSectionMovesNothingInTheNext) {
  GrowingParts parts = {.first = {1, 2}, .second = {3, 4}};
  StateArchive take(0);
  parts.Visit(take);
  const StateSnapshot state = take.TakeState();
  const CountSnapshot before = take.TakeCounts();

  parts = {.first = {6, 7, 8}, .second = {9, 10}};
  StateArchive take_again(0);
  parts.Visit(take_again);
  const CountSnapshot after = take_again.TakeCounts();
  EXPECT_TRUE(HasPlacesOf(before, after));
  EXPECT_FALSE(HasPlacesOf(after, before));
  const CountChanges changes = ChangesBetween(before, after);

  StateArchive put(state, 0);
  parts.Visit(put);
  EXPECT_THAT(parts.first, ElementsAre(1, 2, 0));
  EXPECT_THAT(parts.second, ElementsAre(3, 4));
  StateArchive add(changes);
  parts.Visit(add);
  EXPECT_THAT(parts.first, ElementsAre(6, 7, 8));
  EXPECT_THAT(parts.second, ElementsAre(9, 10));

  // The snapshot has more places than the parts now; the others are skipped.
  parts = {.first = {0}, .second = {0, 0}};
  StateArchive put_less(state, 0);
  parts.Visit(put_less);
  EXPECT_THAT(parts.first, ElementsAre(1));
  EXPECT_THAT(parts.second, ElementsAre(3, 4));
}

}  // namespace
}  // namespace railyard
