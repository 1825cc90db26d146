// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/scenario/schedule_files/timed_steps.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace railyard {
namespace {

using ::testing::ElementsAre;

TimedStep Send(uint32_t chunk, int32_t to, uint64_t at, uint64_t possible_at = 0) {
  TimedStep step;
  step.made.chunk = chunk;
  step.made.step.send_to = to;
  step.at = at;
  step.possible_at = possible_at;
  return step;
}
TimedStep Receive(uint32_t chunk, int32_t from, uint64_t at) {
  TimedStep step;
  step.made.chunk = chunk;
  step.made.step.recv_from = from;
  step.at = step.possible_at = at;
  return step;
}

ExplicitAlgorithm Lanes(const std::vector<std::vector<TimedStep>>& steps_of, uint32_t channels,
                        uint32_t chunks, uint64_t steps_max = 1'000'000) {
  ExplicitAlgorithm algorithm;
  algorithm.rank_count = static_cast<uint32_t>(steps_of.size());
  algorithm.channel_count = channels;
  algorithm.chunk_count = chunks;
  WriteLanes(steps_of, steps_max, algorithm);
  return algorithm;
}

// Lists the receivers of a lane's steps, in their order.
std::vector<int32_t> ReceiversOf(const ExplicitAlgorithm& algorithm, uint32_t rank,
                                 uint32_t channel = 0) {
  std::vector<int32_t> receivers;
  for (const ExplicitStep& step : algorithm.lanes.at({RankIndex{rank}, channel}).front()) {
    receivers.push_back(step.step.send_to);
  }
  return receivers;
}
std::vector<uint32_t> ChunksOf(const ExplicitAlgorithm& algorithm, uint32_t rank,
                               uint32_t channel) {
  std::vector<uint32_t> chunks;
  for (const ExplicitStep& step : algorithm.lanes.at({RankIndex{rank}, channel}).front()) {
    chunks.push_back(step.chunk);
  }
  return chunks;
}

TEST(TimedSteps, AMessageIsSentAsSoonAsItIsPossible) {
  const auto with = [](uint64_t possible_at) {
    return ReceiversOf(
        Lanes({{Receive(0, 1, 2), Send(1, 1, 3, possible_at)}, {Send(0, 0, 1), Receive(1, 0, 4)}},
              1, 2),
        0);
  };
  EXPECT_THAT(with(0), ElementsAre(1, kNoPeer));
  // It sends the outcome of step 2.
  EXPECT_THAT(with(2), ElementsAre(kNoPeer, 1));
}

// Each of 4 GPUs sends a chunk to all others, possible at once: in each place of the lanes all
// receivers differ.
TEST(TimedSteps, MessagesAtOneTimeGoToDifferentGpus) {
  std::vector<std::vector<TimedStep>> steps_of(4);
  uint64_t at = 0;
  for (uint32_t from = 0; from < 4; ++from) {
    for (uint32_t to = 0; to < 4; ++to) {
      if (to == from) continue;
      steps_of[from].push_back(Send(from, static_cast<int32_t>(to), ++at));
      steps_of[to].push_back(Receive(from, static_cast<int32_t>(from), ++at));
    }
  }
  const ExplicitAlgorithm algorithm = Lanes(steps_of, 1, 4);
  EXPECT_THAT(ReceiversOf(algorithm, 0), ElementsAre(1, 2, 3, kNoPeer, kNoPeer, kNoPeer));
  EXPECT_THAT(ReceiversOf(algorithm, 1), ElementsAre(2, 3, 0, kNoPeer, kNoPeer, kNoPeer));
  EXPECT_THAT(ReceiversOf(algorithm, 3), ElementsAre(0, 1, 2, kNoPeer, kNoPeer, kNoPeer));
}

// A connection has 8 slots: all nine messages are possible at once, but the ninth waits until the
// first has been taken, which is after the sender's own receive.
TEST(TimedSteps, MessagesWaitForASlot) {
  std::vector<std::vector<TimedStep>> steps_of = {{Receive(9, 1, 2)}, {Send(9, 0, 1)}};
  for (uint32_t i = 0; i < 9; ++i) {
    steps_of[0].push_back(Send(i, 1, 3 + 2 * uint64_t{i}));
    steps_of[1].push_back(Receive(i, 0, 4 + 2 * uint64_t{i}));
  }
  const auto receivers = ReceiversOf(Lanes(steps_of, 1, 10), 0);
  ASSERT_EQ(receivers.size(), 10u);
  EXPECT_EQ(receivers[7], 1);
  EXPECT_EQ(receivers[8], kNoPeer);
  EXPECT_EQ(receivers[9], 1);
}

TEST(TimedSteps, ChunksThatAreSentAlikeAreSpreadOverTheChannels) {
  const std::vector<std::vector<TimedStep>> steps_of = {
      {Send(0, 1, 1), Send(1, 1, 3), Send(2, 1, 5), Send(3, 1, 7)},
      {Receive(0, 0, 2), Receive(1, 0, 4), Receive(2, 0, 6), Receive(3, 0, 8)}};
  const ExplicitAlgorithm two = Lanes(steps_of, 2, 4);
  EXPECT_EQ(two.chunk_count, 4u);
  EXPECT_THAT(ChunksOf(two, 0, 0), ElementsAre(0, 2));
  EXPECT_THAT(ChunksOf(two, 1, 1), ElementsAre(1, 3));
  // Six channels: 4 chunks of 3 parts are two for each channel.
  const ExplicitAlgorithm six = Lanes(steps_of, 6, 4);
  EXPECT_EQ(six.chunk_count, 12u);
  EXPECT_THAT(ChunksOf(six, 0, 0), ElementsAre(0, 6));
  EXPECT_THAT(ChunksOf(six, 1, 5), ElementsAre(5, 11));
  // Unless there would be too many steps.
  EXPECT_EQ(Lanes(steps_of, 6, 4, 8).chunk_count, 4u);
}

// GPU 0 sends one chunk and GPU 1 the other: with a channel each, every GPU would send on one
// alone.
TEST(TimedSteps, ChunksOfDifferentGpusAreInAllChannels) {
  const ExplicitAlgorithm algorithm =
      Lanes({{Send(0, 1, 1), Receive(1, 1, 4)}, {Receive(0, 0, 2), Send(1, 0, 3)}}, 2, 2);
  EXPECT_EQ(algorithm.chunk_count, 4u);
  EXPECT_THAT(ChunksOf(algorithm, 0, 0), ElementsAre(0, 2));
  EXPECT_THAT(ChunksOf(algorithm, 1, 1), ElementsAre(3, 1));
}

}  // namespace
}  // namespace railyard
