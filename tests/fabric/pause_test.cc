// SPDX-License-Identifier: GPL-2.0-only
// Tests the effect of a pause frame, and when it takes effect.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/fabric/buffer/shared_buffer.h"
#include "tests/fabric/star_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

class PauseTest : public testing::StarFixture {
 protected:
  void OnLinkReleased(LinkId link) override { released_.emplace_back(engine().NowPs(), link); }
  std::vector<std::pair<int64_t, LinkId>> released_;
};

// --- Timing --------------------------------------------------------------------------------------

TEST_F(PauseTest, AFrameTakesEffectAfterItsOwnTimeTheCableAndTheResponse) {
  AddNic(kRate, 145'000);
  AddNic(1'000'000);
  BuildStar({.buffer_bytes = 100'000, .alpha = 1});  // one port: above 50,000 B
  InjectMany(PathTo(0, 1), {.count = 1'000, .wire_bytes = 1'000});
  // 84 B at 400 Gb/s are 1,680 ps; the reverse link is idle.
  const int64_t xoff_ps = 51 * 20'000 + 145'000;
  const int64_t effect_ps = xoff_ps + 1'680 + 145'000 + 614'400;
  bool held_before = true;
  bool held_after = false;
  At(effect_ps, [&] { held_before = network().IsHeld(Uplink(0)); });
  At(effect_ps + 1, [&] { held_after = network().IsHeld(Uplink(0)); });
  At(kPsPerMs, [] { ns3::Simulator::Stop(); });
  engine().Run();
  ASSERT_EQ(pauses_.size(), 1u);
  EXPECT_EQ(pauses_[0].time_ps, xoff_ps);
  EXPECT_EQ(pauses_[0].link, Uplink(0));
  EXPECT_TRUE(pauses_[0].xoff);
  EXPECT_FALSE(held_before);
  EXPECT_TRUE(held_after);
  EXPECT_EQ(network().CountersOfLink(Uplink(0)).paused_ps, kPsPerMs - effect_ps);
  // Packets that had begun by then have left.
  const uint64_t sent = static_cast<uint64_t>(effect_ps / 20'000 + 1);
  EXPECT_EQ(network().buffers().AccountBytes(Uplink(0)), 1'000 * sent);
}

TEST_F(PauseTest, AFrameWaitsForThePacketThatIsBeingSent) {
  AddNic();
  AddNic(1'000'000);
  AddNic();
  BuildStar({.buffer_bytes = 100'000, .alpha = 1});
  const int64_t xoff_ps = 51 * 20'000 + 1'000;
  // From NIC 2: its 5,000 B are on the link to NIC 0 for 100 ns from 1 ps before XOFF on.
  At(xoff_ps - 1 - 1'000 - 100'000,
     [this] { InjectMany(PathTo(2, 0), {.count = 1, .wire_bytes = 5'000, .flow = 7}); });
  InjectMany(PathTo(0, 1), {.count = 1'000, .wire_bytes = 1'000});
  const int64_t effect_ps = xoff_ps - 1 + 100'000 + 1'680 + 1'000 + 614'400;
  bool held_before = true;
  bool held_after = false;
  At(effect_ps, [&] { held_before = network().IsHeld(Uplink(0)); });
  At(effect_ps + 1, [&] { held_after = network().IsHeld(Uplink(0)); });
  At(kPsPerMs, [] { ns3::Simulator::Stop(); });
  engine().Run();
  ASSERT_EQ(pauses_.size(), 1u);
  EXPECT_EQ(pauses_[0].time_ps, xoff_ps);
  EXPECT_FALSE(held_before);
  EXPECT_TRUE(held_after);
}

TEST_F(PauseTest, ControlPassesAPortWhoseDataIsPaused) {
  AddNic();
  AddNic(1'000'000);
  AddNic();
  BuildStar({.buffer_bytes = 100'000, .alpha = 1});
  InjectMany(PathTo(0, 1), {.count = 1'000, .wire_bytes = 1'000});
  At(5 * kPsPerUs, [this] {
    EXPECT_TRUE(network().IsHeld(Uplink(0)));
    Inject(PathTo(0, 2), 77, 64, 0, PacketKind::kCnp);
    Inject(PathTo(0, 2), 78, 100, 0, PacketKind::kAck);
  });
  At(kPsPerMs, [] { ns3::Simulator::Stop(); });
  engine().Run();
  EXPECT_THAT(at_nic_, ElementsAre(Arrived{5 * kPsPerUs + int64_t{2} * (1'280 + 1'000), 0, 77}));
}

TEST_F(PauseTest, ControlOvertakesDataThatWaitsButNotWhatIsBeingSent) {
  AddNic();
  AddNic();
  BuildStar({});
  const PathRef path = PathTo(0, 1);
  InjectMany(path, {.count = 3, .wire_bytes = 1'000});
  At(5'000, [&] { Inject(path, 77, 64, 0, PacketKind::kCnp); });
  engine().Run();
  // At the NIC 0 is being sent until 20 ns, at the switch from 21 to 41 ns.
  EXPECT_THAT(at_nic_, ElementsAre(Arrived{42'000, 0, 0}, Arrived{41'000 + 1'280 + 1'000, 0, 77},
                                   Arrived{21'280 + 42'000, 0, 1}, Arrived{41'280 + 42'000, 0, 2}));
}

TEST_F(PauseTest, TheSinkIsNotifiedWhenANicMaySendAgain) {
  AddNic();
  AddNic(100'000'000'000);
  BuildStar({.buffer_bytes = 100'000, .alpha = 1});
  InjectMany(PathTo(0, 1), {.count = 200, .wire_bytes = 1'000});
  engine().Run();
  EXPECT_EQ(at_nic_.size(), 200u);
  EXPECT_EQ(released_.size(), network().counters().xon_frames);
  EXPECT_GT(released_.size(), 0u);
  for (const auto& [time_ps, link] : released_) EXPECT_EQ(link, Uplink(0));
}

// --- XON -----------------------------------------------------------------------------------------

TEST_F(PauseTest, APortGoesOnWhenItFallsBelowItsThresholdByTheOffset) {
  AddNic();
  AddNic(1'000'000'000);  // 8 us for a packet
  BuildStar({.buffer_bytes = 100'000, .alpha = 1, .xon_offset_bytes = 10'000});
  InjectMany(PathTo(0, 1), {.count = 100, .wire_bytes = 1'000});
  engine().Run();
  ASSERT_GE(pauses_.size(), 2u);
  EXPECT_TRUE(pauses_[0].xoff);
  EXPECT_FALSE(pauses_[1].xoff);
  // It holds h, and nobody else holds anything: h <= B - h - 10,000 from h = 45,000 on.
  const int64_t first_ps = 21'000;
  const int64_t per_packet_ps = 8'000'000;
  const int64_t sent = (pauses_[1].time_ps - first_ps) / per_packet_ps;
  EXPECT_EQ((pauses_[1].time_ps - first_ps) % per_packet_ps, 0);
  // Came in before the pause took effect: all that had begun by then, as in the test of its timing.
  const int64_t effect_ps = pauses_[0].time_ps + 1'680 + 1'000 + 614'400;
  const int64_t came = effect_ps / 20'000 + 1;
  EXPECT_EQ(came - sent, 45);
}

// A's packets leave fast, B's do not move for 8 ms; B was paused because A had filled the buffer.
TEST_F(PauseTest, APausedPortIsLookedAtWhenAnyPacketLeaves) {
  AddNic();
  AddNic();
  AddNic(10'000'000'000);
  AddNic(1'000'000);
  BuildStar({.buffer_bytes = 100'000, .alpha = 1});
  InjectMany(PathTo(0, 2), {.count = 300, .wire_bytes = 1'000, .flow = 0});
  At(500'000, [this] { InjectMany(PathTo(1, 3), {.count = 40, .wire_bytes = 1'000, .flow = 1}); });
  At(7 * kPsPerMs, [] { ns3::Simulator::Stop(); });
  engine().Run();
  const auto xon_of_b = std::find_if(
      pauses_.begin(), pauses_.end(),
      [this](const PauseSent& event) { return event.link == Uplink(1) && !event.xoff; });
  const auto xoff_of_b = std::find_if(
      pauses_.begin(), pauses_.end(),
      [this](const PauseSent& event) { return event.link == Uplink(1) && event.xoff; });
  ASSERT_NE(xoff_of_b, pauses_.end());
  ASSERT_NE(xon_of_b, pauses_.end());
  EXPECT_LT(xon_of_b->time_ps, 8 * kPsPerMs);
}

// --- Headroom ------------------------------------------------------------------------------------

// A stream of full packets into a port that fills, the reverse link busy with full packets, over
// many phases of both. Returns packets lost.
class HeadroomTest : public PauseTest {
 protected:
  static constexpr uint32_t kMtu = 4'178;
  static constexpr int64_t kLongCablePs = 1'500'000;  // 300 m

  static HeadroomCase Case(int64_t propagation_ps) {
    return {.rate_bps = kRate,
            .reverse_rate_bps = kRate,
            .delay_ps = propagation_ps,
            .reverse_propagation_ps = propagation_ps,
            .pause_response_ps = 614'400,
            .mtu_bytes = kMtu};
  }
  uint64_t LostOverPhases(int64_t missing_bytes) {
    uint64_t lost = 0;
    for (int64_t phase = 0; phase < 24; ++phase) {
      graph_ = FabricGraph();
      nics_.clear();
      const int64_t propagation_ps = kLongCablePs + phase * 3'700;
      AddNic(kRate, propagation_ps);
      AddNic(1'000'000);
      AddNic();
      const uint64_t headroom_bytes =
          HeadroomBytes(Case(propagation_ps)) - static_cast<uint64_t>(missing_bytes);
      BuildStar({.buffer_bytes = 400'000,
                 .alpha = 1,
                 .headroom_bytes = headroom_bytes,
                 .ecn_enabled = false});
      InjectMany(PathTo(0, 1), {.count = 300, .wire_bytes = kMtu});
      // Back to NIC 0 without a pause.
      At(phase * 3'000,
         [this] { InjectMany(PathTo(2, 0), {.count = 300, .wire_bytes = kMtu, .flow = 1}); });
      At(kPsPerMs, [] { ns3::Simulator::Stop(); });
      engine().Run();
      EXPECT_GT(network().counters().xoff_frames, 0u);
      lost += DroppedPackets(DropReason::kHeadroomFull);
      TearDown();
    }
    return lost;
  }
};

TEST_F(HeadroomTest, WhatIsComputedIsEnoughInEveryPhase) { EXPECT_EQ(LostOverPhases(0), 0u); }

TEST_F(HeadroomTest, OnePacketAndTheFramesLessIsNotEnough) {
  EXPECT_GT(LostOverPhases(kMtu + 2 * kPauseFrameBytes), 0u);
}

TEST(HeadroomBytesTest, ItIsBothCablesTheResponseThePipelineTwoPacketsAndThreeFrames) {
  // At 400 Gb/s 20 ps are a byte. 100 ns each way, 300 ns of pipeline, 600 ns of response.
  EXPECT_EQ(HeadroomBytes({.rate_bps = 400'000'000'000,
                           .reverse_rate_bps = 400'000'000'000,
                           .delay_ps = 400'000,
                           .reverse_propagation_ps = 100'000,
                           .pause_response_ps = 600'000,
                           .mtu_bytes = 4'000}),
            (400'000 + 100'000 + 600'000) / 20 + 2 * 4'000 + 3 * 84);
}

}  // namespace
}  // namespace railyard
