// SPDX-License-Identifier: GPL-2.0-only
// AllToAlls of MSCCL.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/scenario/schedule_files/schedule_file_loader.h"
#include "tests/scenario/msccl_text.h"
#include "tests/scenario/schedule_text.h"
#include "tests/support/reference_dir.h"

namespace railyard {
namespace {

using ::testing::HasSubstr;

class MscclAllToAllTest : public ScheduleTextTest {};

// GPU g sends chunks of slot p to GPU p, which has them in slot g.
std::string Exchange(int gpus, bool is_in_place, int wrong_target = -1) {
  std::string text = fmt::format(
      "<algo nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"alltoall\" inplace=\"{}\" "
      "outofplace=\"{}\">\n",
      2 * gpus, gpus, is_in_place ? 1 : 0, is_in_place ? 0 : 1);
  const char* const out = is_in_place ? "i" : "o";
  for (int gpu = 0; gpu < gpus; ++gpu) {
    text += fmt::format("<gpu id=\"{}\">\n", gpu);
    for (int peer = 0; peer < gpus; ++peer) {
      const std::string from = fmt::format("i{}", 2 * peer);
      const std::string to =
          fmt::format("{}{}", out, gpu == 0 && wrong_target >= 0 ? wrong_target : 2 * peer);
      if (peer == gpu) {
        text += "<tb id=\"90\" send=\"-1\" recv=\"-1\" chan=\"0\">\n";
        text += StepText(0, "cpy", from, fmt::format("{}{}", out, 2 * gpu), 2) + "</tb>\n";
        continue;
      }
      text += fmt::format("<tb id=\"{0}\" send=\"{0}\" recv=\"{0}\" chan=\"0\">\n", peer);
      text += StepText(0, "s", from, from, 2) + StepText(1, "r", from, to, 2) + "</tb>\n";
    }
    text += "</gpu>\n";
  }
  return text + "</algo>\n";
}

TEST_F(MscclAllToAllTest, AnAllToAllHasBlocksOfEachPair) {
  for (const bool is_in_place : {false, true}) {
    const auto algorithm = Load(Exchange(3, is_in_place));
    ASSERT_NE(algorithm, nullptr) << findings_;
    EXPECT_EQ(algorithm->kind, CollectiveKind::kAllToAll);
    EXPECT_EQ(CountOf(*algorithm, [](const Step& step) { return step.send_to != kNoPeer; }),
              size_t{3} * 2 * algorithm->chunk_count);
  }
  // GPU 0 keeps what GPU 1 sends in the place of what GPU 2 sends.
  EXPECT_EQ(Load(Exchange(3, false, 4)), nullptr);
  EXPECT_THAT(findings_, HasSubstr("error: gpus[0]: chunk 1 of the result is not written"));
}

// GPU g sends slot g + 1 first; in place it has received what it is to send by then.
TEST_F(MscclAllToAllTest, InPlaceAnAllToAllOverwritesWhatItIsToSend) {
  const auto program = [](const char* attributes) {
    std::string text =
        fmt::format("<algo nchunksperloop=\"3\" ngpus=\"3\" coll=\"alltoall\" {}>\n", attributes);
    for (int gpu = 0; gpu < 3; ++gpu) {
      text += fmt::format("<gpu id=\"{}\">\n", gpu);
      for (int i = 1; i < 3; ++i) {
        const int to = (gpu + i) % 3;
        const int from = (gpu + 3 - i) % 3;
        const std::string after = i == 2 ? "1:1" : "-1:-1";
        text += fmt::format("<tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">\n", i, to, from);
        text += StepText(0, "s", fmt::format("i{}", to), fmt::format("o{}", gpu), 1, after);
        text += StepText(1, "r", "i0", fmt::format("o{}", from)) + "</tb>\n";
      }
      text += "<tb id=\"3\" send=\"-1\" recv=\"-1\" chan=\"0\">\n" +
              StepText(0, "cpy", fmt::format("i{}", gpu), fmt::format("o{}", gpu)) +
              "</tb></gpu>\n";
    }
    return text + "</algo>\n";
  };
  EXPECT_NE(Load(program("inplace=\"0\" outofplace=\"1\"")), nullptr) << findings_;
  EXPECT_NE(Load(program("")), nullptr) << findings_;
  EXPECT_EQ(Load(program("inplace=\"1\" outofplace=\"0\"")), nullptr);
  EXPECT_THAT(findings_, HasSubstr("of the result (expected chunk"));
}

// In place, nothing is to be done about a rank's own block; out of place it is copied by one step.
TEST_F(MscclAllToAllTest, ACopyOfSeveralChunksIsOneStepAndNoneInPlace) {
  const auto is_local = [](const Step& step) {
    return step.send_to == kNoPeer && step.recv_from == kNoPeer;
  };
  // The message of one pair is in two parts, so that chunks stay as they are.
  const std::string parts = StepText(0, "s", "i2", "i2") + StepText(1, "s", "i3", "i3");
  for (const bool is_in_place : {false, true}) {
    std::string text = Exchange(3, is_in_place);
    text = Replaced(text, StepText(0, "s", "i2", "i2", 2), parts);
    const auto algorithm = Load(text);
    ASSERT_NE(algorithm, nullptr) << findings_;
    EXPECT_EQ(algorithm->chunk_count, 2u);
    EXPECT_EQ(algorithm->is_in_place, is_in_place);
    EXPECT_EQ(CountOf(*algorithm, is_local), is_in_place ? 0u : 3u);
    if (is_in_place) continue;
    // 100 B to each rank: chunks of 64 and 36 B, in slots of 40 B.
    const ExplicitSchedule schedule(algorithm, 100, 40, {});
    uint64_t copied = 0;
    ForEachLaneOf(schedule, RankIndex{1}, [&](const LaneId& lane) {
      for (uint64_t i = 0; i < schedule.StepCount(lane); ++i) {
        const Step step = schedule.StepAt(lane, i);
        if (is_local(step)) copied += step.bytes;
      }
    });
    EXPECT_EQ(copied, 100u);
  }
}

// They neither wait for each other nor have data in common.
TEST_F(MscclAllToAllTest, ThreadBlocksThatDoNotDependOnEachOtherAreLanes) {
  const auto algorithm = Load(Exchange(3, false));
  ASSERT_NE(algorithm, nullptr) << findings_;
  EXPECT_TRUE(algorithm->lanes_are_ctas);
  const auto& lanes = algorithm->lanes.at({RankIndex{0}, 0});
  ASSERT_EQ(lanes.size(), 3u);
  for (const auto& lane : lanes) EXPECT_LE(lane.size(), 2u);
  // A lane has all warps of its thread block.
  const ExplicitSchedule schedule(algorithm, 64, 64, {});
  EXPECT_EQ(schedule.WarpShareOf({.rank = RankIndex{0}}).of, 1u);
}

// Each of 8 GPUs sends 4 chunks to 7 others on 4 channels, with a thread block for each direction,
// peer and channel; grep -c '<tb ' ndv5-a2a4ll.xml: 448.
TEST_F(MscclAllToAllTest, ReferenceAllToAllHasALaneForEachThreadBlock) {
  RAILYARD_REQUIRE_REFERENCE_DIR();
  Diagnostics diagnostics;
  const auto algorithm =
      LoadScheduleFile(reference_dir + "/traces/msccl/ndv5-a2a4ll.xml", diagnostics);
  ASSERT_NE(algorithm, nullptr) << diagnostics.ToString();
  EXPECT_EQ(algorithm->kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(algorithm->protocol, Protocol::kLl);
  EXPECT_EQ(algorithm->chunk_count, 4u);
  EXPECT_EQ(algorithm->channel_count, 4u);
  EXPECT_TRUE(algorithm->lanes_are_ctas);
  size_t lanes_of_all = 0;
  for (const auto& [place, lanes] : algorithm->lanes) lanes_of_all += lanes.size();
  EXPECT_EQ(lanes_of_all, 448u);
  EXPECT_EQ(CountOf(*algorithm, [](const Step& step) { return step.send_to != kNoPeer; }),
            size_t{8} * 7 * 4);
}

}  // namespace
}  // namespace railyard
