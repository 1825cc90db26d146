// SPDX-License-Identifier: GPL-2.0-only
// Groups of GPUs with their NICs, whose connections are queue pairs: rank r is GPU r of two servers
// of eight, and the NICs of a rail are at one leaf.
#include "simulator/execution/connections/nic_groups.h"

#include <cstdint>
#include <deque>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/transport/stacks/network_stacks.h"
#include "tests/execution/connection_fixture.h"
#include "tests/support/gpus.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using testing::Gpus;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class NicGroupsTest : public testing::ConnectionFixture {
 protected:
  NicGroupsTest()
      : ConnectionFixture(MakeNetworkStack), groups_(graph_, *table_, *load_store_, *stack_) {}

  // A connection by the sender's own NIC.
  ConnectionId Open(uint32_t from, uint32_t to, uint32_t channel = 0) {
    return Between(from, to, channel, ConnectionUse::kExchange);
  }
  void OpenInRail(CommunicatorIndex rail, uint32_t from, uint32_t to, uint32_t channel) {
    table_->Between(rail, channel, RankIndex{from}, RankIndex{to}, ConnectionUse::kExchange);
  }
  NicGroup GroupOf(const std::vector<GpuIndex>& gpus) const {
    return GroupOf(gpus, {CommunicatorIndex{0}});
  }
  NicGroup GroupOf(const std::vector<GpuIndex>& gpus,
                   const std::vector<CommunicatorIndex>& communicators) const {
    return groups_.GroupOf(gpus, communicators, [](GpuIndex) { return uint64_t{0}; });
  }
  DeviceId LeafOf(uint32_t gpu) const {
    const DeviceId nic = graph_.NicOfGpu(graph_.gpus()[gpu]).value();
    return graph_.link_target(graph_.WiresOfNic(nic).front());
  }

  NicGroups groups_;
};

// Each direction crosses GPU to NIC, NIC to leaf, leaf to NIC and NIC to GPU. Acknowledgements use
// the same links as the other direction's data.
TEST_F(NicGroupsTest, ARailIsAGroupAtItsLeaf) {
  const ConnectionId there = Open(0, 8);
  const ConnectionId back = Open(8, 0);
  const NicGroup group = GroupOf(Gpus({0, 8}));
  EXPECT_EQ(group.at, LeafOf(0));
  EXPECT_THAT(group.connections, UnorderedElementsAre(there, back));
  EXPECT_THAT(group.links, SizeIs(8));
  EXPECT_EQ(group.version, table_->network_version());
}

TEST_F(NicGroupsTest, OnlyConnectionsBetweenItsGpusAreOfAGroup) {
  const ConnectionId own = Open(0, 8);
  Open(0, 9);
  Open(1, 9);
  EXPECT_THAT(GroupOf(Gpus({0, 8})).connections, ElementsAre(own));
  EXPECT_THAT(GroupOf(Gpus({2, 10})).connections, IsEmpty());
}

// From leaf 0 to leaf 1 there are spines in between.
TEST_F(NicGroupsTest, ConnectionsOverSeveralSwitchesAreAtNone) {
  Open(0, 9);
  EXPECT_EQ(GroupOf(Gpus({0, 9})).at, std::nullopt);
}

// PXN: rank 0 sends to GPU 9 by the NIC of GPU 1, which is no member.
TEST_F(NicGroupsTest, ARelayedConnectionMakesNoGroup) {
  const ConnectionId relayed = Between(0, 9, 0, ConnectionUse::kPointToPoint);
  ASSERT_TRUE(At(relayed).is_relayed());
  const NicGroup group = GroupOf(Gpus({0, 9}));
  EXPECT_THAT(group.connections, ElementsAre(relayed));
  EXPECT_EQ(group.at, std::nullopt);
  EXPECT_THAT(group.links, IsEmpty());
}

