// SPDX-License-Identifier: GPL-2.0-only
// Flows over NICs on one switch. A byte takes 20 ps at 400 Gb/s. Rates are rounded down, so that a
// flow may end a picosecond later than exact arithmetic says.
#include "simulator/flow/flow_network.h"

#include <cstdlib>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fabric/star_fixture.h"

namespace railyard::testing {
namespace {

constexpr int64_t kBytePs = 20;
constexpr uint64_t kBytes = 1'000'000;
constexpr int64_t kAlonePs = int64_t{kBytes} * kBytePs;
constexpr int64_t kRoundingPs = 2;

class FlowNetworkTest : public StarFixture, public PipeUser {
 protected:
  struct Event {
    uint32_t pipe;
    int64_t time_ps;
  };

  void Build(int nics) {
    for (int nic = 0; nic < nics; ++nic) AddNic();
    BuildStar({});
    flows_.emplace(graph_, network());
  }
  void TearDown() override {
    flows_.reset();
    StarFixture::TearDown();
  }
  FlowPath Path(size_t from, size_t to) const {
    return {.links = {Uplink(from), Downlink(to)}, .weight = 1};
  }
  PipeId Open(const FlowRoute& route) {
    return flows_->Open(*this, static_cast<uint32_t>(opened_++), route);
  }
  void Send(PipeId pipe, uint64_t bytes, int64_t latency_ps = 0) {
    flows_->Send(pipe,
                 {.wire_bytes = bytes, .payload_bytes = bytes - 1'000, .latency_ps = latency_ps});
  }
  void ExpectLeft(const std::vector<Event>& expected) const {
    ASSERT_EQ(left_.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(left_[i].pipe, expected[i].pipe);
      EXPECT_LE(std::abs(left_[i].time_ps - expected[i].time_ps), kRoundingPs) << left_[i].time_ps;
    }
  }

  void OnLeft(uint32_t pipe) override { left_.push_back({pipe, engine().NowPs()}); }
  void OnArrived(uint32_t pipe) override { arrived_.push_back({pipe, engine().NowPs()}); }

  std::optional<FlowNetwork> flows_;
  std::vector<Event> left_;
  std::vector<Event> arrived_;
  size_t opened_ = 0;
};

TEST_F(FlowNetworkTest, AMessageLeavesAtTheRateOfItsLinksAndArrivesALatencyLater) {
  Build(2);
  Send(Open({Path(0, 1)}), kBytes, 500);
  engine().Run();
  ExpectLeft({{0, kAlonePs}});
  ASSERT_EQ(arrived_.size(), 1u);
  EXPECT_EQ(arrived_[0].time_ps, left_[0].time_ps + 500);
}

// The second has half of the link for twice the first's time, and all of it for the rest.
TEST_F(FlowNetworkTest, FlowsShareALinkUntilOneHasLeft) {
  Build(3);
  Send(Open({Path(0, 2)}), kBytes);
  Send(Open({Path(1, 2)}), 2 * kBytes);
  engine().Run();
  ExpectLeft({{0, 2 * kAlonePs}, {1, 3 * kAlonePs}});
}

TEST_F(FlowNetworkTest, AFlowThatBeginsLaterTakesItsShareFromThenOn) {
  Build(3);
  const PipeId first = Open({Path(0, 2)});
  const PipeId second = Open({Path(1, 2)});
  Send(first, kBytes);
  At(kAlonePs / 2, [&] { Send(second, kBytes); });
  engine().Run();
  ExpectLeft({{0, kAlonePs * 3 / 2}, {1, 2 * kAlonePs}});
}

TEST_F(FlowNetworkTest, APipeSendsItsMessagesOneAfterTheOther) {
  Build(2);
  const PipeId pipe = Open({Path(0, 1)});
  Send(pipe, kBytes, 700);
  Send(pipe, kBytes / 2, 0);
  engine().Run();
  ExpectLeft({{0, kAlonePs}, {0, kAlonePs * 3 / 2}});
  EXPECT_EQ(arrived_.size(), 2u);
}

TEST_F(FlowNetworkTest, AMessageDoesNotOvertakeTheOneBeforeIt) {
  Build(2);
  const PipeId pipe = Open({Path(0, 1)});
  Send(pipe, kBytes, 10 * kAlonePs);
  Send(pipe, kBytes, 0);
  engine().Run();
  ASSERT_EQ(arrived_.size(), 2u);
  EXPECT_GT(arrived_[1].time_ps, arrived_[0].time_ps);
}

TEST_F(FlowNetworkTest, AStripedFlowHasTheRateOfItsPathsTogether) {
  Build(4);
  const PipeId pipe = Open({Path(0, 1), Path(2, 3)});
  EXPECT_EQ(flows_->RateAloneBps(pipe), 2 * kRate);
  Send(pipe, kBytes);
  engine().Run();
  ExpectLeft({{0, kAlonePs / 2}});
  for (const LinkId link : {Uplink(0), Downlink(1), Uplink(2), Downlink(3)}) {
    const LinkCounters counters = network().CountersOfLink(link);
    EXPECT_EQ(counters.payload_bytes, (kBytes - 1'000) / 2);
    EXPECT_EQ(counters.header_bytes, 500u);
  }
}

// Half of the bytes at 400 Gb/s, the rest at 100.
TEST_F(FlowNetworkTest, ALinkThatIsDegradedSlowsWhatIsUnderWay) {
  Build(2);
  Send(Open({Path(0, 1)}), kBytes);
  At(kAlonePs / 2, [this] { network().SetLinkRate(Uplink(0), kRate / 4); });
  engine().Run();
  ExpectLeft({{0, kAlonePs / 2 + 4 * kAlonePs / 2}});
}

// A time series reads the counters while messages are under way; what it reads changes no sum.
TEST_F(FlowNetworkTest, LinksCountWhatHasLeftOfAMessage) {
  Build(2);
  Send(Open({Path(0, 1)}), kBytes);
  const auto bytes = [this] {
    const LinkCounters counters = network().CountersOfLink(Uplink(0));
    return counters.payload_bytes + counters.header_bytes;
  };
  for (const uint64_t quarter : {1u, 2u, 3u}) {
    At(kAlonePs / 4 * static_cast<int64_t>(quarter), [&bytes, quarter] {
      EXPECT_NEAR(static_cast<double>(bytes()), static_cast<double>(quarter * kBytes / 4), 1);
    });
  }
  engine().Run();
  EXPECT_EQ(bytes(), kBytes);
  EXPECT_EQ(network().CountersOfLink(Uplink(0)).payload_bytes, kBytes - 1'000);
}

TEST_F(FlowNetworkTest, TheRateAloneFollowsTheLinks) {
  Build(2);
  const PipeId pipe = Open({Path(0, 1)});
  const uint64_t rate_bps = flows_->RateAloneBps(pipe);
  EXPECT_EQ(flows_->rate_changes(), 0u);
  At(1, [this] { network().SetLinkRate(Uplink(0), kRate / 4); });
  engine().Run();
  EXPECT_EQ(flows_->rate_changes(), 1u);
  EXPECT_EQ(flows_->RateAloneBps(pipe), rate_bps / 4);
}

// Four flows have a quarter of their common link each. The last of them leaves three quarters of
// its uplink, which the fifth takes; it ends three times the bytes in the same time.
TEST_F(FlowNetworkTest, RatesAreMaxMinFair) {
  Build(8);
  for (const size_t from : {size_t{0}, size_t{1}, size_t{2}}) Send(Open({Path(from, 4)}), kBytes);
  Send(Open({{.links = {Uplink(3), Downlink(4)}, .weight = 1}}), kBytes);
  Send(Open({{.links = {Uplink(3), Downlink(5)}, .weight = 1}}), 3 * kBytes);
  engine().Run();
  ASSERT_EQ(left_.size(), 5u);
  for (const Event& event : left_) {
    EXPECT_LE(std::abs(event.time_ps - 4 * kAlonePs), 2 * kRoundingPs) << event.time_ps;
  }
}

}  // namespace
}  // namespace railyard::testing
