// SPDX-License-Identifier: GPL-2.0-only
// Explicit congestion notification against the line of RED.
#include <cmath>

#include <gtest/gtest.h>

#include <ns3/boolean.h>

#include "tests/fabric/star_fixture.h"

namespace railyard {
namespace {

// nic0 at 400 Gb/s - leaf - nic1 at 25 Gb/s, where the thresholds are as they are given.
// Packet i of a burst finds i packets sent before it, less the sixteenth of that which has left:
// 15/16 i b.
class MarkingTest : public testing::StarFixture {
 protected:
  static constexpr uint32_t kBytes = 1'000;
  static constexpr uint32_t kPackets = 500;

  void OnMark(const EcnMarked& event) override {
    ++marks_[event.packet->sequence];
    EXPECT_EQ(event.link, Downlink(1));
    EXPECT_NE(event.packet->flags & Packet::kEcnMarked, 0);
  }
  void RunBursts(const BufferSettings& settings, uint32_t bursts) {
    AddNic();
    AddNic(25'000'000'000);
    marks_.assign(kPackets, 0);
    BuildStar(settings);
    const PathRef path = PathTo(0, 1);
    for (uint32_t burst = 0; burst < bursts; ++burst) {
      At(burst * kPsPerMs,
         [=, this] { InjectMany(path, {.count = kPackets, .wire_bytes = kBytes, .flow = burst}); });
    }
    engine().Run();
    EXPECT_EQ(network().counters().xoff_frames, 0u);
  }
  std::vector<uint32_t> marks_;  // by place in the burst
};

TEST_F(MarkingTest, TheShareOfMarksFollowsTheLineFromKminToKmax) {
  constexpr uint32_t kBursts = 400;
  RunBursts({.ecn_kmin_bytes = 100'000, .ecn_kmax_bytes = 400'000, .ecn_pmax = 0.2}, kBursts);
  double expected = 0;
  double variance = 0;
  double seen = 0;
  for (uint32_t i = 0; i < kPackets; ++i) {
    const double queue_bytes = i * kBytes * 15.0 / 16;
    if (queue_bytes <= 100'000) {
      EXPECT_EQ(marks_[i], 0u) << i;
    } else if (queue_bytes > 400'000) {
      EXPECT_EQ(marks_[i], kBursts) << i;
    } else {
      const double share = 0.2 * (queue_bytes - 100'000) / 300'000;
      expected += share * kBursts;
      variance += share * (1 - share) * kBursts;
      seen += marks_[i];
    }
    // Every sixteenth of the line by itself, within five standard deviations.
    if (i % 20 == 0 || i + 1 == kPackets) {
      EXPECT_LE(std::abs(seen - expected), 5 * std::sqrt(variance) + 1e-9) << i;
      expected = variance = seen = 0;
    }
  }
}

TEST_F(MarkingTest, ThresholdsGrowWithThePortsRate) {
  // At 100 Gb/s instead of 25 all is four times as long; pmax 1 and kmin = kmax - 1 make it a step.
  AddNic();
  AddNic(100'000'000'000);
  marks_.assign(kPackets, 0);
  BuildStar({.ecn_kmin_bytes = 49'999, .ecn_kmax_bytes = 50'000, .ecn_pmax = 0});
  InjectMany(PathTo(0, 1), {.count = kPackets, .wire_bytes = kBytes});
  engine().Run();
  for (uint32_t i = 0; i < kPackets; ++i) {
    // A quarter of the i packets has left.
    EXPECT_EQ(marks_[i], i * kBytes * 3 / 4 > 4 * 50'000 ? 1u : 0u) << i;
  }
  EXPECT_GT(network().counters().ecn_marked, 0u);
}

TEST_F(MarkingTest, OnlyRdmaWritesAreMarked) {
  AddNic();
  AddNic(25'000'000'000);
  marks_.assign(kPackets, 0);
  BuildStar({.ecn_kmin_bytes = 0, .ecn_kmax_bytes = 1});
  const PathRef path = PathTo(0, 1);
  for (uint32_t i = 0; i < 20; ++i) {
    Inject(path, i, 100, 0, PacketKind::kAck);
    Inject(path, i, 100, 0, PacketKind::kClearToSend);
    Inject(path, i, 100, 0, PacketKind::kCnp);
  }
  Inject(path, 7, 100, 18);
  engine().Run();
  EXPECT_EQ(network().counters().ecn_marked, 1u);
  EXPECT_EQ(marks_[7], 1u);
}

TEST_F(MarkingTest, SwitchedOffNothingIsMarked) {
  RunBursts({.ecn_enabled = false, .ecn_kmin_bytes = 0, .ecn_kmax_bytes = 1}, 1);
  EXPECT_EQ(network().counters().ecn_marked, 0u);
}

}  // namespace
}  // namespace railyard