// Each rail has a communicator of its own, as groups of data parallelism have.
TEST_F(NicGroupsTest, LikeRailsHaveOneIdentity) {
  std::deque<NcclPlanner> planners;  // which communicators refer to
  std::vector<CommunicatorIndex> communicators;
  for (const uint32_t rail : {0u, 1u, 2u}) {
    const std::vector<GpuIndex> gpus = Gpus({rail, rail + 8});
    planners.emplace_back(LayoutOf(graph_, gpus), NcclSettings{});
    communicators.push_back(table_->AddCommunicator({.gpus = gpus, .planner = &planners.back()}));
    OpenInRail(communicators.back(), 0, 1, 0);
    OpenInRail(communicators.back(), 1, 0, 0);
  }
  const NicGroup first = GroupOf(Gpus({0, 8}), {communicators[0]});
  EXPECT_EQ(first.identity, GroupOf(Gpus({1, 9}), {communicators[1]}).identity);
  EXPECT_NE(first.at, GroupOf(Gpus({1, 9}), {communicators[1]}).at);
  OpenInRail(communicators.back(), 0, 1, 1);  // one more than the others have
  EXPECT_NE(first.identity, GroupOf(Gpus({2, 10}), {communicators[2]}).identity);
}

// A tree of all ranks crosses the first rail, too.
TEST_F(NicGroupsTest, OtherCommunicatorsAreNoPartOfTheIdentity) {
  NcclPlanner planner(LayoutOf(graph_, Gpus({0, 8})), NcclSettings{});
  const CommunicatorIndex rail =
      table_->AddCommunicator({.gpus = Gpus({0, 8}), .planner = &planner});
  OpenInRail(rail, 0, 1, 0);
  const NicGroup before = GroupOf(Gpus({0, 8}), {rail});
  EXPECT_THAT(before.others, IsEmpty());
  const ConnectionId other = Open(0, 8);
  const NicGroup after = GroupOf(Gpus({0, 8}), {rail});
  EXPECT_EQ(after.identity, before.identity);
  EXPECT_EQ(after.connections, before.connections);
  EXPECT_THAT(after.others, ElementsAre(other));
}

// Queue pairs are served in the order of their numbers, so the order of opening counts.
TEST_F(NicGroupsTest, TheOrderOfOpeningIsPartOfTheIdentity) {
  Open(0, 8);
  Open(8, 0);
  Open(9, 1);
  Open(1, 9);
  EXPECT_NE(GroupOf(Gpus({0, 8})).identity, GroupOf(Gpus({1, 9})).identity);
}

TEST_F(NicGroupsTest, WhatElseAffectsAGpuIsPartOfTheIdentity) {
  Open(0, 8);
  const auto with = [this](uint64_t of_gpu_8) {
    return groups_
        .GroupOf(Gpus({0, 8}), std::vector{CommunicatorIndex{0}},
                 [=](GpuIndex gpu) { return gpu == 8 ? of_gpu_8 : uint64_t{0}; })
        .identity;
  };
  EXPECT_EQ(with(0), GroupOf(Gpus({0, 8})).identity);
  EXPECT_NE(with(1), with(0));
}

// --- Traffic within a server ---------------------------------------------------------------------

TEST_F(NicGroupsTest, LikeServersHaveOneIdentity) {
  Between(1, 2);
  Between(9, 10);
  EXPECT_EQ(groups_.IdentityOfGpus(Gpus({1, 2})), groups_.IdentityOfGpus(Gpus({9, 10})));
  Between(10, 9);
  EXPECT_NE(groups_.IdentityOfGpus(Gpus({1, 2})), groups_.IdentityOfGpus(Gpus({9, 10})));
  Between(2, 1);
  EXPECT_EQ(groups_.IdentityOfGpus(Gpus({1, 2})), groups_.IdentityOfGpus(Gpus({9, 10})));
}

// Flows that no connection opened, as those of detours, have no counterpart elsewhere.
TEST_F(NicGroupsTest, AFlowOfAnotherUserDistinguishesItsServer) {
  Between(1, 2);
  Between(9, 10);
  testing::ListeningSink other;
  load_store_->Open({&other, 0}, GpuIndex{1}, GpuIndex{2});
  load_store_->Open({&other, 0}, GpuIndex{9}, GpuIndex{10});
  EXPECT_NE(groups_.IdentityOfGpus(Gpus({1, 2})), groups_.IdentityOfGpus(Gpus({9, 10})));
}

}  // namespace
}  // namespace railyard
