// SPDX-License-Identifier: GPL-2.0-only
// Queue pairs whose routes change while packets are in flight.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/transport/rdma/rdma_transport.h"
#include "tests/transport/transport_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// gpu0 - nic0 - leaf0 - {spine0, spine1} - leaf1 - nic1 - gpu1, all at 400 Gb/s.
class RdmaRoutesTest : public testing::TransportFixture {
 protected:
  static constexpr int64_t kTimeoutPs = int64_t{4'096'000} << 5;

  void SetUp() override {
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, 0);
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
      const DeviceId leaf = AddSwitch("leaf" + std::to_string(server), 500'000);
      graph_.AddCable(gpu, nic, {Tier::kHost, 400'000'000'000, 1'000, 1});
      graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 400'000'000'000, 1'000, 1});
    }
    for (const std::string spine : {"spine0", "spine1"}) {
      const DeviceId id = AddSwitch(spine, 500'000);
      for (const std::string leaf : {"leaf0", "leaf1"}) {
        graph_.AddCable(graph_.FindDevice(leaf).value(), id,
                        {Tier::kLeafSpine, 400'000'000'000, 1'000, 1});
      }
    }
    BuildTransports({.mtu_bytes = 1'024, .ib_timeout = 5});
    queue_pair_ = Open(7, GpuIndex{0}, GpuIndex{1}, 99);
    // Returns the spine that the hash chose.
    const std::vector<LinkId> links = rdma_->LinksOf(queue_pair_);
    ASSERT_EQ(links.size(), 6u);
    used_ = links[2];
    other_ = used_ == Link("leaf0", "spine0") ? Link("leaf0", "spine1") : Link("leaf0", "spine0");
  }
  // Routing learns that the cable of `link` changed.
  void Route(LinkId link, bool up) {
    routing_->SetLinkUp(link, up);
    routing_->SetLinkUp(graph_.ReverseLink(link), up);
    rdma_->OnRoutesChanged();
  }

  FlowId queue_pair_;
  LinkId used_{0};
  LinkId other_{0};
};

TEST_F(RdmaRoutesTest, PacketsReadAfterARouteChangeTakeTheNewPathAndThoseBeforeTheOld) {
  rdma_->Post(queue_pair_, PostedMessage::OfData(uint64_t{100} * 1'024));
  // 50 packets of 1,106 B at 20 ps a byte, the first with 16 B more, have been read by then.
  At(320 + 49 * 22'120 + 1, [this] { Route(used_, false); });
  engine().Run();
  EXPECT_EQ(network().CountersOfLink(used_).packets, 50u);
  EXPECT_EQ(network().CountersOfLink(other_).packets, 50u);
  EXPECT_THAT(delivered_, SizeIs(1));
  // Both paths are equally long: nothing was overtaken.
  EXPECT_THAT(dropped_, IsEmpty());
}

TEST_F(RdmaRoutesTest, ADeadPathIsLeftWhenRoutingKnowsAndTheTimerAsks) {
  Down(used_, 0, kNeverPs);
  rdma_->Post(queue_pair_, PostedMessage::OfData(1'024));
  // The first retry still goes into the dead link, the second one around it.
  At(kTimeoutPs + 1, [this] { Route(used_, false); });
  engine().Run();
  const int64_t path_ps = 6 * (1'122 * 20 + 1'000) + 3 * 500'000;
  EXPECT_THAT(delivered_, ElementsAre(Reported{2 * kTimeoutPs + path_ps, 7}));
  EXPECT_THAT(lost_, SizeIs(2));
  EXPECT_THAT(retransmitted_, ElementsAre(Reported{kTimeoutPs, 7}));
  EXPECT_THAT(recovered_, SizeIs(1));
}

TEST_F(RdmaRoutesTest, ARouteThatComesBackIsTheOneThereWas) {
  Route(used_, false);
  EXPECT_EQ(rdma_->LinksOf(queue_pair_)[2], other_);
  Route(used_, true);
  EXPECT_EQ(rdma_->LinksOf(queue_pair_)[2], used_);
}

TEST_F(RdmaRoutesTest, ClearToSendAndAcksFollowTheRoutesToo) {
  Route(used_, false);
  rdma_->Grant(queue_pair_, true);
  rdma_->Post(queue_pair_, PostedMessage::OfData(1'024));
  engine().Run();
  EXPECT_THAT(clear_to_send_, SizeIs(1));
  EXPECT_THAT(delivered_, SizeIs(1));
  for (const LinkId link : {used_, graph_.ReverseLink(used_)}) {
    EXPECT_EQ(network().CountersOfLink(link).packets, 0u);
  }
}

}  // namespace
}  // namespace railyard
