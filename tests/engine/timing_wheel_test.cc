// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/engine/timing_wheel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {

bool operator<(const TimingWheel::Event& a, const TimingWheel::Event& b) {
  return std::tie(a.time_ps, a.tie, a.target) < std::tie(b.time_ps, b.tie, b.target);
}
bool operator==(const TimingWheel::Event& a, const TimingWheel::Event& b) {
  return std::tie(a.time_ps, a.tie, a.target) == std::tie(b.time_ps, b.tie, b.target);
}
void PrintTo(const TimingWheel::Event& event, std::ostream* out) {
  *out << '(' << event.time_ps << " ps, tie " << event.tie << ", target " << event.target << ')';
}

namespace {

using Event = TimingWheel::Event;

constexpr int64_t kBucketPs = int64_t{1} << TimingWheel::kBucketShift;
constexpr int64_t kHorizonPs = kBucketPs << TimingWheel::kSlotShift;
constexpr uint64_t kLargestTie = (uint64_t{1} << TimingWheel::kTieBits) - 1;

std::vector<Event> Drain(TimingWheel& wheel) {
  std::vector<Event> events;
  for (Event event; wheel.PopEarliest(event);) {
    events.push_back(event);
  }
  return events;
}

// Delays of every kind the wheel treats differently.
int64_t RandomDelayPs(std::mt19937_64& random) {
  switch (random() % 8) {
    case 0:
      return 0;
    case 1:
      return static_cast<int64_t>(random() % kBucketPs);
    case 2:
      return kBucketPs * static_cast<int64_t>(random() % 70);
    case 3:
    case 4:
      return static_cast<int64_t>(random() % 2'000'000);
    case 5:
      return kHorizonPs + static_cast<int64_t>(random() % 1024) - 512;
    case 6:
      return static_cast<int64_t>(random() % (4 * kHorizonPs));
    default:
      return static_cast<int64_t>(random() % 5'000'000'000'000);
  }
}

TEST(TimingWheelTest, AnEmptyWheelHasNothingToPop) {
  TimingWheel wheel;
  Event event;
  EXPECT_TRUE(wheel.empty());
  EXPECT_FALSE(wheel.PopEarliest(event));
}

TEST(TimingWheelTest, ReturnsExactlyWhatWasInsertedAtTheEdgesOfItsRanges) {
  std::vector<Event> events;
  for (const int64_t time_ps : {int64_t{0}, int64_t{1}, kBucketPs - 1, kBucketPs, kHorizonPs - 1,
                                kHorizonPs, kHorizonPs + kBucketPs - 1, kHorizonPs + kBucketPs,
                                int64_t{INT64_MAX} - 1, int64_t{INT64_MAX}}) {
    for (const uint64_t tie : {uint64_t{0}, kLargestTie}) {
      for (const uint32_t target : {0u, UINT32_MAX}) {
        events.push_back({time_ps, tie, target});
      }
    }
  }
  TimingWheel wheel;
  std::for_each(events.rbegin(), events.rend(),
                [&](const Event& event) { wheel.Insert(event.time_ps, event.tie, event.target); });
  EXPECT_EQ(wheel.size(), events.size());
  EXPECT_THAT(Drain(wheel), ::testing::ElementsAreArray(events));
  EXPECT_TRUE(wheel.empty());
}

TEST(TimingWheelTest, OrderOfEqualTimesIsByTieThenTargetWhateverTheOrderOfInsertion) {
  std::mt19937_64 random(1);
  std::vector<Event> events;
  for (int64_t time_ps : {int64_t{0}, int64_t{1'000'000}, 3 * kHorizonPs}) {
    for (uint64_t i = 0; i < 100; ++i) {
      events.push_back({time_ps, (i % 10) << 52 | i / 20, static_cast<uint32_t>(i)});
    }
  }
  std::vector<Event> expected = events;
  std::stable_sort(expected.begin(), expected.end());
  for (int round = 0; round < 20; ++round) {
    std::shuffle(events.begin(), events.end(), random);
    TimingWheel wheel;
    for (const Event& event : events) {
      wheel.Insert(event.time_ps, event.tie, event.target);
    }
    ASSERT_EQ(Drain(wheel), expected) << "round " << round;
  }
}

TEST(TimingWheelTest, AgreesWithASortedSetOverRandomInsertionsAndPops) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto wheel = std::make_unique<TimingWheel>();
    std::multiset<Event> reference;
    int64_t now_ps = 0;
    // Between almost empty and some thousands pending, so that runs are sparse and dense in turn.
    for (int step = 0; step < 60'000; ++step) {
      const bool grow = step / 7'000 % 2 == 0;
      if (random() % 8 < (grow ? 5u : 3u) || (reference.empty() && step % 3 == 0)) {
        const Event event{now_ps + RandomDelayPs(random), random() & kLargestTie >> random() % 56,
                          static_cast<uint32_t>(random())};
        wheel->Insert(event.time_ps, event.tie, event.target);
        reference.insert(event);
      } else {
        Event event;
        ASSERT_EQ(wheel->PopEarliest(event), !reference.empty());
        if (!reference.empty()) {
          ASSERT_EQ(event, *reference.begin()) << "seed " << seed << ", step " << step;
          now_ps = event.time_ps;
          reference.erase(reference.begin());
        }
      }
      ASSERT_EQ(wheel->size(), reference.size());
    }
    ASSERT_EQ(Drain(*wheel), std::vector<Event>(reference.begin(), reference.end()))
        << "seed " << seed;
  }
}

