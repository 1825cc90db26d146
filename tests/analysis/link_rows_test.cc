// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/result/link_rows.h"

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace railyard::testing {
namespace {

// All of it, as a row that can be compared.
std::vector<uint64_t> NumbersOf(const LinkBin& row) {
  return {row.link,
          row.wire_bytes,
          row.payload_bytes,
          row.packets,
          row.dropped_packets,
          static_cast<uint64_t>(row.paused_ps),
          row.queue_sum_bytes,
          row.queue_max_bytes};
}

std::vector<std::vector<uint64_t>> NumbersOf(const LinkRows& rows) {
  std::vector<std::vector<uint64_t>> numbers;
  for (const LinkBin& row : rows) numbers.push_back(NumbersOf(row));
  return numbers;
}

// Numbers of every length, and the greatest.
TEST(LinkRowsTest, WhatIsAppendedIsReadAgain) {
  LinkRows rows;
  std::vector<std::vector<uint64_t>> expected;
  for (uint32_t shift = 0; shift < 64; ++shift) {
    const uint64_t number = uint64_t{1} << shift;
    const LinkBin row = {.link = shift * shift * shift,
                         .wire_bytes = number,
                         .payload_bytes = number - 1,
                         .packets = ~number,
                         .dropped_packets = shift % 2,
                         .paused_ps = shift % 3 == 0 ? INT64_MAX : 0,
                         .queue_sum_bytes = UINT64_MAX,
                         .queue_max_bytes = number + 1};
    rows.Append(row);
    expected.push_back(NumbersOf(row));
  }
  rows.Append({.link = UINT32_MAX, .packets = 1});
  expected.push_back(NumbersOf({.link = UINT32_MAX, .packets = 1}));
  EXPECT_EQ(rows.size(), 65u);
  EXPECT_EQ(NumbersOf(rows), expected);
}

TEST(LinkRowsTest, NothingIsLeftOut) {
  LinkRows rows{{.link = 2, .packets = 1}, {.link = 3}, {.link = 5, .paused_ps = 1}};
  EXPECT_EQ(rows.size(), 2u);
  rows.Clear();
  EXPECT_TRUE(rows.empty());
  EXPECT_TRUE(rows.begin() == rows.end());
  rows.Append({.link = 1, .packets = 4});
  EXPECT_EQ(rows.begin()->link, 1u);
}

// As a map of links adds them up.
TEST(LinkRowsTest, SumsAreThoseOfEachLink) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::map<uint32_t, LinkBin> expected;
    LinkRows sides[2];
    for (LinkRows& side : sides) {
      for (uint32_t link = 0; link < 20; ++link) {
        if (random() % 3 != 0) continue;
        const LinkBin row = {.link = link,
                             .wire_bytes = random() % 1'000,
                             .dropped_packets = random() % 2,
                             .queue_sum_bytes = 1 + random() % 300,
                             .queue_max_bytes = random() % 300};
        side.Append(row);
        expected.try_emplace(link, LinkBin{.link = link}).first->second.Add(row);
      }
    }
    LinkRows sum;
    AddUp(sides[0], sides[1], sum);
    std::vector<std::vector<uint64_t>> rows;
    for (const auto& [link, row] : expected) rows.push_back(NumbersOf(row));
    EXPECT_EQ(NumbersOf(sum), rows);
  }
}

// A link that carried megabytes takes a sixth of what its row takes by itself.
TEST(LinkRowsTest, RowsAreSmall) {
  LinkRows rows;
  for (uint32_t link = 0; link < 100; ++link) {
    rows.Append(
        {.link = link, .wire_bytes = 1'100'000, .payload_bytes = 1'000'000, .packets = 270});
  }
  EXPECT_LE(rows.size_bytes(), 100 * sizeof(LinkBin) / 6 + 1);
}

}  // namespace
}  // namespace railyard::testing
