// SPDX-License-Identifier: GPL-2.0-only
// Paths of queue pairs, without queue pairs, over a fabric with two routes between its leaves.
#include "simulator/transport/nic/queue_paths.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/transport/connections/stripe_layout.h"
#include "simulator/units/mix64.h"
#include "tests/fabric/network_fixture.h"

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::SizeIs;

constexpr uint64_t kEntropy = 99;

// gpu0 - nic0 - leaf0 - {spine0, spine1} - leaf1 - nic1 - gpu1; nic1 may have a second wire, to
// leaf0.
class QueuePathsTest : public testing::NetworkFixture {
 protected:
  void Build(uint32_t ports_of_second = 1) {
    for (const std::string name : {"leaf0", "leaf1", "spine0", "spine1"}) AddSwitch(name);
    for (int32_t server = 0; server < 2; ++server) {
      const DeviceId gpu = AddInServer(DeviceKind::kGpu, server, 0);
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
      Cable(gpu, nic, Tier::kHost);
      Cable(nic, Named("leaf" + std::to_string(server)), Tier::kNicLeaf);
    }
    if (ports_of_second == 2) Cable(Named("server1/nic0"), Named("leaf0"), Tier::kNicLeaf);
    for (const std::string leaf : {"leaf0", "leaf1"}) {
      for (const std::string spine : {"spine0", "spine1"}) {
        Cable(Named(leaf), Named(spine), Tier::kLeafSpine);
      }
    }
    BuildNetwork();
    routing_.emplace(graph_, 1);
  }
  void Cable(DeviceId a, DeviceId b, Tier tier) {
    graph_.AddCable(a, b, {tier, 400'000'000'000, 1'000, 1});
  }
  DeviceId Named(const std::string& name) const { return graph_.FindDevice(name).value(); }
  QueuePaths Paths(bool is_answered_by_host = false) {
    return {graph_, network(), *routing_, is_answered_by_host};
  }
  PairEnds Ends() const { return EndsBetween(graph_, GpuIndex{0}, GpuIndex{1}, kEntropy); }
  std::vector<std::string> DevicesOf(PathRef path) {
    std::vector<std::string> names;
    for (const LinkId link : network().paths().LinksOf(path)) {
      names.push_back(graph_.device(graph_.link_target(link)).name);
    }
    return names;
  }
  // Routing learns that the cable between the two changed.
  void Route(const std::string& a, const std::string& b, bool up) {
    routing_->SetLinkUp(Link(a, b), up);
    routing_->SetLinkUp(Link(b, a), up);
  }

  std::optional<EcmpRouting> routing_;
};

TEST_F(QueuePathsTest, DataGoFromMemoryToMemoryAndTheRestFromNicToNic) {
  Build();
  Route("leaf0", "spine1", false);
  QueuePaths paths = Paths();
  const QueuePaths::Ways data = paths.Resolve(Ends(), true, {});
  EXPECT_THAT(DevicesOf(data.packets), ElementsAre("server0/nic0", "leaf0", "spine0", "leaf1",
                                                   "server1/nic0", "server1/gpu0"));
  EXPECT_THAT(DevicesOf(data.acks), ElementsAre("leaf1", "spine0", "leaf0", "server0/nic0"));
  const QueuePaths::Ways grants = paths.Resolve(Ends(), false, {});
  EXPECT_EQ(DevicesOf(grants.packets), DevicesOf(data.acks));
  EXPECT_THAT(DevicesOf(grants.acks), ElementsAre("leaf0", "spine0", "leaf1", "server1/nic0"));
}

TEST_F(QueuePathsTest, AHostAnswersDataFromMemoryToMemory) {
  Build();
  Route("leaf0", "spine1", false);
  QueuePaths paths = Paths(true);
  EXPECT_THAT(
      DevicesOf(paths.Resolve(Ends(), true, {}).acks),
      ElementsAre("server1/nic0", "leaf1", "spine0", "leaf0", "server0/nic0", "server0/gpu0"));
  EXPECT_THAT(paths.Resolve(Ends(), false, {}).acks, Field(&PathRef::hop_count, 4));
}

