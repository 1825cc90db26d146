// SPDX-License-Identifier: GPL-2.0-only
// Connections around NICs, against closed forms: three GPUs with a NIC each in two servers, which
// an NVSwitch joins in each, and one leaf. GPUs 0 to 2 are the first server's.
#include "simulator/transport/connections/nic_detours.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/rdma_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NicDetoursTest : public testing::RdmaFixture {
 protected:
  static constexpr GpuIndex kSource{0};
  static constexpr GpuIndex kDestination{3};
  // The ways over the NICs of the second and of the third GPUs.
  static constexpr NicWay kSecond{.sending_gpu = GpuIndex{1}, .receiving_gpu = GpuIndex{4}};
  static constexpr NicWay kThird{.sending_gpu = GpuIndex{2}, .receiving_gpu = GpuIndex{5}};
  static constexpr uint32_t kNumber = 7;  // by which the test knows its detour
  // 1,024 B with their headers are ceil(1,024,000 / 824) = 1,243 B at 10 ps a byte.
  static constexpr int64_t kNvlinkPacketPs = 12'430;
  static constexpr int64_t kNvlinkDelayPs = 20'000;
  static constexpr int64_t kNvswitchPs = 300'000;
  static constexpr int64_t kStorePs = 2 * (kNvlinkPacketPs + kNvlinkDelayPs) + kNvswitchPs;
  // One packet over an idle way: to the sending GPU, over the network, and on from the receiving
  // GPU.
  static constexpr int64_t kMessagePs = kStorePs + MessagePs(1) + kStorePs;

  // `has_lone_gpus`: the third GPUs have no NVLink.
  void Build(bool has_lone_gpus = false) {
    leaf_ = AddSwitch("leaf0", kLeafForwardPs);
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId nvswitch = AddInServer(DeviceKind::kNvSwitch, server, 0, kNvswitchPs);
      for (int32_t i = 0; i < 3; ++i) {
        const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, i);
        const DeviceId nic = AddInServer(DeviceKind::kNic, server, i, kNicForwardPs);
        graph_.AddCable(gpu, nic, {Tier::kHost, 500'000'000'000, kHostDelayPs, 1});
        graph_.AddCable(nic, leaf_, {Tier::kNicLeaf, 400'000'000'000, kWireDelayPs, 1});
        if (has_lone_gpus && i == 2) continue;
        graph_.AddCable(gpu, nvswitch, {Tier::kNvlink, 800'000'000'000, kNvlinkDelayPs, 4});
      }
    }
    NicSettings nic;
    nic.mtu_bytes = kMtu;
    BuildTransports(nic);
    detours_.emplace(graph_, *load_store_, *rdma_);
  }
  void SetUp() override {}

  FlowId OpenOver(const std::vector<NicWay>& ways) {
    return detours_->OpenOver(ways, Me(kNumber), kSource, kDestination, 99);
  }
  // Posts messages of one packet that the receiver has granted.
  void Post(FlowId detour, int count) {
    for (int i = 0; i < count; ++i) detours_->Grant(detour, false);
    for (int i = 0; i < count; ++i) detours_->Post(detour, PostedMessage::OfData(kMtu));
  }
  // The wire from the NIC of a GPU of the first server.
  LinkId WireOf(uint32_t gpu) const { return Link("server0/nic" + std::to_string(gpu), "leaf0"); }
  uint64_t PayloadOn(LinkId link) const {
    return const_cast<NicDetoursTest*>(this)->network().CountersOfLink(link).payload_bytes;
  }
  std::vector<LinkId> LinksOverSecond() const {
    return {Link("server0/gpu0", "server0/nvswitch0"),
            Link("server0/nvswitch0", "server0/gpu1"),
            Link("server0/gpu1", "server0/nic1"),
            Link("server0/nic1", "leaf0"),
            Link("leaf0", "server1/nic1"),
            Link("server1/nic1", "server1/gpu1"),
            Link("server1/gpu1", "server1/nvswitch0"),
            Link("server1/nvswitch0", "server1/gpu0")};
  }

  std::optional<NicDetours> detours_;
};

TEST_F(NicDetoursTest, AMessageCrossesNvlinkTheNetworkAndNvlink) {
  Build();
  const FlowId detour = OpenOver({kSecond});
  EXPECT_EQ(detours_->LinksOf(detour), LinksOverSecond());
  Post(detour, 1);
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{kMessagePs, kNumber}));
  EXPECT_THAT(completed_, SizeIs(1));
  for (const LinkId link : LinksOverSecond()) EXPECT_EQ(PayloadOn(link), kMtu);
  EXPECT_EQ(PayloadOn(WireOf(0)), 0u);
  EXPECT_EQ(PayloadOn(WireOf(2)), 0u);
}

// The destination's own NIC receives: no NVLink behind it.
TEST_F(NicDetoursTest, AnEndWhoseNicIsUsedNeedsNoNvlink) {
  Build();
  Post(OpenOver({{.sending_gpu = GpuIndex{1}, .receiving_gpu = kDestination}}), 1);
  engine().Run();
  EXPECT_THAT(delivered_, ElementsAre(Reported{kStorePs + MessagePs(1), kNumber}));
}

// The first way is ten times as slow at its wire. The second and the fourth message are there long
// before those that they are reported behind.
TEST_F(NicDetoursTest, MessagesUseTheWaysInTurnAndAreReportedInTheirOrder) {
  Build();
  network().SetLinkRate(WireOf(1), network().RateBps(WireOf(1)) / 10);
  Post(OpenOver({kSecond, kThird}), 4);
  engine().Run();
  constexpr int64_t kFirstSlowPs = kMessagePs + 9 * kFirstPs;
  constexpr int64_t kSecondSlowPs = kFirstSlowPs + 10 * kFirstPs;
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{kFirstSlowPs, kNumber}, Reported{kFirstSlowPs, kNumber},
                          Reported{kSecondSlowPs, kNumber}, Reported{kSecondSlowPs, kNumber}));
  EXPECT_THAT(completed_, SizeIs(4));
  EXPECT_EQ(PayloadOn(WireOf(1)), 2 * kMtu);
  EXPECT_EQ(PayloadOn(WireOf(2)), 2 * kMtu);
}

