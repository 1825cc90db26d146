// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/episodes/episode_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

StateSnapshot State(uint64_t value, uint64_t hash) {
  return {.values = {{0, value}}, .hash = hash};
}

// It has two calls, the first of rank 1.
Episode FromState(uint32_t state) {
  return {.begin_state = state,
          .end_state = state,
          .duration_ps = 20,
          .operations = {{.place = EpisodePlace{1}, .plan = 4, .end_ps = 20},
                         {.place = EpisodePlace{0}, .plan = 4, .begin_ps = 5, .end_ps = 10}}};
}

TEST(EpisodeCacheTest, EqualStatesHaveOneNumber) {
  EpisodeCache cache;
  const uint32_t number = cache.NumberOf(State(7, 1));
  EXPECT_EQ(cache.NumberOf(State(7, 1)), number);
  EXPECT_EQ(cache.state(number).values, State(7, 1).values);
}

TEST(EpisodeCacheTest, StatesWithOneHashAreDistinguishedByTheirValues) {
  EpisodeCache cache;
  EXPECT_NE(cache.NumberOf(State(7, 1)), cache.NumberOf(State(8, 1)));
}

// A state has two words; an episode of two calls has more than four.
TEST(EpisodeCacheTest, WhatIsRefusedForLackOfRoomTakesNone) {
  constexpr uint64_t kStateBytes = 16;
  EpisodeCache cache(2 * kStateBytes);
  const uint32_t first = cache.NumberOf(State(7, 1));
  EXPECT_NE(first, EpisodeCache::kStateUnknown);
  EXPECT_EQ(cache.Add(FromState(first)), EpisodeCache::kStateUnknown);
  EXPECT_EQ(cache.episode_count(), 0u);
  EXPECT_NE(cache.NumberOf(State(8, 2)), EpisodeCache::kStateUnknown);
  EXPECT_EQ(cache.NumberOf(State(9, 3)), EpisodeCache::kStateUnknown);
  EXPECT_EQ(cache.NumberOf(State(7, 1)), first);
}

// An iteration of a job that has two makes half of its calls.
TEST(EpisodeCacheTest, ThereIsRoomForAnIterationOfTwoHoweverManyItsCallsAre) {
  constexpr uint64_t kCalls = 12'000'000;
  constexpr uint64_t kCallBytes = sizeof(EpisodeOperation) + sizeof(uint32_t);
  EXPECT_EQ(EpisodeCache::BytesMaxOf(0, false), EpisodeCache::kBytesMax);
  EXPECT_EQ(EpisodeCache::BytesMaxOf(2 * kCalls, false) - EpisodeCache::kBytesMax,
            kCalls * kCallBytes);
  EXPECT_EQ(EpisodeCache::BytesMaxOf(2 * kCalls, true) - EpisodeCache::kBytesMax,
            kCalls * (kCallBytes + sizeof(EpisodePath)));
}

TEST(EpisodeCacheTest, FindsEpisodesByStateAndFirstCall) {
  EpisodeCache cache;
  const uint32_t state = cache.NumberOf(State(7, 1));
  const uint32_t other = cache.NumberOf(State(8, 2));
  const uint32_t first = cache.Add(FromState(state));
  const uint32_t second = cache.Add(FromState(state));
  const uint32_t third = cache.Add(FromState(other));
  EXPECT_THAT(cache.Find(state, EpisodePlace{1}, 4), ElementsAre(first, second));
  EXPECT_THAT(cache.Find(other, EpisodePlace{1}, 4), ElementsAre(third));
  EXPECT_EQ(cache.episode_count(), 3u);
  // One case per field of the key.
  EXPECT_THAT(cache.Find(other + 1, EpisodePlace{1}, 4), IsEmpty());
  EXPECT_THAT(cache.Find(state, EpisodePlace{0}, 4), IsEmpty());
  EXPECT_THAT(cache.Find(state, EpisodePlace{1}, 5), IsEmpty());
}

TEST(EpisodeCacheTest, CallsEndInTheOrderOfTheirEnds) {
  EpisodeCache cache;
  const Episode& episode = cache.episode(cache.Add(FromState(0)));
  EXPECT_THAT(episode.end_order, ElementsAre(1, 0));
  EXPECT_EQ(episode.LastEndPs(), 20);
}

}  // namespace
}  // namespace railyard
