// SPDX-License-Identifier: GPL-2.0-only
// Texts about what queue pairs wait for, from records made by hand.
#include "simulator/transport/nic/queue_obstacles.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric/network_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr FlowId kPair{0};

// nic0 - leaf - nic1, and five more NICs at the leaf.
class QueueObstaclesTest : public testing::NetworkFixture {
 protected:
  void SetUp() override {
    const DeviceId leaf = AddSwitch("leaf");
    for (int32_t server = 0; server < 7; ++server) {
      const DeviceId nic = AddInServer(DeviceKind::kNic, server, 0);
      graph_.AddCable(nic, leaf, {Tier::kNicLeaf, 400'000'000'000, 0, 1});
    }
    BuildNetwork();
    ends_.source_nic = *graph_.FindDevice("server0/nic0");
    ends_.destination_nic = *graph_.FindDevice("server1/nic0");
    const PathRef there =
        network().AddPath({Link("server0/nic0", "leaf"), Link("leaf", "server1/nic0")});
    const PathRef back =
        network().AddPath({Link("server1/nic0", "leaf"), Link("leaf", "server0/nic0")});
    senders_.resize(2);
    receivers_.resize(2);
    SetPaths(DataQueueOf(kPair), there, back);
    SetPaths(GrantQueueOf(kPair), back, there);
  }
  void SetPaths(QueueId queue, PathRef packets, PathRef acks) {
    senders_[queue].first_link = packets.first;
    senders_[queue].hop_count = packets.hop_count;
    receivers_[queue].ack_first_link = acks.first;
    receivers_[queue].ack_hop_count = acks.hop_count;
  }
  void Fail(const std::string& from, const std::string& to) {
    network().SetLinkUp(Link(from, to), false);
  }
  QueueTables Tables() { return {graph_, network(), senders_, receivers_}; }
  std::vector<std::string> Obstacles() { return ObstaclesOf(Tables(), kPair, ends_); }

  PairEnds ends_;
  std::vector<SendQueue> senders_;
  std::vector<ReceiveQueue> receivers_;
};

TEST_F(QueueObstaclesTest, AQueuePairIsUnderWayWhileEitherOfItsQueuesIs) {
  EXPECT_FALSE(IsUnderWay(Tables(), kPair));
  for (SendQueue& queue : senders_) {
    queue.posted_end = 3;
    EXPECT_TRUE(IsUnderWay(Tables(), kPair));
    queue.unacknowledged = 3;
    EXPECT_FALSE(IsUnderWay(Tables(), kPair));
  }
}

TEST_F(QueueObstaclesTest, NamesEachFailedLinkOfWhatIsUnderWayOnce) {
  Fail("server0/nic0", "leaf");
  Fail("leaf", "server0/nic0");
  EXPECT_THAT(Obstacles(), IsEmpty()) << "nothing waits";
  for (SendQueue& queue : senders_) queue.posted_end = 1;
  EXPECT_THAT(Obstacles(), ElementsAre("server0/nic0>leaf is down", "leaf>server0/nic0 is down"));
  network().SetLinkUp(Link("server0/nic0", "leaf"), true);
  network().SetPauseStorm(Link("server0/nic0", "leaf"), true);
  EXPECT_THAT(Obstacles(), ElementsAre("server0/nic0>leaf is paused", "leaf>server0/nic0 is down"));
}

TEST_F(QueueObstaclesTest, AMissingRouteIsDueToFailuresAtItsEndsOrElseToOthers) {
  SetPaths(DataQueueOf(kPair), {}, {});
  senders_[DataQueueOf(kPair)].posted_end = 1;
  EXPECT_THAT(Obstacles(), ElementsAre("there is no route yet"));
  Fail("server2/nic0", "leaf");
  EXPECT_THAT(Obstacles(), ElementsAre("there is no route: server2/nic0>leaf is down"));
  for (const char* const nic : {"server3/nic0", "server4/nic0", "server5/nic0", "server6/nic0"}) {
    Fail(nic, "leaf");
  }
  EXPECT_EQ(WhyNoRoute(Tables(), ends_),
            "there is no route: server2/nic0>leaf is down, server3/nic0>leaf is down, "
            "server4/nic0>leaf is down, server5/nic0>leaf is down, and others");
  Fail("leaf", "server1/nic0");
  EXPECT_EQ(WhyNoRoute(Tables(), ends_), "there is no route: leaf>server1/nic0 is down");
}

TEST_F(QueueObstaclesTest, TheQueueWithMoreRetriesIsNamedIfItWaits) {
  SendQueue& data = senders_[DataQueueOf(kPair)];
  SendQueue& grants = senders_[GrantQueueOf(kPair)];
  data.posted_end = grants.posted_end = 1;
  EXPECT_FALSE(MostTriedQueue(Tables(), kPair));
  grants.retries = 1;
  EXPECT_EQ(MostTriedQueue(Tables(), kPair), GrantQueueOf(kPair));
  data.retries = 1;
  EXPECT_EQ(MostTriedQueue(Tables(), kPair), DataQueueOf(kPair));
  data.unacknowledged = 1;
  EXPECT_EQ(MostTriedQueue(Tables(), kPair), GrantQueueOf(kPair));
}

}  // namespace
}  // namespace railyard