TEST(TimingWheelTest, AcceptsEventsIntoTheOpenBucketAndBeforeIt) {
  TimingWheel wheel;
  wheel.Insert(100 * kBucketPs + 10, 1, 1);
  wheel.Insert(100 * kBucketPs + 20, 1, 2);
  Event event;
  ASSERT_TRUE(wheel.PopEarliest(event));
  wheel.Insert(100 * kBucketPs + 15, 1, 3);
  wheel.Insert(100 * kBucketPs + 20, 0, 4);
  wheel.Insert(100 * kBucketPs + 25, 1, 5);
  wheel.Insert(7, 1, 6);
  std::vector<uint32_t> targets;
  for (const Event& popped : Drain(wheel)) {
    targets.push_back(popped.target);
  }
  EXPECT_THAT(targets, ::testing::ElementsAre(6, 3, 4, 2, 5));
}

TEST(TimingWheelTest, JumpsOverSecondsOfNothingInOneStep) {
  TimingWheel wheel;
  constexpr int64_t kSecondPs = 1'000'000'000'000;
  // Walking the slots of a day would take hours.
  for (int64_t second = 0; second < 86'400; ++second) {
    wheel.Insert(second * kSecondPs, 0, static_cast<uint32_t>(second));
    wheel.Insert(second * kSecondPs + 1, 0, static_cast<uint32_t>(second));
  }
  const std::vector<Event> events = Drain(wheel);
  ASSERT_EQ(events.size(), 2u * 86'400u);
  EXPECT_TRUE(std::is_sorted(events.begin(), events.end()));
}

// Two buckets of 50 events: those of the second are looked at while the first is drained.
TEST(TimingWheelTest, PrefetchesOfAnyTableLeaveTheOrderAlone) {
  struct Record {
    uint32_t neighbour;
  };
  std::vector<Record> records(100);
  for (uint32_t i = 0; i < 100; ++i) records[i].neighbour = 99 - i;
  const auto* const base = reinterpret_cast<const char*>(records.data());
  const TimingWheel::PrefetchTable table = {&base, sizeof(Record)};
  TimingWheel wheel;
  wheel.SetPrefetch(1, {.records = table,
                        .fields = {{{.offset = offsetof(Record, neighbour), .table = table}, {}}}});
  wheel.SetPrefetch(2, {.records = table, .fields = {}});
  std::vector<Event> expected;
  for (uint32_t i = 0; i < 100; ++i) {
    // Two buckets, so that one is looked at while the other is drained.
    expected.push_back({i < 50 ? 1'000'000 : 2'000'000, uint64_t{i % 4} << 52 | i, i});
    wheel.Insert(expected.back().time_ps, expected.back().tie, i);
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(Drain(wheel), expected);
}

// AddressSanitizer tells if the second round reads a record.
TEST(TimingWheelTest, AClearedPrefetchReadsNothing) {
  const char* base = nullptr;
  TimingWheel wheel;
  const TimingWheel::PrefetchTable table = {&base, 64};
  wheel.SetPrefetch(1, {.records = table, .fields = {{{.offset = 8, .table = table}, {}}}});
  wheel.ClearPrefetch();
  for (uint32_t i = 0; i < 100; ++i) wheel.Insert(int64_t{i} * 50, uint64_t{1} << 52 | i, i);
  EXPECT_EQ(Drain(wheel).size(), 100u);
}

}  // namespace
}  // namespace railyard