TEST_F(NicDetoursTest, WaysHaveEqualSharesOfTheLinks) {
  Build();
  const std::vector<LinkId> over_second = LinksOverSecond();
  const auto shares = detours_->LinkSharesOf(OpenOver({kSecond, kThird}));
  EXPECT_THAT(shares, SizeIs(2 * over_second.size()));
  for (const LinkId link : over_second) {
    double share = 0;
    for (const LinkShare& part : shares) share += part.link == link ? part.share : 0;
    // Both ways leave GPU 0 and enter the destination by the same cables.
    const bool is_shared = link == over_second.front() || link == over_second.back();
    EXPECT_DOUBLE_EQ(share, is_shared ? 1 : 0.5) << link;
  }
}

TEST_F(NicDetoursTest, OnlyGpusOnNvlinkCanLendTheirNics) {
  Build(true);
  EXPECT_TRUE(detours_->CanTake(kSource, kDestination, kSecond));
  EXPECT_FALSE(detours_->CanTake(kSource, kDestination, kThird));
  EXPECT_FALSE(detours_->CanTake(kSource, kDestination,
                                 {.sending_gpu = GpuIndex{1}, .receiving_gpu = GpuIndex{5}}));
  EXPECT_TRUE(detours_->CanTake(GpuIndex{2}, GpuIndex{5}, kThird));  // their own
}

// Grants cross the slow way's wire in the other direction.
TEST_F(NicDetoursTest, GrantsAreReportedInTheirOrder) {
  Build();
  const LinkId slow = Link("server1/nic1", "leaf0");
  network().SetLinkRate(slow, network().RateBps(slow) / 1'000);
  const FlowId detour = OpenOver({kSecond, kThird});
  for (int i = 0; i < 4; ++i) detours_->Grant(detour, true);
  engine().Run();
  ASSERT_THAT(clear_to_send_, SizeIs(4));
  EXPECT_EQ(clear_to_send_[1].time_ps, clear_to_send_[0].time_ps);
  EXPECT_EQ(clear_to_send_[2].time_ps - clear_to_send_[0].time_ps, 1'000 * kClearToSendPs);
  EXPECT_EQ(clear_to_send_[3].time_ps, clear_to_send_[2].time_ps);
}

// Messages without bytes go by the network alone, behind those on NVLink.
TEST_F(NicDetoursTest, AFlagDoesNotOvertakeTheDataBeforeIt) {
  Build();
  const FlowId detour = OpenOver({kSecond});
  for (int i = 0; i < 2; ++i) detours_->Grant(detour, false);
  detours_->Post(detour, PostedMessage::OfData(kMtu));
  detours_->Post(detour, PostedMessage::OfData(0));
  At(kStorePs - 1, [&] {
    EXPECT_EQ(network().CountersOfLink(Link("server0/gpu1", "server0/nic1")).packets, 0u);
  });
  engine().Run();
  EXPECT_THAT(delivered_,
              ElementsAre(Reported{kMessagePs, kNumber}, Reported{kMessagePs, kNumber}));
  EXPECT_EQ(network().CountersOfLink(LinksOverSecond().front()).packets, 1u);
  EXPECT_EQ(network().CountersOfLink(WireOf(1)).packets, 2u);
}

TEST_F(NicDetoursTest, RepeatedMessagesHaveRecoveredWhenTheLastOfThemHasArrived) {
  Build();
  const FlowId detour = OpenOver({kSecond});
  Post(detour, 2);
  detours_->MarkRepeated(detour);
  Post(detour, 1);
  engine().Run();
  ASSERT_THAT(delivered_, SizeIs(3));
  EXPECT_THAT(recovered_, ElementsAre(Reported{delivered_[1].time_ps, kNumber}));
  EXPECT_GT(delivered_[2].time_ps, delivered_[1].time_ps);
  // Nothing is under way: nothing was lost.
  detours_->MarkRepeated(detour);
  EXPECT_THAT(recovered_, SizeIs(2));
}

// One detour is closed just before its message is on the network, and one just before it has
// arrived. The third is closed while the first of its messages is on a wire that takes very long.
TEST_F(NicDetoursTest, AClosedDetourReportsNothingAndSendsNothingMore) {
  Build();
  network().SetLinkRate(WireOf(2), network().RateBps(WireOf(2)) / 1'000);
  const FlowId late = OpenOver({kSecond});
  const FlowId early = OpenOver({kSecond});
  const FlowId slow = OpenOver({kThird});
  Post(late, 1);
  Post(early, 1);
  Post(slow, 3);
  At(kStorePs, [&] { detours_->Close(early); });  // its store is behind the other's
  At(kMessagePs - 1, [&] { detours_->Close(late); });
  At(kMessagePs, [&] { detours_->Close(slow); });
  engine().Run();
  EXPECT_THAT(delivered_, IsEmpty());
  EXPECT_THAT(errors_, IsEmpty());
  EXPECT_EQ(PayloadOn(WireOf(1)), kMtu);
  EXPECT_EQ(PayloadOn(WireOf(2)), kMtu);
}

}  // namespace
}  // namespace railyard
