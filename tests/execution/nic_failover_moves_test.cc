// SPDX-License-Identifier: GPL-2.0-only
// Failover alone: NICs fail, and the test says of which connection the retries are used up. Rank r
// is on GPU r, whose NIC is its own; GPU 8 is the first of the second server.
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/execution/proxies/nic_failover.h"
#include "simulator/transport/stacks/network_stacks.h"
#include "tests/execution/parts_fixture.h"
#include "tests/support/gpus.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using testing::Gpus;
using ::testing::IsEmpty;
using ::testing::Pair;

class NicFailoverMovesTest : public testing::PartsFixture {
 protected:
  NicFailoverMovesTest() : PartsFixture(MakeNetworkStack) { FailOver(NicPolicy::kPxn); }

  void FailOver(NicPolicy policy) {
    failover_.emplace(NicFailover::Parts{.graph = graph_,
                                         .network = *network_,
                                         .table = *table_,
                                         .stack = *stack_,
                                         .proxies = proxies_,
                                         .observer = *this,
                                         .sink = sink_,
                                         .left_sink = left_sink_},
                      policy);
  }
  // A connection by the sender's own NIC.
  ConnectionId Open(uint32_t from, uint32_t to) {
    return Between(from, to, 0, ConnectionUse::kExchange);
  }
  void SetNic(uint32_t gpu, bool is_up) {
    for (const LinkId wire : graph_.WiresOfNic(graph_.NicOfGpu(graph_.gpus()[gpu]).value())) {
      network_->SetLinkUp(wire, is_up);
      network_->SetLinkUp(graph_.ReverseLink(wire), is_up);
    }
  }
  // The GPUs whose NICs send and receive the messages of a connection that has moved.
  std::vector<std::pair<uint32_t, uint32_t>> WaysOf(ConnectionId id) const {
    std::vector<std::pair<uint32_t, uint32_t>> ways;
    if (!At(id).is_detoured) return ways;
    for (const NicWay& way : stack_->detours()->WaysOf(At(id).flow)) {
      ways.emplace_back(way.sending_gpu, way.receiving_gpu);
    }
    return ways;
  }

  void OnDetour(std::span<const GpuIndex> gpus) override {
    detours_.emplace_back(gpus.begin(), gpus.end());
  }
  void OnRetransmission(ConnectionId connection) override {
    EXPECT_EQ(connection, repeating_);
    ++retransmissions_;
  }
  void OnPacketRepeated(ConnectionId /*connection*/, uint32_t payload_bytes) override {
    repeated_bytes_.push_back(payload_bytes);
  }

  testing::ListeningSink left_sink_;
  std::optional<NicFailover> failover_;
  std::vector<std::vector<GpuIndex>> detours_;
  ConnectionId repeating_;
  uint32_t retransmissions_ = 0;
  std::vector<uint32_t> repeated_bytes_;
};

TEST_F(NicFailoverMovesTest, NicsOfTheNextRailReplaceThoseOfAFailedOne) {
  const ConnectionId id = Open(0, 8);
  const ConnectionId last_rail = Open(7, 15);
  SetNic(8, false);
  EXPECT_TRUE(failover_->TryToMove(id));
  EXPECT_TRUE(At(id).is_detoured);
  EXPECT_THAT(WaysOf(id), ElementsAre(Pair(1, 9)));
  EXPECT_THAT(detours_, ElementsAre(Gpus({0, 0, 8, 1, 9})));
  EXPECT_FALSE(At(last_rail).is_detoured);
  SetNic(7, false);
  EXPECT_TRUE(failover_->TryToMove(last_rail));
  EXPECT_THAT(WaysOf(last_rail),
              ElementsAre(Pair(1, 9)));  // after the last rail is the first: dead
  EXPECT_EQ(failover_->count(), 2u);
}

// Between two rails, the one that has lost its NIC counts.
TEST_F(NicFailoverMovesTest, TheSearchBeginsBehindTheRailOfTheFailedNic) {
  const ConnectionId to_failed = Open(1, 12);
  const ConnectionId from_failed = Open(12, 1);
  SetNic(12, false);
  EXPECT_TRUE(failover_->TryToMove(to_failed));
  EXPECT_THAT(WaysOf(to_failed), ElementsAre(Pair(5, 13)));
  EXPECT_THAT(WaysOf(from_failed), ElementsAre(Pair(13, 5)));
  EXPECT_EQ(failover_->count(), 2u);
}

TEST_F(NicFailoverMovesTest, ReplanUsesAllRailsThatAreLeft) {
  FailOver(NicPolicy::kReplan);
  const ConnectionId id = Open(5, 13);
  SetNic(5, false);
  SetNic(10, false);
  EXPECT_TRUE(failover_->TryToMove(id));
  EXPECT_THAT(WaysOf(id), ElementsAre(Pair(6, 14), Pair(7, 15), Pair(0, 8), Pair(1, 9), Pair(3, 11),
                                      Pair(4, 12)));
}

