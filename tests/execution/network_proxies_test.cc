// SPDX-License-Identifier: GPL-2.0-only
// Proxies without lanes: the test stages messages and grants them by hand, over a transport that
// only tests have.
#include "simulator/execution/proxies/network_proxies.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/execution/parts_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kBytes = 12'500;
constexpr int64_t kTransferPs = kPsPerUs;  // 12,500 B at 100 Gb/s

class NetworkProxiesTest : public testing::PartsFixture {
 protected:
  explicit NetworkProxiesTest(const ProxyCosts& costs = kProxyCosts)
      : PartsFixture(testing::MakeFixedLatencyStack, costs) {
    sink_.on_delivered = [this](ConnectionId id) {
      proxies_.OnDelivered(id);
      const MessageSlots& slots = table_->slots(id);
      seen_ps_.push_back(slots.time_ps[(slots.delivered - 1u) % kConnectionSlots]);
    };
    sink_.on_completed = [this](ConnectionId id) { proxies_.OnCompleted(id); };
  }

  // A CTA has copied a message into the next slot, now.
  void Stage(ConnectionId id) {
    MessageSlots& slots = table_->slots(id);
    const uint32_t slot = slots.posted++ % kConnectionSlots;
    table_->staged(table_->connection(id)).bytes[slot] = kBytes;
    slots.costs = costs_;
    proxies_.Stage(id, costs_, engine().NowPs());
  }

  std::vector<int64_t> seen_ps_;
};

TEST_F(NetworkProxiesTest, AMessageIsPostedWhenItIsSeenAndGranted) {
  const ConnectionId id = Between(0, 8);
  Stage(id);
  engine().Run();
  EXPECT_THAT(seen_ps_, IsEmpty());
  EXPECT_EQ(table_->slots(id).progress.staged, 1);
  EXPECT_EQ(table_->slots(id).progress.sent, 0);
  const int64_t granted_ps = engine().NowPs();
  EXPECT_EQ(granted_ps, kNetworkStepPs / 2);
  proxies_.OnGranted(id);
  engine().Run();
  EXPECT_THAT(seen_ps_, ElementsAre(granted_ps + kPostPs + kTransferPs + testing::kFlowLatencyPs +
                                    kArrivalPs + kNetworkStepPs / 2));
  EXPECT_EQ(table_->slots(id).progress.completed, 1);
  EXPECT_EQ(table_->slots(id).sizes[0], MarkOf(kBytes));
}

constexpr int64_t kCompletionPs = 300 * kPsPerNs;

class CompletionsTest : public NetworkProxiesTest {
 protected:
  CompletionsTest()
      : NetworkProxiesTest(
            {.post_ps = kPostPs, .arrival_ps = kArrivalPs, .completion_ps = kCompletionPs}) {}
};

// Both proxies take note of the four parts of each message, one message after the other.
TEST_F(CompletionsTest, EachPartOfAMessageOccupiesTheProxiesOfBothEnds) {
  const ConnectionId id = Between(0, 8);
  for (int i = 0; i < 2; ++i) {
    proxies_.OnGranted(id);
    Stage(id);
  }
  engine().Run();
  const int64_t posted_ps = kPostPs + 4 * kCompletionPs;
  const int64_t first_ps = kNetworkStepPs + posted_ps + kTransferPs + testing::kFlowLatencyPs +
                           kArrivalPs + 4 * kCompletionPs;
  EXPECT_THAT(seen_ps_, ElementsAre(first_ps, first_ps + posted_ps));
}

// One proxy posts for both connections, so the second message leaves one post later; two proxies
// see them arrive.
TEST_F(NetworkProxiesTest, PostsOfOneProxyFollowOneAnother) {
  const ConnectionId first = Between(0, 8);
  const ConnectionId second = Between(0, 8, 1);
  for (const ConnectionId id : {first, second}) {
    proxies_.OnGranted(id);
    Stage(id);
  }
  engine().Run();
  const int64_t alone_ps =
      kNetworkStepPs + kPostPs + kTransferPs + testing::kFlowLatencyPs + kArrivalPs;
  EXPECT_THAT(seen_ps_, ElementsAre(alone_ps, alone_ps + kPostPs));
}

TEST_F(NetworkProxiesTest, ProxiesOfTwoGpusDoNotWaitForEachOther) {
  const ConnectionId first = Between(0, 8);
  const ConnectionId second = Between(1, 9);
  for (const ConnectionId id : {first, second}) {
    proxies_.OnGranted(id);
    Stage(id);
  }
  engine().Run();
  const int64_t alone_ps =
      kNetworkStepPs + kPostPs + kTransferPs + testing::kFlowLatencyPs + kArrivalPs;
  EXPECT_THAT(seen_ps_, ElementsAre(alone_ps, alone_ps));
}

// A lane that waits for a slot is woken by the acknowledgement, and one that waits for data when
// it is seen.
TEST_F(NetworkProxiesTest, LanesThatWaitAreWoken) {
  const ConnectionId id = Between(0, 8);
  table_->slots(id).sender = LaneIndex{4};
  table_->slots(id).sender_waits = true;
  proxies_.OnGranted(id);
  Stage(id);
  engine().Run();
  EXPECT_THAT(Woken(), ElementsAre(4));
  EXPECT_FALSE(table_->slots(id).sender_waits);
  EXPECT_TRUE(wakes_.empty());
}

TEST_F(NetworkProxiesTest, NothingOfAClosedConnectionIsPosted) {
  const ConnectionId id = Between(0, 8);
  proxies_.OnGranted(id);
  Stage(id);
  table_->Close(PartIndex{3});
  engine().Run();
  EXPECT_EQ(table_->slots(id).progress.sent, 0);
}

}  // namespace
}  // namespace railyard
