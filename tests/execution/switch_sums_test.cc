// SPDX-License-Identifier: GPL-2.0-only
// Sums and copies of an NVSwitch alone: the test plays the lane that asks for them.
#include "simulator/execution/sums/switch_sums.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/execution/connection_fixture.h"

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// GPU 0 sums up what it and GPUs 1 to 3 have, and stores to all four. One NVSwitch joins them, by
// four links of 200 Gb/s to each.
class SwitchSumsTest : public testing::ConnectionFixture {
 protected:
  static constexpr uint32_t kMembers = 4;
  static constexpr uint64_t kPayload = 4'096;
  // With its headers, that is ceil(4,096,000 / 824) = 4,971 B on four links.
  static constexpr int64_t kPacketPs = 49'710;
  static constexpr int64_t kRequestPs = 320;  // 32 B

  SwitchSumsTest()
      : ConnectionFixture(testing::MakeFixedLatencyStack, {.nvlink_lanes = {4}}),
        sums_(load_store_->groups(), *table_, sum_sink_, store_sink_) {
    for (uint32_t rank = 0; rank < kMembers; ++rank) {
      operands_.push_back(Between(rank, 0, 0, ConnectionUse::kSwitchOperand));
      results_.push_back(Between(0, rank, 0, ConnectionUse::kSwitchResult));
    }
    sum_sink_.on_delivered = [this](ConnectionId id) { summed_.emplace_back(Now(), id); };
    store_sink_.on_delivered = [this](ConnectionId id) { stored_.emplace_back(Now(), id); };
  }

  static int64_t Now() { return engine().NowPs(); }
  static int64_t OneWayPs() {
    return 2 * ServerSpec{}.nvlink_delay_ps + ServerSpec{}.nvswitch_latency_ps;
  }
  // A request goes to all members, whose operands come as one: the last packet `packets` - 1
  // packets behind the first.
  static int64_t SumPs(int64_t packets) {
    return 2 * kRequestPs + OneWayPs() + (packets + 1) * kPacketPs + OneWayPs();
  }
  void Request(int packets, const std::vector<ConnectionId>& results = {}) {
    sums_.Request(operands_, results, SizeOf(packets));
  }
  void Send(int packets) {
    sums_.Send(results_, SizeOf(packets));
    load_store_->ServeDue();
  }
  static MessageSize SizeOf(int packets) {
    return MessageSize::OfData(static_cast<uint64_t>(packets) * kPayload);
  }
  LinkId UplinkOf(uint32_t gpu) const {
    const DeviceId nvswitch = graph_.SharedNvSwitches(graph_.gpus()[0], graph_.gpus()[1]).front();
    return graph_.FindLink(graph_.gpus()[gpu], nvswitch).value();
  }

  testing::ListeningSink sum_sink_;
  testing::ListeningSink store_sink_;
  SwitchSums sums_;
  std::vector<ConnectionId> operands_;
  std::vector<ConnectionId> results_;
  std::vector<std::pair<int64_t, uint32_t>> summed_;
  std::vector<std::pair<int64_t, uint32_t>> stored_;
};

TEST_F(SwitchSumsTest, ASumComesOnceForAllItsOperands) {
  Request(3);
  engine().Run();
  EXPECT_THAT(summed_, ElementsAre(Pair(SumPs(3), operands_[0])));
  EXPECT_THAT(stored_, IsEmpty());
}

// GPU 3 sends at a tenth of the rate.
TEST_F(SwitchSumsTest, ASumWaitsForItsLastOperand) {
  network_->SetLinkRate(UplinkOf(3), network_->RateBps(UplinkOf(3)) / 10);
  Request(1);
  engine().Run();
  EXPECT_THAT(summed_, ElementsAre(Pair(SumPs(1) + 9 * kPacketPs, operands_[0])));
}

TEST_F(SwitchSumsTest, WithoutOneOperandThereIsNoSum) {
  network_->SetLinkUp(UplinkOf(2), false);
  Request(1);
  engine().Run();
  EXPECT_THAT(summed_, IsEmpty());
}

// Only the first of the operands' connections has the group, and it stays the same.
TEST_F(SwitchSumsTest, AGroupIsOpenedWhenItIsFirstUsed) {
  EXPECT_EQ(At(operands_[0]).flow, FlowId::kNone);
  Request(1);
  const FlowId sums = At(operands_[0]).flow;
  EXPECT_NE(sums, FlowId::kNone);
  EXPECT_EQ(At(operands_[1]).flow, FlowId::kNone);
  Request(2);
  EXPECT_EQ(At(operands_[0]).flow, sums);
  engine().Run();
  EXPECT_THAT(summed_, SizeIs(2));
  sums_.OpenResults(results_);
  const FlowId copies = At(results_[0]).flow;
  EXPECT_NE(copies, sums);
  sums_.OpenResults(results_);
  for (const ConnectionId result : results_) EXPECT_EQ(At(result).flow, copies);
}

TEST_F(SwitchSumsTest, WhatTheHeadStoresIsWithAllReceiversAtOnce) {
  sums_.OpenResults(results_);
  Send(2);
  engine().Run();
  const int64_t here_ps = 3 * kPacketPs + OneWayPs();
  EXPECT_THAT(stored_, ElementsAre(Pair(here_ps, results_[0]), Pair(here_ps, results_[1]),
                                   Pair(here_ps, results_[2]), Pair(here_ps, results_[3])));
  EXPECT_THAT(summed_, IsEmpty());
}

// Only the last packet is left to send when the head has the sum; without results in the request,
// all of it is.
TEST_F(SwitchSumsTest, ASumIsCopiedWhileItComes) {
  constexpr int kPackets = 5;
  sum_sink_.on_delivered = [&](ConnectionId id) {
    summed_.emplace_back(Now(), id);
    Send(kPackets);
  };
  Request(kPackets, results_);
  engine().Run();
  EXPECT_THAT(summed_, ElementsAre(Pair(SumPs(kPackets), operands_[0])));
  ASSERT_THAT(stored_, SizeIs(kMembers));
  EXPECT_THAT(stored_, Each(Pair(SumPs(kPackets) + 2 * kPacketPs + OneWayPs(), ::testing::_)));

  summed_.clear();
  stored_.clear();
  const int64_t begin_ps = Now();
  Request(kPackets);
  engine().Run();
  ASSERT_THAT(stored_, SizeIs(kMembers));
  EXPECT_THAT(stored_,
              Each(Pair(begin_ps + SumPs(kPackets) + (kPackets + 1) * kPacketPs + OneWayPs(),
                        ::testing::_)));
}

TEST_F(SwitchSumsTest, NobodyHasAResultThatIsNotSent) {
  Request(3, results_);
  engine().Run();
  EXPECT_THAT(summed_, SizeIs(1));
  EXPECT_THAT(stored_, IsEmpty());
}

}  // namespace
}  // namespace railyard
