// SPDX-License-Identifier: GPL-2.0-only
// Tests which packets a link loses when it goes down: a packet is on the wire from its first bit
// leaving until its last bit arrives, ends included.
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/callback.h>

#include "simulator/fabric/fabric_network.h"
#include "tests/fabric/network_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::IsEmpty;

// nic0 - leaf - nic1 at 400 Gb/s and 1 ns; the leaf forwards in 500 ns. A packet of 1,000 B takes
// 20 ns to send and is on a wire for 21.
constexpr int64_t kSendPs = 20'000;
constexpr int64_t kWirePs = 21'000;
constexpr int64_t kForwardPs = 500'000;
constexpr int64_t kPathPs = 2 * kWirePs + kForwardPs;

class LinkStateTest : public testing::NetworkFixture {
 protected:
  void SetUp() override {
    const DeviceId leaf = AddSwitch("leaf", kForwardPs);
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
      graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 400'000'000'000, 1'000, 1});
    }
    BuildNetwork();
    first_ = Link("server0/nic0", "leaf");
    second_ = Link("leaf", "server1/nic0");
    path_ = network().AddPath({first_, second_});
    ASSERT_TRUE(network().TraceConnectWithoutContext(
        "PacketDropped", ns3::MakeCallback(&LinkStateTest::OnDropTraced, this)));
    ASSERT_TRUE(network().TraceConnectWithoutContext(
        "LinkStateChanged", ns3::MakeCallback(&LinkStateTest::OnStateTraced, this)));
  }
  void OnDropTraced(const PacketDropped& event) {
    drops_traced_.push_back(
        {event.time_ps, event.packet->flow, event.packet->sequence, event.reason, event.link});
    // The counters include it.
    EXPECT_EQ(network().counters().dropped_packets[static_cast<size_t>(event.reason)],
              drops_traced_.size());
  }
  void OnStateTraced(const LinkStateChanged& event) {
    states_traced_.emplace_back(event.time_ps, event.link, event.up);
    EXPECT_EQ(network().IsLinkUp(event.link), event.up);
  }
  // Returns which of the packets 0, 1, … of 1,000 B are lost when the first link is down over
  // [from, until). All are injected at 0 unless the test injects others.
  std::vector<uint32_t> LostOf(uint32_t packets, int64_t from_ps, int64_t until_ps) {
    Down(first_, from_ps, until_ps);
    for (uint32_t i = 0; i < packets; ++i) Inject(path_, i, 1'000, 900);
    engine().Run();
    std::vector<uint32_t> lost;
    for (const Dropped& drop : dropped_) {
      EXPECT_EQ(drop.reason, DropReason::kLinkDown);
      EXPECT_EQ(drop.link, first_);
      lost.push_back(drop.sequence);
    }
    const uint64_t injected = network().counters().packets;
    EXPECT_EQ(at_nic_.size(), injected - lost.size());
    EXPECT_EQ(network().CountersOfLink(first_).dropped_packets, lost.size());
    EXPECT_EQ(network().CountersOfLink(first_).packets, injected - lost.size());
    EXPECT_EQ(network().counters().dropped_bytes[0], 900 * lost.size());
    EXPECT_EQ(network().live_packets(), 0u);
    ExpectConservation();
    return lost;
  }

  LinkId first_{0};
  LinkId second_{0};
  PathRef path_;
  std::vector<Dropped> drops_traced_;
  std::vector<std::tuple<int64_t, LinkId, bool>> states_traced_;
};

TEST_F(LinkStateTest, APacketOnTheWireWhenItsLinkGoesDownIsLost) {
  EXPECT_THAT(LostOf(1, 10'000, 10'001), ElementsAre(0));
}

TEST_F(LinkStateTest, APacketWhoseLastBitArrivesAtTheInstantOfTheFaultIsLost) {
  EXPECT_THAT(LostOf(1, kWirePs, kWirePs + 1), ElementsAre(0));
}

TEST_F(LinkStateTest, APacketWhoseLastBitArrivedBeforeTheFaultIsNotLost) {
  EXPECT_THAT(LostOf(1, kWirePs + 1, 1'000'000), IsEmpty());
  // It was being forwarded by the leaf when the link behind it went down.
  EXPECT_THAT(at_nic_, ElementsAre(Arrived{kPathPs, 0, 0}));
}

TEST_F(LinkStateTest, APacketThatStartsAsTheLinkComesBackIsNotLost) {
  EXPECT_THAT(LostOf(2, 0, kSendPs), ElementsAre(0));
  EXPECT_THAT(at_nic_, ElementsAre(Arrived{kSendPs + kPathPs, 0, 1}));
}

TEST_F(LinkStateTest, APacketThatStartsOnePicosecondBeforeTheLinkComesBackIsLost) {
  EXPECT_THAT(LostOf(2, 0, kSendPs + 1), ElementsAre(0, 1));
}

