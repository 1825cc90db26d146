// SPDX-License-Identifier: GPL-2.0-only
// Turns on the ports of a NIC, without packets: the test takes the turns, each as long as a packet.
#include "simulator/transport/nic/nic_ports.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric/network_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kTurnBytes = 1'106;
constexpr int64_t kTurnPs = int64_t{kTurnBytes} * 20;  // at 400 Gb/s
constexpr QueueId kPlain{0};
constexpr QueueId kEarly{1};
constexpr QueueId kLate{2};

// gpu0 - nic0 = {leaf0, leaf1}: a NIC with two wires of 400 Gb/s.
class NicPortsTest : public testing::NetworkFixture {
 protected:
  struct Turn {
    int64_t time_ps;
    QueueId queue;
    bool operator==(const Turn&) const = default;
  };

  void SetUp() override {
    nic_ = AddInServer(DeviceKind::kNic, 0, 0);
    graph_.AddCable(AddInServer(DeviceKind::kGpu, 0, 0), nic_,
                    {Tier::kHost, 1'600'000'000'000, 0, 1});
    for (const char* const leaf : {"leaf0", "leaf1"}) {
      graph_.AddCable(nic_, AddSwitch(leaf), {Tier::kNicLeaf, 400'000'000'000, 0, 1});
    }
    BuildNetwork();
    ports_.emplace(graph_, network());
    ports_->AddNic(nic_, network(), {.full_wire_bytes = kTurnBytes});
    queues_.resize(3);
    engine().Register(event_order::kQueuePort, {.name = "turns"}, &NicPortsTest::TakeTurn, this);
  }

  static void TakeTurn(void* self, uint32_t id) {
    auto& test = *static_cast<NicPortsTest*>(self);
    NicPort& port = (*test.ports_)[id];
    if (port.event_ps != engine().NowPs()) return;
    test.ports_->TakePaced(port, test.queues_);
    test.turns_.push_back({engine().NowPs(), NicPorts::TakeFirst(port, test.queues_)});
    port.free_ps = engine().NowPs() + kTurnPs;
    port.event_ps = kNeverPs;
    test.ports_->ScheduleNextTurn(id);
  }

  DeviceId nic_{0};
  std::optional<NicPorts> ports_;
  std::vector<SendQueue> queues_;
  std::vector<Turn> turns_;
};

TEST_F(NicPortsTest, EachWireHasAPort) {
  const LinkId first = Link("server0/nic0", "leaf0");
  const LinkId second = Link("server0/nic0", "leaf1");
  EXPECT_EQ(ports_->FirstPortOf(nic_), ports_->PortOf(first));
  EXPECT_EQ((*ports_)[ports_->PortOf(first)].wire, first);
  EXPECT_EQ((*ports_)[ports_->PortOf(second)].wire, second);
  EXPECT_EQ((*ports_)[1].full_packet_ps, kTurnPs);
  EXPECT_EQ((*ports_)[1].burst_packets, 1u);
  EXPECT_EQ(ports_->PortOf(graph_.ReverseLink(first)), NicPorts::kNone) << "the leaf's";
  EXPECT_EQ(ports_->FirstPortOf(*graph_.FindDevice("leaf0")), NicPorts::kNone);
}

// A paced queue whose time comes while the wire is busy is next; the port sleeps until the time of
// the other.
TEST_F(NicPortsTest, PacedQueuesHaveTheirTurnsFromTheirTimesOn) {
  NicPort& port = (*ports_)[0];
  NicPorts::AddPaced(port, {.time_ps = 3 * kTurnPs, .queue = kLate});
  NicPorts::AddPaced(port, {.time_ps = kTurnPs / 2, .queue = kEarly});
  NicPorts::Append(port, kPlain, queues_);
  EXPECT_EQ(port.next_paced_ps, kTurnPs / 2);
  ports_->ScheduleNextTurn(0);
  engine().Run();
  EXPECT_THAT(turns_,
              ElementsAre(Turn{0, kPlain}, Turn{kTurnPs, kEarly}, Turn{3 * kTurnPs, kLate}));
  EXPECT_EQ(port.next_paced_ps, kNeverPs);
  EXPECT_EQ(port.first_active, QueueId::kNone);
}

// Queues that are due at once go to the end of the ring, by time and then by number.
TEST_F(NicPortsTest, QueuesThatAreDueFollowTheRing) {
  NicPort& port = (*ports_)[0];
  NicPorts::AddPaced(port, {.time_ps = 0, .queue = kLate});
  NicPorts::AddPaced(port, {.time_ps = 0, .queue = kEarly});
  NicPorts::Append(port, kPlain, queues_);
  ports_->ScheduleNextTurn(0);
  engine().Run();
  EXPECT_THAT(turns_,
              ElementsAre(Turn{0, kPlain}, Turn{kTurnPs, kEarly}, Turn{2 * kTurnPs, kLate}));
}

TEST_F(NicPortsTest, AnEarlierTurnReplacesALaterOne) {
  NicPort& port = (*ports_)[0];
  NicPorts::AddPaced(port, {.time_ps = 5 * kTurnPs, .queue = kLate});
  ports_->ScheduleNextTurn(0);
  At(kTurnPs, [&] {
    NicPorts::AddPaced(port, {.time_ps = 2 * kTurnPs, .queue = kEarly});
    ports_->ScheduleNextTurn(0);
  });
  engine().Run();
  EXPECT_THAT(turns_, ElementsAre(Turn{2 * kTurnPs, kEarly}, Turn{5 * kTurnPs, kLate}));
}

TEST_F(NicPortsTest, AReleasedLinkWakesItsPortIfAQueueWaits) {
  const LinkId wire = Link("server0/nic0", "leaf1");
  ports_->OnLinkReleased(wire);
  ports_->OnLinkReleased(graph_.ReverseLink(wire));
  NicPorts::Append((*ports_)[1], kPlain, queues_);
  At(7, [&] { ports_->OnLinkReleased(wire); });
  engine().Run();
  EXPECT_THAT(turns_, ElementsAre(Turn{7, kPlain}));
}

}  // namespace
}  // namespace railyard
