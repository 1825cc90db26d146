// SPDX-License-Identifier: GPL-2.0-only
// Tests the load balancer alone, over routes and backlogs of the test: a leaf, four spines, and a
// NIC on another leaf, which is three links away.
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "simulator/fabric/port/load_balancer.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {
namespace {

class LoadBalancerObjectTest : public ::testing::Test {
 protected:
  void SetUp() override {
    leaf_ = AddDevice("leaf0", DeviceKind::kSwitch);
    const DeviceId other = AddDevice("leaf1", DeviceKind::kSwitch);
    nic_ = AddDevice("server0/nic0", DeviceKind::kNic, ServerIndex{0});
    AddCable(nic_, other, Tier::kNicLeaf);
    for (size_t i = 0; i < up_.size(); ++i) {
      const DeviceId spine = AddDevice("spine" + std::to_string(i), DeviceKind::kSwitch);
      up_[i] = AddCable(leaf_, spine, Tier::kLeafSpine);
      down_[i] = AddCable(spine, other, Tier::kLeafSpine);
    }
    routing_.emplace(graph_, 1);
  }
  DeviceId AddDevice(const std::string& name, DeviceKind kind,
                     ServerIndex server = ServerIndex::kNone) {
    return graph_.AddDevice({.name = name,
                             .kind = kind,
                             .server = server,
                             .local_index = kind == DeviceKind::kSwitch ? -1 : 0});
  }
  LinkId AddCable(DeviceId from, DeviceId to, Tier tier) {
    return graph_.cables()[graph_.AddCable(from, to, {tier, 400'000'000'000, 1'000, 1})].forward;
  }
  LoadBalancer Make(LoadBalancing policy) {
    return {*routing_, {.policy = policy, .flowlet_gap_ps = 100, .seed = 1}, [this](LinkId link) {
              return backlog_ps_[link];
            }};
  }
  LinkId Choose(LoadBalancer& balancer, uint32_t sequence, int64_t now_ps, uint32_t hops = 3) {
    Packet packet;
    packet.flow = 5;
    packet.sequence = sequence;
    return balancer.Choose(leaf_, nic_, hops, packet, now_ps);
  }
  // Returns the links of a train of 200 packets, one each `gap_ps`.
  std::set<LinkId> LinksOfTrain(LoadBalancer& balancer, int64_t gap_ps) {
    std::set<LinkId> links;
    for (uint32_t i = 0; i < 200; ++i) links.insert(Choose(balancer, i, gap_ps * i));
    return links;
  }

  FabricGraph graph_;
  std::optional<EcmpRouting> routing_;
  std::map<LinkId, int64_t> backlog_ps_;
  DeviceId leaf_{0};
  DeviceId nic_{0};
  std::array<LinkId, 4> up_{};
  std::array<LinkId, 4> down_{};
};

TEST_F(LoadBalancerObjectTest, SprayingUsesAllLinksAndIsRepeatable) {
  LoadBalancer balancer = Make(LoadBalancing::kSpraying);
  EXPECT_EQ(LinksOfTrain(balancer, 10), std::set<LinkId>(up_.begin(), up_.end()));
  LoadBalancer again = Make(LoadBalancing::kSpraying);
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(Choose(balancer, i, 7), Choose(again, i, 7));
}

TEST_F(LoadBalancerObjectTest, AdaptiveChoosesTheShortestQueue) {
  LoadBalancer balancer = Make(LoadBalancing::kAdaptive);
  for (const LinkId link : up_) backlog_ps_[link] = 500;
  backlog_ps_[up_[2]] = 499;
  EXPECT_EQ(LinksOfTrain(balancer, 10), std::set<LinkId>{up_[2]});
  backlog_ps_[up_[0]] = 499;
  EXPECT_EQ(LinksOfTrain(balancer, 10), (std::set<LinkId>{up_[0], up_[2]})) << "drawn among equals";
}

TEST_F(LoadBalancerObjectTest, AFlowletStaysUntilAPauseOfMoreThanTheGap) {
  LoadBalancer balancer = Make(LoadBalancing::kFlowlet);
  EXPECT_EQ(LinksOfTrain(balancer, 100).size(), 1u);
  LoadBalancer other = Make(LoadBalancing::kFlowlet);
  EXPECT_EQ(LinksOfTrain(other, 101).size(), up_.size());
}

TEST_F(LoadBalancerObjectTest, APacketWhosePathHasAnotherLengthHasNoLink) {
  LoadBalancer balancer = Make(LoadBalancing::kSpraying);
  EXPECT_EQ(Choose(balancer, 0, 0, 5), LinkId::kNone);
}

TEST_F(LoadBalancerObjectTest, RoutesAreReadAgainOnceTheyAreForgotten) {
  LoadBalancer balancer = Make(LoadBalancing::kSpraying);
  EXPECT_EQ(LinksOfTrain(balancer, 10).size(), up_.size());
  routing_->SetLinkUp(down_[1], false);
  balancer.ForgetRoutes();
  EXPECT_EQ(LinksOfTrain(balancer, 10), (std::set<LinkId>{up_[0], up_[2], up_[3]}));
  for (const size_t i : {0u, 2u, 3u}) routing_->SetLinkUp(down_[i], false);
  balancer.ForgetRoutes();
  EXPECT_EQ(Choose(balancer, 0, 0), LinkId::kNone);
}

TEST_F(LoadBalancerObjectTest, RoutesAreRequired) {
  LoadBalancer balancer;
  EXPECT_DEATH(Choose(balancer, 0, 0), "switches that balance need routes");
}

}  // namespace
}  // namespace railyard
