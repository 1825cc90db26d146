// SPDX-License-Identifier: GPL-2.0-only
// Connections of programs that are opened before the programs run. Rank r is on GPU r; GPU 8 is the
// first of the second server.
#include "simulator/execution/lanes/connection_opening.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/transport/stacks/network_stacks.h"
#include "tests/execution/connection_fixture.h"

namespace railyard {
namespace {

// Rank 0 sends to one peer in each batch, by one lane.
class BatchSchedule final : public CollectiveSchedule {
 public:
  explicit BatchSchedule(std::vector<LanePeer> peer_of_batch, MessageRule rule = {})
      : peer_of_batch_(std::move(peer_of_batch)), rule_(rule) {}

  uint32_t rank_count() const override { return 16; }
  uint32_t channel_count() const override { return 1; }
  const MessageRule& message_rule() const override { return rule_; }
  uint32_t BatchCount(RankIndex /*rank*/, uint32_t /*channel*/) const override {
    return static_cast<uint32_t>(peer_of_batch_.size());
  }
  uint32_t LaneCount(RankIndex /*rank*/, uint32_t /*channel*/, uint32_t /*batch*/) const override {
    return 1;
  }
  LanePeers PeersOf(const LaneId& lane) const override {
    return {.recv_from = {}, .send_to = {peer_of_batch_[lane.batch]}};
  }
  uint64_t StepCount(const LaneId& /*lane*/) const override { return 1; }
  Step StepAt(const LaneId& lane, uint64_t /*step*/) const override {
    return {.send_to = static_cast<int32_t>(peer_of_batch_[lane.batch].rank), .bytes = 1'024};
  }

 private:
  std::vector<LanePeer> peer_of_batch_;
  MessageRule rule_;
};

LanePeer To(uint32_t rank, ConnectionUse use = ConnectionUse::kRing) {
  return {.rank = RankIndex{rank}, .use = use};
}

class ConnectionOpeningTest : public testing::ConnectionFixture {
 protected:
  explicit ConnectionOpeningTest(const NetworkStackFactory& stack = MakeNetworkStack)
      : ConnectionFixture(stack), opening_(*table_) {}

  void Open(const CollectiveSchedule& schedule, uint8_t costs = 0, uint8_t line_costs = 0) {
    RankProgram program;
    program.costs = costs;
    program.line_costs = line_costs;
    program.schedule = &schedule;
    opening_.Open(program);
  }

  ConnectionOpening opening_;
};

TEST_F(ConnectionOpeningTest, OpensAProgramsFirstBatchAsItsStartWould) {
  Open(BatchSchedule({To(8)}));
  ASSERT_EQ(table_->connections().size(), 1u);
  EXPECT_EQ(Between(0, 8), ConnectionId{0});
  EXPECT_TRUE(opening_.is_in_order());
  EXPECT_EQ(opening_.obstacle(), "");
}

TEST_F(ConnectionOpeningTest, OpensLaterBatchesBeforeTheirTime) {
  Open(BatchSchedule({To(8), To(1), To(9)}));
  ASSERT_EQ(table_->connections().size(), 3u);
  EXPECT_EQ(Between(0, 8), ConnectionId{0});
  EXPECT_EQ(Between(0, 1), ConnectionId{1});
  EXPECT_EQ(Between(0, 9), ConnectionId{2});
  EXPECT_FALSE(opening_.is_in_order());
  EXPECT_EQ(opening_.obstacle(), "");
}

TEST_F(ConnectionOpeningTest, TellsReceiversTheCostsOfTheirSendersLanes) {
  Open(BatchSchedule({To(8)}), 3, 5);
  EXPECT_EQ(table_->slots(Between(0, 8)).costs, 3);
  Open(BatchSchedule({To(9)}, {.line_payload_bytes = 8}), 3, 5);
  EXPECT_EQ(table_->slots(Between(0, 9)).costs, 5);
  EXPECT_EQ(opening_.obstacle(), "");
}

TEST_F(ConnectionOpeningTest, OneConnectionHasOneProtocol) {
  Open(BatchSchedule({To(8)}), 3);
  Open(BatchSchedule({To(8)}), 3);
  EXPECT_EQ(opening_.obstacle(), "");
  Open(BatchSchedule({To(8)}), 4);
  EXPECT_EQ(opening_.obstacle(), "a connection is used with two protocols");
}

TEST_F(ConnectionOpeningTest, SwitchesMustNotCombineData) {
  Open(BatchSchedule({To(1, ConnectionUse::kSwitchOperand)}));
  EXPECT_EQ(opening_.obstacle(), "switches combine data");
}

// The stack of this fixture has no queue pairs.
class ConnectionOpeningWithoutQueuePairsTest : public ConnectionOpeningTest {
 protected:
  ConnectionOpeningWithoutQueuePairsTest()
      : ConnectionOpeningTest(testing::MakeFixedLatencyStack) {}
};

TEST_F(ConnectionOpeningWithoutQueuePairsTest, ANetworkConnectionMustBeAQueuePair) {
  Open(BatchSchedule({To(1)}));
  EXPECT_EQ(opening_.obstacle(), "");
  Open(BatchSchedule({To(8)}));
  EXPECT_EQ(opening_.obstacle(), "a connection consists of more than one queue pair");
}

}  // namespace
}  // namespace railyard