TEST_F(LinkStateTest, PacketsQueuedThatStartAfterTheLinkIsBackSurvive) {
  // Packet i is on the wire from 20 i to 20 i + 21 ns. Down over [70, 130): 3 is on the wire, 4 and
  // 5 are sent into it, 6 is when it comes back; 7 starts at 140.
  EXPECT_THAT(LostOf(10, 70'000, 130'000), ElementsAre(3, 4, 5, 6));
  // Lost packets occupied the wire all the same.
  EXPECT_EQ(at_nic_.back(), (Arrived{9 * kSendPs + kPathPs, 0, 9}));
}

TEST_F(LinkStateTest, EveryOneOfSeveralDowntimesIsRemembered) {
  // All three are over before the first arrival is looked at (21 ns + 500 ns of forwarding).
  Down(first_, 45'000, 46'000);
  Down(first_, 205'000, 206'000);
  EXPECT_THAT(LostOf(20, 105'000, 126'000), ElementsAre(2, 5, 6, 10));
}

TEST_F(LinkStateTest, ALinkDownForGoodLosesAllThatIsSent) {
  At(5'000'000, [this] { Inject(path_, 7, 1'000, 900); });
  EXPECT_THAT(LostOf(0, 50'000, kNeverPs), ElementsAre(7));
}

// Packets 0 to 3 are on the wire as above, and the link loses 1 of them. Both taps see all four,
// also the lost one; they see nothing of the other link.
TEST_F(LinkStateTest, TapsSeeEveryPacketOfTheirLinkAndWhatItLoses) {
  using Seen = std::tuple<uint32_t, int64_t, std::optional<DropReason>>;
  std::vector<Seen> seen;
  uint32_t seen_again = 0;
  network().taps().Add(first_, [&](const Packet& packet, std::optional<DropReason> loss) {
    EXPECT_EQ(packet.link, first_);
    seen.emplace_back(packet.sequence, network().LastBitPs(packet), loss);
  });
  network().taps().Add(first_, [&](const Packet&, std::optional<DropReason>) { ++seen_again; });
  EXPECT_THAT(LostOf(4, 25'000, 30'000), ElementsAre(1));
  const std::optional<DropReason> none;
  EXPECT_THAT(
      seen,
      ElementsAre(Seen(0, kWirePs, none), Seen(1, kSendPs + kWirePs, DropReason::kLinkDown),
                  Seen(2, 2 * kSendPs + kWirePs, none), Seen(3, 3 * kSendPs + kWirePs, none)));
  EXPECT_EQ(seen_again, 4u);
}

TEST_F(LinkStateTest, TheOtherDirectionOfTheCableIsNotTouched) {
  Down(first_, 0, kNeverPs);
  const PathRef back = network().AddPath({graph_.ReverseLink(second_), graph_.ReverseLink(first_)});
  Inject(back, 1, 1'000, 900);
  Inject(path_, 2, 1'000, 900);
  engine().Run();
  EXPECT_THAT(at_nic_, ElementsAre(Arrived{kPathPs, 0, 1}));
  EXPECT_FALSE(network().IsLinkUp(first_));
  EXPECT_TRUE(network().IsLinkUp(graph_.ReverseLink(first_)));
}

TEST_F(LinkStateTest, ALossFurtherOnNamesTheLinkItHappenedOn) {
  // On the second link from 521 to 542 ns; it ends at a NIC, so nothing is forwarded behind it.
  Down(second_, 530'000, kNeverPs);
  Inject(path_, 1, 1'000, 900);
  engine().Run();
  EXPECT_THAT(dropped_, ElementsAre(Dropped{kPathPs, 0, 1, DropReason::kLinkDown, second_}));
  EXPECT_EQ(network().CountersOfLink(first_).packets, 1u);
  EXPECT_EQ(network().CountersOfLink(second_).packets, 0u);
  EXPECT_EQ(network().counters().packet_hops, 1u);
}

TEST_F(LinkStateTest, DropsAreTracedWithTimePacketReasonAndLink) {
  Inject(PathRef{}, 9, 100);
  EXPECT_THAT(drops_traced_, ElementsAre(Dropped{0, 0, 9, DropReason::kNoRoute, LinkId::kNone}));
}

TEST_F(LinkStateTest, LossesToALinkAreTracedWhenThePacketWouldHaveReachedTheNextDevice) {
  EXPECT_THAT(LostOf(2, 0, 30'000), ElementsAre(0, 1));
  const int64_t first_ps = kWirePs + kForwardPs;
  EXPECT_THAT(drops_traced_,
              ElementsAre(Dropped{first_ps, 0, 0, DropReason::kLinkDown, first_},
                          Dropped{first_ps + kSendPs, 0, 1, DropReason::kLinkDown, first_}));
}

TEST_F(LinkStateTest, ChangesOfStateAreTracedOnceEach) {
  At(100, [this] { network().SetLinkUp(first_, true); });  // it is up
  At(200, [this] { network().SetLinkUp(first_, false); });
  At(250, [this] { network().SetLinkUp(first_, false); });  // it is down
  At(300, [this] { network().SetLinkUp(first_, true); });
  engine().Run();
  EXPECT_THAT(states_traced_,
              ElementsAre(FieldsAre(200, first_, false), FieldsAre(300, first_, true)));
}

}  // namespace
}  // namespace railyard
