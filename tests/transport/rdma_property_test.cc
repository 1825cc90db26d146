// SPDX-License-Identifier: GPL-2.0-only
// Random fabrics, settings, messages and outages: whatever happens, a run ends, no byte is lost
// track of, and a connection either delivers every message once and in order or breaks.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/nstime.h>

#include "simulator/transport/rdma/rdma_transport.h"
#include "tests/transport/transport_fixture.h"

namespace railyard {
namespace {

class RdmaPropertyTest : public testing::TransportFixture,
                         public ::testing::WithParamInterface<uint64_t> {
 protected:
  struct Connection {
    FlowId queue_pair;
    uint64_t messages = 0;
    uint64_t bytes = 0;
    uint64_t clear_to_send = 0;
  };

  // In [low, high].
  uint64_t Draw(uint64_t low, uint64_t high) { return low + random_() % (high - low + 1); }

  void BuildRandomFabric() {
    const auto leaves = static_cast<uint32_t>(Draw(1, 3));
    const auto delay = [this](uint64_t most_ns) {
      return static_cast<int64_t>(Draw(0, most_ns * 1'000));
    };
    const auto rate = [this] { return Draw(50, 800) * 1'000'000'000; };
    std::vector<DeviceId> leaf_ids;
    for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
      leaf_ids.push_back(AddSwitch("leaf" + std::to_string(leaf), delay(800)));
    }
    for (uint64_t spine = 0, spines = Draw(1, 3); spine < spines; ++spine) {
      const DeviceId id = AddSwitch("spine" + std::to_string(spine), delay(800));
      for (const DeviceId leaf : leaf_ids) {
        graph_.AddCable(leaf, id, {Tier::kLeafSpine, rate(), delay(300), 1});
      }
    }
    gpus_ = static_cast<uint32_t>(Draw(2, 4));
    for (uint32_t server = 0; server < gpus_; ++server) {
      const DeviceId gpu = AddInServer(DeviceKind::kGpu, static_cast<int32_t>(server), 0);
      const DeviceId nic =
          AddInServer(DeviceKind::kNic, static_cast<int32_t>(server), 0, delay(300));
      graph_.AddCable(gpu, nic, {Tier::kHost, rate(), delay(300), 1});
      graph_.AddCable(nic, leaf_ids[Draw(0, leaves - 1)], {Tier::kNicLeaf, rate(), delay(300), 1});
    }
  }

  void BuildRandomTransports() {
    NicSettings nic;
    nic.mtu_bytes = 256u << Draw(0, 4);
    const uint64_t window_packets = Draw(1, 64);
    nic.window_bytes = window_packets * nic.mtu_bytes;
    nic.ack_every_packets = static_cast<uint32_t>(Draw(1, window_packets));
    nic.ib_timeout = static_cast<uint32_t>(Draw(4, 8));
    nic.ib_retry_cnt = static_cast<uint32_t>(Draw(0, 7));
    Adjust(nic);
    BuildTransports(nic);
    for (uint32_t c = 0, count = static_cast<uint32_t>(Draw(1, 5)); c < count; ++c) {
      const auto from = static_cast<uint32_t>(Draw(0, gpus_ - 1));
      const auto to = static_cast<uint32_t>((from + Draw(1, gpus_ - 1)) % gpus_);
      connections_.push_back({.queue_pair = Open(c, GpuIndex{from}, GpuIndex{to}, random_())});
    }
  }

  // Lets a test change the settings.
  virtual void Adjust(NicSettings& /*nic*/) {}

  void PostAtRandom() {
    for (Connection& connection : connections_) {
      const uint64_t count = Draw(1, 40);
      for (uint64_t m = 0; m < count; ++m) {
        const uint64_t bytes = Draw(0, 3) == 0 ? Draw(0, 100'000) : Draw(0, 5'000);
        At(RandomTime(), [this, &connection, bytes] {
          rdma_->Post(connection.queue_pair, PostedMessage::OfData(bytes));
          if (Draw(0, 1) == 0) {
            rdma_->Grant(connection.queue_pair, true);
            ++connection.clear_to_send;
          }
        });
        connection.bytes += bytes;
      }
      connection.messages = count;
    }
  }

  // Links of any tier `host` allows, one direction at a time, for as short as a packet or as long
  // as several timers; routing learns of some.
  void CutAtRandom(bool host) {
    for (uint64_t cut = 0, cuts = Draw(0, 12); cut < cuts; ++cut) {
      const auto link = static_cast<LinkId>(Draw(0, graph_.link_count() - 1));
      if (!host && graph_.link(link).tier == Tier::kHost) continue;
      const int64_t from_ps = RandomTime();
      const int64_t most_ps = Draw(0, 1) == 0 ? 1'000'000 : 1'000'000'000;
      const int64_t until_ps =
          from_ps + static_cast<int64_t>(Draw(1, static_cast<uint64_t>(most_ps)));
      Down(link, from_ps, until_ps);
      if (Draw(0, 2) > 0) continue;
      At(from_ps + 5'000'000, [this, link] { Route(link, false); });
      At(until_ps + 5'000'000, [this, link] { Route(link, true); });
    }
  }
  void Route(LinkId link, bool up) {
    routing_->SetLinkUp(link, up);
    rdma_->OnRoutesChanged();
  }
  // Posts and cuts crowd into the first 200 us.
  int64_t RandomTime() { return static_cast<int64_t>(Draw(0, 200'000'000)); }

  // Into memory come the packets of a queue once each and in their order, whatever was repeated.
  virtual void ExpectInTurn(const Packet& packet) {
    EXPECT_EQ(packet.sequence, next_in_memory_[packet.flow]++);
  }
  void OnPacketInMemory(PacketId index) override {
    ExpectInTurn(network().packet(index));
    TransportFixture::OnPacketInMemory(index);
  }
  static uint64_t Count(const std::vector<Reported>& reported, uint32_t connection) {
    return static_cast<uint64_t>(
        std::count_if(reported.begin(), reported.end(),
                      [connection](const Reported& t) { return t.connection == connection; }));
  }
  // -1: never.
  static int64_t LastPs(const std::vector<Reported>& reported, uint32_t connection) {
    int64_t last_ps = -1;
    for (const Reported& t : reported) {
      if (t.connection == connection) last_ps = t.time_ps;
    }
    return last_ps;
  }
  bool IsBroken(uint32_t connection) const {
    return std::any_of(errors_.begin(), errors_.end(),
                       [connection](const ReportedError& e) { return e.connection == connection; });
  }

  void RunToTheEnd() {
    // Far beyond all timers and retries: 8 x 1.05 ms after the last progress a cut allows.
    ns3::Simulator::Stop(ns3::Seconds(1));
    for (int64_t time_ps = 0; time_ps < 300'000'000; time_ps += 10'000'000) {
      At(time_ps, [this] { ExpectConservation(); });
    }
    engine().Run();
    EXPECT_LT(engine().EventCount(), 1'000'000u);
    EXPECT_EQ(network().live_packets(), 0u);
    ExpectConservation();
  }

  void ExpectDeliveredOrBroken() {
    uint64_t bytes = 0;
    bool any_broken = false;
    for (uint32_t c = 0; c < connections_.size(); ++c) {
      SCOPED_TRACE("connection " + std::to_string(c));
      const Connection& connection = connections_[c];
      bytes += connection.bytes;
      EXPECT_LE(Count(delivered_, c), connection.messages);
      EXPECT_LE(Count(completed_, c), connection.messages);
      EXPECT_LE(Count(clear_to_send_, c), connection.clear_to_send);
      if (IsBroken(c)) {
        any_broken = true;
        continue;
      }
      EXPECT_EQ(Count(delivered_, c), connection.messages);
      EXPECT_EQ(Count(completed_, c), connection.messages);
      EXPECT_EQ(Count(clear_to_send_, c), connection.clear_to_send);
      // Losses that were repaired by packets sent again were reported as repaired.
      EXPECT_FALSE(queues_->HasUnrepairedLoss(connection.queue_pair));
      EXPECT_LE(LastPs(retransmitted_, c), LastPs(recovered_, c));
    }
    EXPECT_LE(network().counters().delivered_bytes, bytes);
    if (any_broken) return;
    EXPECT_EQ(network().counters().delivered_bytes, bytes);
  }

  std::mt19937_64 random_{GetParam()};
  uint32_t gpus_ = 0;
  std::vector<Connection> connections_;
  std::map<uint32_t, uint32_t> next_in_memory_;
};

TEST_P(RdmaPropertyTest, WithoutOutagesEverythingIsDelivered) {
  BuildRandomFabric();
  BuildRandomTransports();
  PostAtRandom();
  RunToTheEnd();
  EXPECT_TRUE(lost_.empty());
  EXPECT_TRUE(errors_.empty());
  ExpectDeliveredOrBroken();
}

TEST_P(RdmaPropertyTest, WithOutagesEveryConnectionDeliversAllInOrderOrBreaks) {
  BuildRandomFabric();
  BuildRandomTransports();
  PostAtRandom();
  CutAtRandom(false);
  RunToTheEnd();
  ExpectDeliveredOrBroken();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RdmaPropertyTest, ::testing::Range<uint64_t>(0, 100));

// A packet lost on its way to memory leaves a hole that the connection's end accounts for.
class RdmaHostPropertyTest : public RdmaPropertyTest {
 protected:
  void ExpectInTurn(const Packet& packet) override {
    uint32_t& next = next_in_memory_[packet.flow];
    EXPECT_GE(packet.sequence, next);
    EXPECT_TRUE(packet.sequence == next || IsBroken(rdma_->UserOf(QueueId{packet.flow}).number));
    next = packet.sequence + 1;
  }
};

TEST_P(RdmaHostPropertyTest, WithOutagesOfHostLinksTooEveryConnectionDeliversAllOrBreaks) {
  BuildRandomFabric();
  BuildRandomTransports();
  PostAtRandom();
  CutAtRandom(true);
  RunToTheEnd();
  ExpectDeliveredOrBroken();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RdmaHostPropertyTest, ::testing::Range<uint64_t>(1'000, 1'050));

// Packets kept beyond gaps reach memory out of order, but once.
class RdmaSelectivePropertyTest : public RdmaPropertyTest {
 protected:
  void Adjust(NicSettings& nic) override {
    nic.recovery = Draw(0, 3) == 0 ? Recovery::kGoBackN : Recovery::kSelectiveRepeat;
    nic.reorder_tolerance_packets = static_cast<uint32_t>(Draw(0, 1) * Draw(0, 63));
  }
  void ExpectInTurn(const Packet& packet) override {
    EXPECT_TRUE(in_memory_.insert({packet.flow, packet.sequence}).second);
  }
  void LoseAtRandom() {
    for (LinkId link{0}; link < graph_.link_count(); ++link) {
      if (graph_.link(link).tier == Tier::kHost) continue;
      network().SetLossFilter(link, [this](const Packet&) { return Draw(0, 199) == 0; });
    }
  }

  std::set<std::pair<uint32_t, uint32_t>> in_memory_;
};

TEST_P(RdmaSelectivePropertyTest, WithLossesAndOutagesEveryConnectionDeliversAllOnceOrBreaks) {
  BuildRandomFabric();
  BuildRandomTransports();
  PostAtRandom();
  CutAtRandom(false);
  LoseAtRandom();
  RunToTheEnd();
  ExpectDeliveredOrBroken();
}

INSTANTIATE_TEST_SUITE_P(Seeds, RdmaSelectivePropertyTest,
                         ::testing::Range<uint64_t>(2'000, 2'100));

}  // namespace
}  // namespace railyard
