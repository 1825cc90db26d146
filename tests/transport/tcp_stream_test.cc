// SPDX-License-Identifier: GPL-2.0-only
// The parts of a TCP stream against the RFCs they are from.
#include "simulator/transport/tcp/tcp_stream.h"

#include <gtest/gtest.h>

namespace railyard {
namespace {

// RFC 6675, IsLost: three later segments have come.
TEST(TcpScoreboardTest, ThreeLaterSegmentsMakeOneLost) {
  TcpScoreboard board;
  for (int i = 0; i < 10; ++i) board.OnSend();
  EXPECT_EQ(board.InFlight(), 10u);
  board.OnSelective(2, 3);
  EXPECT_FALSE(board.MarkLost());
  board.OnSelective(2, 4);
  EXPECT_FALSE(board.MarkLost());
  board.OnSelective(2, 5);
  EXPECT_TRUE(board.MarkLost());
  EXPECT_EQ(board.lost(), 2u);
  EXPECT_EQ(board.sacked(), 3u);
  EXPECT_EQ(board.InFlight(), 5u);
  EXPECT_EQ(board.TakeLost(), 0u);
  EXPECT_EQ(board.TakeLost(), 1u);
  EXPECT_EQ(board.InFlight(), 7u);
  // Known already.
  EXPECT_FALSE(board.MarkLost());
  // A second gap: 5 is lost, the repetitions are not lost again.
  board.OnSelective(6, 9);
  EXPECT_TRUE(board.MarkLost());
  EXPECT_EQ(board.lost(), 1u);
  EXPECT_EQ(board.TakeLost(), 5u);
  board.OnAcknowledged(6);
  EXPECT_EQ(board.sacked(), 3u);
  EXPECT_EQ(board.InFlight(), 1u);
}

// RFC 8985: what was sent after a repetition has come, so the repetition is lost as well.
TEST(TcpScoreboardTest, ARepetitionThatLaterSegmentsOvertakeIsLostAgain) {
  TcpScoreboard board;
  for (int i = 0; i < 6; ++i) board.OnSend();
  board.OnSelective(2, 5);
  EXPECT_TRUE(board.MarkLost());
  EXPECT_EQ(board.TakeLost(), 0u);
  EXPECT_EQ(board.TakeLost(), 1u);
  board.OnSelective(2, 6);  // was sent before them
  EXPECT_FALSE(board.MarkLost());
  board.OnSend();
  board.OnSelective(6, 7);  // was not
  EXPECT_TRUE(board.MarkLost());
  EXPECT_EQ(board.lost(), 2u);
  EXPECT_EQ(board.TakeLost(), 0u);
  // The first has come, so the second, sent before it, has not.
  board.OnAcknowledged(1);
  EXPECT_EQ(board.lost(), 1u);
  EXPECT_EQ(board.TakeLost(), 0u);
  EXPECT_FALSE(board.MarkLost());
  board.OnAcknowledged(6);
  EXPECT_EQ(board.InFlight(), 0u);
}

TEST(TcpScoreboardTest, ATimeoutTakesAllForLostThatIsNotKnownToHaveCome) {
  TcpScoreboard board;
  for (int i = 0; i < 8; ++i) board.OnSend();
  board.OnSelective(3, 5);
  board.MarkAllLost();
  EXPECT_EQ(board.lost(), 6u);
  EXPECT_EQ(board.InFlight(), 0u);
  EXPECT_EQ(board.TakeLost(), 0u);
  board.OnAcknowledged(1);
  EXPECT_EQ(board.TakeLost(), 0u);
  EXPECT_EQ(board.lost(), 4u);
  // One thought lost was late.
  board.OnSelective(6, 7);
  EXPECT_EQ(board.lost(), 3u);
}

// RFC 6298: SRTT + 4 RTTVAR, of which Linux takes the latter for 200 ms at least.
TEST(TcpTimeoutTest, IsTheSmoothedRoundTripAndItsVariation) {
  TcpTimeout timeout;
  timeout.OnRoundTrip(8 * kPsPerMs);
  EXPECT_EQ(timeout.TimeoutPs(), 208 * kPsPerMs);
  for (int i = 0; i < 100; ++i) timeout.OnRoundTrip(8 * kPsPerMs);
  EXPECT_EQ(timeout.TimeoutPs(), 208 * kPsPerMs);
  // RTTVAR = 3/4 x 0 + 1/4 x 800 ms; SRTT = 7/8 x 8 ms + 1/8 x 808 ms.
  timeout.OnRoundTrip(808 * kPsPerMs);
  EXPECT_NEAR(static_cast<double>(timeout.TimeoutPs()), (4 * 200 + 108) * 1e9, 1e6);
}

TEST(TcpTimeoutTest, BacksOffTo120Seconds) {
  TcpTimeout timeout;
  timeout.OnRoundTrip(0);
  int64_t expected_ps = 200 * kPsPerMs;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(timeout.TimeoutPs(), std::min(expected_ps, 120 * kPsPerSecond));
    timeout.BackOff();
    expected_ps *= 2;
  }
  timeout.EndBackOff();
  EXPECT_EQ(timeout.TimeoutPs(), 200 * kPsPerMs);
}

TEST(TcpReassemblyTest, KeepsWhateverComesBeyondAGap) {
  TcpReassembly queue;
  EXPECT_EQ(queue.Take(0, false).advanced, 1u);
  EXPECT_FALSE(queue.HasGap());
  EXPECT_EQ(queue.Take(1'000, true).advanced, 0u);
  EXPECT_TRUE(queue.HasGap());
  EXPECT_FALSE(queue.Take(1'000, true).is_new);
  EXPECT_TRUE(queue.Take(999, false).is_new);
  EXPECT_EQ(queue.BlockAt(999).begin, 999u);
  EXPECT_EQ(queue.BlockAt(999).end, 1'001u);
  for (uint32_t i = 1; i < 999; ++i) EXPECT_TRUE(queue.Take(i, i % 100 == 0).is_new);
  EXPECT_EQ(queue.BlockAt(500).begin, 1u);
  const TcpReassembly::Taken taken = queue.Take(0, false);
  EXPECT_EQ(taken.advanced, 1'001u);
  EXPECT_EQ(taken.completed, 10u);  // 100, 200, ..., 900 and 1000
  EXPECT_FALSE(queue.HasGap());
}

TEST(TcpAckWordTest, IsWhatWasPacked) {
  const TcpAckWord word = {.offered_end = 0xfedcba98, .block_begin = 3, .block_end = 65'535};
  const TcpAckWord read = TcpAckWord::Unpack(word.Pack());
  EXPECT_EQ(read.offered_end, word.offered_end);
  EXPECT_EQ(read.block_begin, word.block_begin);
  EXPECT_EQ(read.block_end, word.block_end);
}

}  // namespace
}  // namespace railyard