// The receiver has two of four messages that were posted, and one of them is acknowledged. It has
// granted two more, and the sender has not heard of that.
TEST_F(NicFailoverMovesTest, WhatTheReceiverLacksIsPostedAndGrantedAgainInItsOrder) {
  const ConnectionId id = Open(0, 8);
  repeating_ = id;
  MessageSlots& slots = table_->slots(id);
  slots.costs = costs_;
  slots.sender = LaneIndex{6};
  slots.sender_waits = true;
  slots.posted = 4;
  slots.delivered = 2;
  slots.progress.sent = 4;
  slots.progress.completed = 1;
  slots.progress.clear_to_send = 4;
  slots.progress.granted = 6;
  table_->staged(At(id)).bytes = {100, 200, 300, 400};
  SetNic(8, false);
  EXPECT_TRUE(failover_->TryToMove(id));
  EXPECT_THAT(repeated_bytes_, ElementsAre(300, 400));
  EXPECT_EQ(retransmissions_, 2u);
  // The messages that the receiver has are complete.
  EXPECT_EQ(slots.progress.completed, 2);
  EXPECT_THAT(Woken(), ElementsAre(6));
  uint32_t delivered = 0;
  uint32_t completed = 0;
  uint32_t granted = 0;
  std::vector<uint32_t> delivered_at_recovery;
  sink_.on_delivered = [&](ConnectionId of) {
    EXPECT_EQ(of, id);
    ++delivered;
  };
  sink_.on_completed = [&](ConnectionId) { ++completed; };
  sink_.on_granted = [&](ConnectionId) { ++granted; };
  sink_.on_loss_recovered = [&](ConnectionId) { delivered_at_recovery.push_back(delivered); };
  engine().Run();
  EXPECT_EQ(delivered, 2u);
  EXPECT_EQ(completed, 2u);
  EXPECT_EQ(granted, 2u);
  EXPECT_THAT(delivered_at_recovery, ElementsAre(1));  // as the second one arrives
}

TEST_F(NicFailoverMovesTest, AConnectionThatUsesNoFailedNicStays) {
  const ConnectionId id = Open(0, 8);
  EXPECT_FALSE(failover_->TryToMove(id));
  SetNic(11, false);
  EXPECT_FALSE(failover_->TryToMove(id));
  EXPECT_FALSE(At(id).is_detoured);
  EXPECT_EQ(failover_->count(), 0u);
}

// Rank 0 of another part of the job is on GPU 0, too.
TEST_F(NicFailoverMovesTest, AllConnectionsOfThePartThatUseTheNicMoveAndNoOthers) {
  std::vector<GpuIndex> gpus = table_->executed(CommunicatorIndex{0}).gpus;
  const CommunicatorIndex other_part =
      table_->AddCommunicator({.gpus = gpus, .planner = &*planner_, .part = PartIndex{4}});
  const ConnectionId id = Open(0, 8);
  const ConnectionId back = Open(8, 0);
  const ConnectionId from_third = Open(3, 8);
  const ConnectionId beside = Open(1, 9);
  const ConnectionId in_server = Open(8, 9);
  const ConnectionId of_other =
      table_->Between(other_part, 0, RankIndex{0}, RankIndex{8}, ConnectionUse::kExchange);
  SetNic(8, false);
  EXPECT_TRUE(failover_->TryToMove(back));
  for (const ConnectionId moved : {id, back, from_third}) EXPECT_TRUE(At(moved).is_detoured);
  for (const ConnectionId stays : {beside, in_server, of_other}) {
    EXPECT_FALSE(At(stays).is_detoured);
  }
  EXPECT_EQ(failover_->count(), 3u);
}

TEST_F(NicFailoverMovesTest, WithoutAnyNicLeftNothingMoves) {
  const ConnectionId id = Open(0, 8);
  for (uint32_t gpu = 8; gpu < 16; ++gpu) SetNic(gpu, false);
  EXPECT_FALSE(failover_->TryToMove(id));
  EXPECT_FALSE(At(id).is_detoured);
  EXPECT_THAT(detours_, IsEmpty());
}

TEST_F(NicFailoverMovesTest, ADetourWhoseNicFailsMovesOn) {
  const ConnectionId id = Open(0, 8);
  SetNic(8, false);
  EXPECT_TRUE(failover_->TryToMove(id));
  SetNic(9, false);
  EXPECT_TRUE(failover_->TryToMove(id));
  EXPECT_THAT(WaysOf(id), ElementsAre(Pair(2, 10)));
  EXPECT_EQ(failover_->count(), 2u);
}

// A part knows of a failed NIC until it starts again, whether or not the NIC works meanwhile.
TEST_F(NicFailoverMovesTest, APartThatStartsAgainUsesItsOwnNics) {
  table_->SetDetours([this](ConnectionId id) { return failover_->OpenAround(id); });
  const ConnectionId id = Open(0, 8);
  SetNic(8, false);
  EXPECT_TRUE(failover_->TryToMove(id));
  SetNic(8, true);
  const ConnectionId opened_later = Open(8, 0);
  EXPECT_TRUE(At(opened_later).is_detoured);
  EXPECT_THAT(WaysOf(opened_later), ElementsAre(Pair(9, 1)));
  EXPECT_FALSE(At(Open(2, 10)).is_detoured);
  table_->Close(PartIndex{3});
  failover_->Forget(PartIndex{3});
  const ConnectionId anew = Open(0, 8);
  EXPECT_NE(anew, id);
  EXPECT_FALSE(At(anew).is_detoured);
  EXPECT_EQ(At(anew).transport, &stack_->Plain());
}

TEST_F(NicFailoverMovesTest, ConnectionsMayMoveWhileOneUsesANicThatDoesNotAnswer) {
  Open(0, 8);
  uint64_t conditions = 0;
  const auto may_move_with = [&](uint32_t gpu, bool is_up) {
    SetNic(gpu, is_up);
    network_->state().SetConditions(++conditions);
    return failover_->MayMoveSome();
  };
  EXPECT_FALSE(failover_->MayMoveSome());
  EXPECT_FALSE(may_move_with(9, false));  // nobody's
  EXPECT_TRUE(may_move_with(8, false));
  EXPECT_FALSE(may_move_with(8, true));
  Open(1, 9);
  EXPECT_TRUE(failover_->MayMoveSome());
  table_->Close(PartIndex{3});
  EXPECT_FALSE(failover_->MayMoveSome());
}

}  // namespace
}  // namespace railyard