TEST_F(QueuePathsTest, APathIsAddedOnceAndFoundAgainWhenItsRouteComesBack) {
  Build();
  QueuePaths paths = Paths();
  const PathRef first = paths.Resolve(Ends(), true, {}).packets;
  const std::string spine = DevicesOf(first)[2];
  const auto resolve = [&](PathRef last) {
    return paths.Resolve(Ends(), true, {.packets = last, .acks = {}}).packets;
  };
  EXPECT_EQ(resolve(first).first, first.first) << "nothing has changed";
  Route("leaf0", spine, false);
  paths.OnRoutesChanged();
  const PathRef second = resolve(first);
  EXPECT_NE(DevicesOf(second)[2], spine);
  EXPECT_NE(paths.HashOf(second), paths.HashOf(first));
  // The first path was added before routes changed, so its links are added once more, and then
  // both paths are known.
  Route("leaf0", spine, true);
  const PathRef third = resolve(second);
  EXPECT_EQ(DevicesOf(third), DevicesOf(first));
  EXPECT_NE(third.first, first.first);
  EXPECT_EQ(paths.HashOf(third), paths.HashOf(first));
  Route("leaf0", spine, false);
  EXPECT_EQ(resolve(third).first, second.first);
  Route("leaf0", spine, true);
  EXPECT_EQ(resolve(second).first, third.first);
}

TEST_F(QueuePathsTest, WithoutARouteAPathHasNoLinks) {
  Build();
  Route("leaf0", "spine0", false);
  Route("leaf0", "spine1", false);
  EXPECT_EQ(Paths().Resolve(Ends(), true, {}).packets.hop_count, 0);
}

TEST_F(QueuePathsTest, PinsBindBothDirectionsToTheirPorts) {
  Build(2);
  PairEnds ends = Ends();
  ends.data_pins = {.first = Link("server0/nic0", "leaf0"), .last = Link("leaf1", "server1/nic0")};
  QueuePaths paths = Paths();
  const QueuePaths::Ways far = paths.Resolve(ends, true, {});
  EXPECT_EQ(network().paths().LinkOf(far.packets, 4), Link("leaf1", "server1/nic0"));
  EXPECT_EQ(network().paths().LinkOf(far.acks, 0), Link("server1/nic0", "leaf1"));
  ends.data_pins->last = Link("leaf0", "server1/nic0");
  const QueuePaths::Ways near = paths.Resolve(ends, true, {});
  EXPECT_THAT(DevicesOf(near.acks), ElementsAre("leaf0", "server0/nic0"));
}

TEST_F(QueuePathsTest, AFlowsPathsHaveEqualShares) {
  Build();
  QueuePaths paths = Paths();
  const PathRef path = paths.Resolve(Ends(), true, {}).packets;
  const std::vector<PathRef> twice = {path, path};
  const std::vector<LinkShare> shares = EvenSharesOf(network(), twice);
  EXPECT_THAT(shares, SizeIs(12));
  EXPECT_THAT(shares, Each(Field(&LinkShare::share, 0.5)));
  EXPECT_EQ(NamesOf(graph_, Ends()), "server0/nic0 -> server1/nic0");
}

// A connection has a device per port of the NIC with more of them, and the queue pairs at its
// places take the devices in turn.
TEST_F(QueuePathsTest, PlacesOfAConnectionTakeTheDevicesInTurn) {
  Build(2);
  const NicSettings nic = {.link_aggregation = false};
  const StripeLayout layout(graph_, nic, {.ib_qps_per_connection = 2});
  EXPECT_EQ(layout.DeviceCount(GpuIndex{0}, GpuIndex{1}), 2u);
  const std::vector<PairEnds> ends = layout.EndsOf(GpuIndex{0}, GpuIndex{1}, kEntropy);
  ASSERT_THAT(ends, SizeIs(4));
  const std::vector<LinkId> ports = graph_.WiresOfNic(Named("server1/nic0"));
  for (uint32_t place = 0; place < 4; ++place) {
    EXPECT_EQ(ends[place].entropy, place == 0 ? kEntropy : Mix64(kEntropy ^ place));
    ASSERT_TRUE(ends[place].data_pins);
    EXPECT_EQ(ends[place].data_pins->first, Link("server0/nic0", "leaf0"));
    EXPECT_EQ(ends[place].data_pins->last, graph_.ReverseLink(ports[place % 2]));
  }
}

TEST_F(QueuePathsTest, BondedPortsAndSingleQueuePairsAreBoundToNone) {
  Build(2);
  const StripeLayout bonded(graph_, {}, {.ib_qps_per_connection = 2});
  EXPECT_EQ(bonded.QueuePairCount(GpuIndex{0}, GpuIndex{1}), 2u);
  EXPECT_FALSE(bonded.EndsOf(GpuIndex{0}, GpuIndex{1}, kEntropy)[1].data_pins);
  const StripeLayout single(graph_, {}, {});
  const std::vector<PairEnds> ends = single.EndsOf(GpuIndex{0}, GpuIndex{1}, kEntropy);
  ASSERT_THAT(ends, SizeIs(1));
  EXPECT_FALSE(ends[0].data_pins);
  EXPECT_EQ(ends[0].destination_nic, Named("server1/nic0"));
}

}  // namespace
}  // namespace railyard
