// SPDX-License-Identifier: GPL-2.0-only
// Shared buffers: when they pause, when they drop.
#include <cmath>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/fabric/buffer/shared_buffer.h"
#include "tests/fabric/star_fixture.h"

namespace railyard {
namespace {

using ::testing::Combine;
using ::testing::Values;

constexpr int64_t kSendPs = 20'000;  // 1,000 B at 400 Gb/s

// --- The dynamic threshold -----------------------------------------------------------------------

// (alpha, ingress ports)
class ThresholdTest : public testing::StarFixture,
                      public ::testing::WithParamInterface<std::tuple<double, uint32_t>> {
 protected:
  void OnPause(const PauseSent& event) override {
    if (pauses_.empty()) first_account_bytes_ = network().buffers().AccountBytes(event.link);
    StarFixture::OnPause(event);
  }
  uint64_t first_account_bytes_ = 0;
};

// n ports fill in lockstep and nothing leaves: each holds s, and alpha (B - n s) falls below s at
// alpha B / (1 + n alpha).
TEST_P(ThresholdTest, EqualPortsPauseAtAlphaBOverOnePlusNAlpha) {
  const auto [alpha, ports] = GetParam();
  for (uint32_t i = 0; i < ports; ++i) AddNic();
  AddNic(1'000'000);  // 8 ms for a packet
  const double buffer_bytes = 1'000'500;
  BuildStar({.buffer_bytes = static_cast<uint64_t>(buffer_bytes), .alpha = alpha});
  for (uint32_t i = 0; i < ports; ++i)
    InjectMany(PathTo(i, ports), {.count = 1'200, .wire_bytes = 1'000});
  At(kPsPerMs, [] { ns3::Simulator::Stop(); });
  engine().Run();
  const double threshold_bytes = alpha * buffer_bytes / (1 + ports * alpha);
  EXPECT_EQ(first_account_bytes_, 1'000 * (std::floor(threshold_bytes / 1'000) + 1));
  // All others follow, and nothing was lost.
  EXPECT_EQ(network().counters().xoff_frames, ports);
  EXPECT_EQ(network().counters().dropped_data_bytes(), 0u);
  network().CheckConservation();
}

INSTANTIATE_TEST_SUITE_P(AlphasAndPorts, ThresholdTest,
                         Combine(Values(1.0 / 128, 0.125, 1.0, 8.0), Values(1u, 4u, 16u)));

// --- Incast --------------------------------------------------------------------------------------

