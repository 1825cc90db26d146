// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/recovery_clocks.h"

#include <gtest/gtest.h>

#include "simulator/transport/contract/payload_count.h"

namespace railyard {
namespace {

constexpr QueueId kQueue{1};

class RecoveryClocksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    clocks_.AddQueue();
    clocks_.AddQueue();
  }
  void ExpectTimes(int64_t timeout_ps, int64_t retransmission_ps) const {
    EXPECT_EQ(clocks_.TimesOf(kQueue).timeout_ps, timeout_ps);
    EXPECT_EQ(clocks_.TimesOf(kQueue).retransmission_ps, retransmission_ps);
  }

  RecoveryClocks clocks_;
};

TEST_F(RecoveryClocksTest, PhasesFollowEachOtherFromTheFirstLossOn) {
  clocks_.Begin(kQueue, 100);
  clocks_.Begin(kQueue, 130);  // of the same recovery
  clocks_.Clock(kQueue, &RecoveryTimes::timeout_ps, 150);
  ExpectTimes(50, 0);
  clocks_.Clock(kQueue, &RecoveryTimes::timeout_ps, 180);
  EXPECT_EQ(clocks_.TimesUntil(kQueue, 187).retransmission_ps, 7);
  ExpectTimes(80, 0);
  clocks_.Clock(kQueue, &RecoveryTimes::retransmission_ps, 190);
  clocks_.End(kQueue);
  ExpectTimes(80, 10);
  EXPECT_EQ(clocks_.TimesOf(QueueId{0}).timeout_ps, 0) << "another queue's";
}

TEST_F(RecoveryClocksTest, WithoutALossNothingCounts) {
  clocks_.Clock(kQueue, &RecoveryTimes::timeout_ps, 150);
  EXPECT_EQ(clocks_.TimesUntil(kQueue, 200).retransmission_ps, 0);
  // A loss that was repaired without a retransmission costs nothing.
  clocks_.Begin(kQueue, 300);
  clocks_.End(kQueue);
  clocks_.Clock(kQueue, &RecoveryTimes::timeout_ps, 400);
  ExpectTimes(0, 0);
}

TEST(PayloadCountTest, CountsTheFlowsThatItFollows) {
  PayloadCount count;
  EXPECT_FALSE(count.follows_any());
  count.Add(FlowId{0}, 1);
  count.Follow(FlowId{2});
  EXPECT_TRUE(count.follows_any());
  for (const uint32_t flow : {1U, 2U, 2U, 3U}) count.Add(FlowId{flow}, 10);
  EXPECT_EQ(count.bytes(), 20u);
}

// The replay cache adds what its episode delivered.
TEST(PayloadCountTest, ReplayingAddsToTheCount) {
  PayloadCount count;
  count.Follow(FlowId{0});
  count.Add(FlowId{0}, 5);
  const CountChanges changes = {{0, 30}};
  StateArchive archive(changes);
  count.Visit(archive);
  EXPECT_EQ(count.bytes(), 35u);
}

}  // namespace
}  // namespace railyard
