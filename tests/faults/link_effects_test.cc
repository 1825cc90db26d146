// SPDX-License-Identifier: GPL-2.0-only
// Effects of faults that act on one link together: the test begins and ends them by hand.
#include "simulator/faults/link_effects.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric/network_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// nic0 - leaf - nic1 at 400 Gb/s and 1 ns. A packet of 1,000 B takes 20 ns to send.
constexpr uint64_t kRateBps = 400'000'000'000;
constexpr int64_t kSendPs = 20'000;
constexpr int64_t kCablePs = 1'000;
constexpr int64_t kPathPs = 2 * (kSendPs + kCablePs);

class LinkEffectsTest : public testing::NetworkFixture {
 protected:
  void SetUp() override {
    const DeviceId leaf = AddSwitch("leaf");
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
      graph_.AddCable(nic, leaf, {Tier::kNicLeaf, kRateBps, kCablePs, 1});
    }
    BuildNetwork();
    link_ = Link("server0/nic0", "leaf");
    other_ = Link("leaf", "server1/nic0");
    path_ = network().AddPath({link_, other_});
  }
  void Faults(std::vector<FaultSpec> faults) {
    for (FaultSpec& fault : faults) fault.links = {link_};
    faults_ = std::move(faults);
    effects_.emplace(graph_, faults_, network());
  }
  void Begin(uint32_t fault) { effects_->Begin(FaultIndex{fault}); }
  void End(uint32_t fault) { effects_->End(FaultIndex{fault}); }
  void InjectAt(int64_t time_ps, uint32_t sequence) {
    At(time_ps, [this, sequence] { Inject(path_, sequence, 1'000, 900); });
  }
  std::vector<int64_t> Arrivals() {
    engine().Run();
    std::vector<int64_t> times_ps;
    for (const Arrived& arrived : at_nic_) times_ps.push_back(arrived.time_ps);
    return times_ps;
  }
  void OnPacketDropped(PacketId index, DropReason reason, LinkId link) override {
    NoteDropped(index, reason, link);
    blamed_.push_back(effects_->FaultOfBitError(link));
  }

  static FaultSpec Degrade(uint64_t rate_bps, double share = 0) {
    FaultSpec fault;
    fault.kind = FaultKind::kDegrade;
    fault.rate_bps = rate_bps;
    fault.rate_share = share;
    return fault;
  }
  static FaultSpec Delay(int64_t delay_ps) {
    FaultSpec fault;
    fault.kind = FaultKind::kDelay;
    fault.delay_ps = delay_ps;
    return fault;
  }
  // Loses each packet with that probability.
  static FaultSpec Loss(double probability) {
    FaultSpec fault;
    fault.kind = FaultKind::kLoss;
    fault.loss.probability = probability;
    return fault;
  }
  static FaultSpec Of(FaultKind kind) {
    FaultSpec fault;
    fault.kind = kind;
    return fault;
  }

  LinkId link_{0};
  LinkId other_{0};
  PathRef path_;
  std::vector<FaultSpec> faults_;
  std::optional<LinkEffects> effects_;
  std::vector<std::optional<FaultIndex>> blamed_;  // by lost packet
};

TEST_F(LinkEffectsTest, ALinkIsDownWhileAnyFaultTakesItDown) {
  Faults({Of(FaultKind::kLinkDown), Of(FaultKind::kSwitchReboot)});
  EXPECT_EQ(effects_->LastFaultOfDownLink(link_), std::nullopt);
  Begin(0);
  EXPECT_FALSE(network().IsLinkUp(link_));
  EXPECT_TRUE(network().IsLinkUp(other_));
  EXPECT_EQ(effects_->LastFaultOfDownLink(link_), FaultIndex{0});
  Begin(1);
  EXPECT_EQ(effects_->LastFaultOfDownLink(link_), FaultIndex{1});
  End(1);
  EXPECT_FALSE(network().IsLinkUp(link_));
  EXPECT_EQ(effects_->LastFaultOfDownLink(link_), FaultIndex{0})
      << "the one that holds it down still";
  End(0);
  EXPECT_TRUE(network().IsLinkUp(link_));
  EXPECT_EQ(effects_->LastFaultOfDownLink(link_), FaultIndex{0});
  EXPECT_EQ(effects_->LastFaultOfDownLink(other_), std::nullopt);
}

TEST_F(LinkEffectsTest, TheLowestRateHolds) {
  Faults({Degrade(0, 0.5), Degrade(kRateBps / 8), Degrade(2 * kRateBps)});
  Begin(2);
  EXPECT_EQ(network().RateBps(link_), kRateBps) << "no fault makes a link faster";
  Begin(0);
  EXPECT_EQ(network().RateBps(link_), kRateBps / 2);
  Begin(1);
  EXPECT_EQ(network().RateBps(link_), kRateBps / 8) << "shares are of the link's own rate";
  End(1);
  EXPECT_EQ(network().RateBps(link_), kRateBps / 2);
  End(0);
  EXPECT_EQ(network().RateBps(link_), kRateBps);
}

// The packets are so far apart that none waits for another.
TEST_F(LinkEffectsTest, DelaysAddUpWhileTheirFaultsHold) {
  Faults({Delay(3'000), Delay(50'000)});
  Begin(0);
  InjectAt(0, 0);
  At(500'000, [this] { Begin(1); });
  InjectAt(1'000'000, 1);
  At(1'500'000, [this] { End(0); });
  InjectAt(2'000'000, 2);
  At(2'500'000, [this] { End(1); });
  InjectAt(3'000'000, 3);
  EXPECT_THAT(Arrivals(), ElementsAre(kPathPs + 3'000, 1'000'000 + kPathPs + 53'000,
                                      2'000'000 + kPathPs + 50'000, 3'000'000 + kPathPs));
}

// A packet is lost if its last bit arrives while the fault holds, whenever it was sent. The first
// packet's arrives at 21 ns, and the fault holds from 22 ns until 1,021 ns.
TEST_F(LinkEffectsTest, PacketsAreLostThatArriveWhileTheFaultHolds) {
  Faults({Loss(1)});
  constexpr int64_t kHopPs = kSendPs + kCablePs;
  At(kHopPs + 1'000, [this] { Begin(0); });
  At(1'000'000 + kHopPs, [this] { End(0); });
  InjectAt(0, 0);
  InjectAt(2'000, 1);  // right behind the first
  InjectAt(1'000'000 - 1, 2);
  InjectAt(1'000'000 + kSendPs, 3);
  engine().Run();
  std::vector<uint32_t> lost;
  for (const Dropped& drop : dropped_) {
    EXPECT_EQ(drop.reason, DropReason::kBitError);
    EXPECT_EQ(drop.link, link_);
    lost.push_back(drop.sequence);
  }
  EXPECT_THAT(lost, ElementsAre(1, 2));
  EXPECT_THAT(at_nic_, SizeIs(2));
}

// The first fault loses nothing; the second one everything.
TEST_F(LinkEffectsTest, ALossIsOfTheFaultWhoseModelLostThePacket) {
  Faults({Loss(0), Loss(1)});
  Begin(0);
  Begin(1);
  InjectAt(0, 0);
  EXPECT_THAT(Arrivals(), IsEmpty());
  EXPECT_THAT(blamed_, ElementsAre(FaultIndex{1}));
  EXPECT_EQ(effects_->FaultOfBitError(other_), std::nullopt);
}

// The link stays paused until both storms are over.
TEST_F(LinkEffectsTest, AStormLastsUntilTheLastOneEnds) {
  Faults({Of(FaultKind::kPauseStorm), Of(FaultKind::kPauseStorm)});
  At(0, [this] {
    Begin(0);
    Begin(1);
  });
  At(1'000'000, [this] { End(0); });
  InjectAt(2'000'000, 0);
  At(3'000'000, [this] {
    EXPECT_TRUE(network().IsPaused(link_));
    End(1);
  });
  EXPECT_THAT(Arrivals(), ElementsAre(3'000'000 + kPathPs));
}

}  // namespace
}  // namespace railyard