class IncastTest : public testing::StarFixture {
 protected:
  static constexpr uint32_t kSenders = 64;
  static constexpr uint32_t kPackets = 400;
  // One after the other, from the first arrival at the switch on.
  static constexpr int64_t kEndPs =
      2 * int64_t{1'000} + kSendPs + int64_t{kSenders} * kPackets * kSendPs;

  void RunIncast(const BufferSettings& settings) {
    for (uint32_t i = 0; i <= kSenders; ++i) AddNic();
    BuildStar(settings);
    for (uint32_t i = 0; i < kSenders; ++i) {
      InjectMany(PathTo(i, kSenders), {.count = kPackets, .wire_bytes = 1'000, .flow = i});
    }
    engine().Run();
    network().CheckConservation();
    EXPECT_EQ(network().live_packets(), 0u);
  }
};

TEST_F(IncastTest, PauseFramesKeepEveryPacketAndTheBottleneckBusy) {
  RunIncast({.buffer_bytes = 4'000'000});
  const NetworkCounters& counters = network().counters();
  EXPECT_EQ(at_nic_.size(), kSenders * kPackets);
  EXPECT_EQ(counters.dropped_data_bytes(), 0u);
  EXPECT_GE(counters.xoff_frames, kSenders);
  EXPECT_EQ(counters.xoff_frames, counters.xon_frames);
  EXPECT_EQ(pauses_.size(), counters.xoff_frames + counters.xon_frames);
  EXPECT_EQ(at_nic_.back().time_ps, kEndPs);
  int64_t paused_ps = 0;
  for (uint32_t i = 0; i < kSenders; ++i) {
    paused_ps += network().CountersOfLink(Uplink(i)).paused_ps;
    EXPECT_GT(network().CountersOfLink(Uplink(i)).paused_ps, 0);
    EXPECT_EQ(network().buffers().AccountBytes(Uplink(i)), 0u);
  }
  EXPECT_EQ(counters.pfc_pause_ps, paused_ps);
  EXPECT_GT(counters.general_hops, 0u);
}

TEST_F(IncastTest, WithoutHeadroomTheLosslessClassLosesWhatComesAfterThePause) {
  RunIncast({.buffer_bytes = 4'000'000, .headroom_scale = 0});
  const uint64_t lost = DroppedPackets(DropReason::kHeadroomFull);
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(at_nic_.size() + lost, kSenders * kPackets);
  EXPECT_EQ(dropped_.size(), lost);
}

TEST_F(IncastTest, ABufferThatHoldsItAllNeverPausesAndStaysInTheShortForm) {
  // One port's share with all 64 in use is B / 8 / (1 + 64 / 8).
  RunIncast({.buffer_bytes = uint64_t{8} * 9 * kPackets * 1'000});
  EXPECT_EQ(network().counters().xoff_frames, 0u);
  EXPECT_EQ(network().counters().dropped_data_bytes(), 0u);
  EXPECT_EQ(at_nic_.back().time_ps, kEndPs);
}

TEST_F(IncastTest, ALossyBufferPausesNobodyAndDrops) {
  RunIncast({.buffer_bytes = 4'000'000, .lossless_data = false});
  EXPECT_EQ(network().counters().xoff_frames, 0u);
  const uint64_t lost = DroppedPackets(DropReason::kBufferFull);
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(at_nic_.size() + lost, kSenders * kPackets);
}

// --- Tail drop -----------------------------------------------------------------------------------

class TailDropTest : public testing::StarFixture, public ::testing::WithParamInterface<double> {};

// A queue q of one port takes a packet of b while q + b <= alpha (B - q).
TEST_P(TailDropTest, AQueueGrowsToItsShareOfWhatIsLeft) {
  const double alpha = GetParam();
  AddNic();
  AddNic(1'000'000);
  const double buffer_bytes = 300'500;
  BuildStar({.buffer_bytes = static_cast<uint64_t>(buffer_bytes),
             .alpha = alpha,
             .lossless_data = false});
  InjectMany(PathTo(0, 1), {.count = 1'000, .wire_bytes = 1'000});
  uint64_t held_bytes = 0;
  At(kPsPerMs, [&] { held_bytes = network().buffers().AccountBytes(Uplink(0)); });
  At(kPsPerMs + 1, [] { ns3::Simulator::Stop(); });
  engine().Run();
  // The last one taken found q <= (alpha B - b) / (1 + alpha).
  const double taken = std::floor((alpha * buffer_bytes - 1'000) / (1 + alpha) / 1'000) + 1;
  EXPECT_EQ(held_bytes, 1'000 * taken);
  EXPECT_EQ(DroppedPackets(DropReason::kBufferFull), 1'000 - taken);
  for (const Dropped& drop : dropped_) EXPECT_EQ(drop.link, Downlink(1));
  network().CheckConservation();
}

INSTANTIATE_TEST_SUITE_P(Alphas, TailDropTest, Values(0.125, 1.0, 8.0));

// --- A NIC's receive buffer ----------------------------------------------------------------------

TEST(ReceiveBufferTest, TheCalmLevelIsWhereOneAccountCouldReachItsShare) {
  const SharedBuffer buffer =
      MakeSharedBuffer(DeviceId{0}, {.buffer_bytes = 9'000, .alpha = 8}, true);
  EXPECT_EQ(buffer.calm_bytes, 8'000);
  EXPECT_FALSE(buffer.IsAbove(8'000, 8'000));
  EXPECT_TRUE(buffer.IsAbove(8'001, 8'001));
  EXPECT_TRUE(buffer.MayXon(0, 9'000));
}

class HostTest : public testing::NetworkFixture {
 protected:
  void OnPacketAtNic(PacketId index) override { network().SendOn(index); }
};

TEST_F(HostTest, ANicWhoseHostIsSlowPausesTheSwitch) {
  const DeviceId leaf = AddSwitch("leaf");
  const DeviceId from = AddInServer(DeviceKind::kNic, 0, 0);
  const DeviceId nic = AddInServer(DeviceKind::kNic, 1, 0);
  const DeviceId gpu = AddInServer(DeviceKind::kGpu, 1, 0);
  graph_.AddCable(from, leaf, {Tier::kNicLeaf, 400'000'000'000, 1'000, 1});
  graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 400'000'000'000, 1'000, 1});
  graph_.AddCable(gpu, nic, {Tier::kHost, 100'000'000'000, 1'000, 1});
  BuildNetwork();
  network().SetReceiveBuffers({.buffer_bytes = 200'000, .alpha = 8});
  network().Configure();
  const PathRef path = network().AddPath(
      {*graph_.FindLink(from, leaf), *graph_.FindLink(leaf, nic), *graph_.FindLink(nic, gpu)});
  for (uint32_t i = 0; i < 1'000; ++i) Inject(path, i, 1'000, 900);
  engine().Run();
  EXPECT_GT(network().CountersOfLink(*graph_.FindLink(leaf, nic)).paused_ps, 0);
  EXPECT_EQ(network().CountersOfLink(*graph_.FindLink(from, leaf)).paused_ps, 0);
  EXPECT_EQ(at_gpu_.size(), 1'000u);
  // The host link is the bottleneck and never idle.
  EXPECT_EQ(at_gpu_.back().time_ps, 2 * (kSendPs + 1'000) + int64_t{1'000} * 80'000 + 1'000);
  network().CheckConservation();
}

}  // namespace
}  // namespace railyard
