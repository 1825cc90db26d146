// SPDX-License-Identifier: GPL-2.0-only
// Critical paths alone: the test says what lanes and proxies would say of slices and messages.
#include "simulator/execution/paths/path_tracer.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/units/units.h"
#include "tests/execution/connection_fixture.h"

namespace railyard {
namespace {

using ::testing::ElementsAre;

// A transport whose flow recovers from losses for as long as the test says.
class RecoveringTransport final : public Transport {
 public:
  FlowId Open(const SinkRef& /*sink*/, GpuIndex /*source_gpu*/, GpuIndex /*destination_gpu*/,
              uint64_t /*entropy*/) override {
    return FlowId{0};
  }
  void Post(FlowId /*flow*/, const PostedMessage& /*message*/) override {}
  void Grant(FlowId /*flow*/, bool /*tells_sender*/) override {}
  void Close(FlowId /*flow*/) override {}
  std::vector<LinkId> LinksOf(FlowId /*flow*/) const override { return links; }
  std::vector<LinkShare> LinkSharesOf(FlowId /*flow*/) const override { return {}; }
  RecoveryTimes RecoveryOf(FlowId /*flow*/, bool /*of_data*/) const override { return recovery; }
  FlowStatus StatusOf(FlowId /*flow*/) const override { return {}; }

  RecoveryTimes recovery;
  std::vector<LinkId> links;
};

class PathTracerTest : public testing::ConnectionFixture {
 protected:
  static constexpr int64_t kUnitPs = kPsPerNs;

  PathTracerTest() : tracer_(engine(), *table_) {}

  // A lane of a GPU begins now. The lane and its channel have the GPU's number.
  void Start(uint32_t gpu) {
    tracer_.StartChannel(ChannelIndex{gpu}, GpuIndex{gpu}, CollectiveIndex{0});
    tracer_.StartLane(LaneIndex{gpu}, ChannelIndex{gpu});
  }
  // A slice of that lane, which takes as long as usual.
  void Slice(uint32_t gpu, int64_t start_ps, int64_t done_ps,
             const std::vector<ConnectionId>& receives = {},
             const std::vector<ConnectionId>& sends = {}) {
    tracer_.OnSlice({.lane = LaneIndex{gpu},
                     .gpu = GpuIndex{gpu},
                     .receives = receives,
                     .sends = sends,
                     .in_flight_messages = 1,
                     .start_ps = start_ps,
                     .done_ps = done_ps,
                     .usual_ps = done_ps - start_ps});
  }
  const CriticalPath& PathOf(uint32_t gpu) { return tracer_.OfLane(LaneIndex{gpu}); }
  // GPU 0 posts a message to GPU 8 now, at time 0.
  ConnectionId PostOver(Transport& transport) {
    const ConnectionId id = Between(0, 8);
    table_->MoveTo(id, transport, FlowId{0});
    for (const uint32_t gpu : {0u, 8u}) Start(gpu);
    tracer_.OnSent(LaneIndex{0}, id, 0);
    tracer_.OnPosted(id, 0);
    ++table_->slots(id).progress.sent;
    return id;
  }
  // The message arrives now, and GPU 8 takes it.
  const CriticalPath& Receive(ConnectionId id) {
    tracer_.OnArrived(id, 0, engine().NowPs());
    Slice(8, engine().NowPs(), engine().NowPs(), {id});
    return PathOf(8);
  }

  PathTracer tracer_;
};

// Work, transit, rerouted, timeout, retransmission, slow peer: as PathCause has them.
TEST_F(PathTracerTest, ThreeSlicesInAChainAddUpToItsTime) {
  const ConnectionId first = Between(0, 1);
  const ConnectionId second = Between(1, 2);
  for (const uint32_t gpu : {0u, 1u, 2u}) Start(gpu);
  Slice(0, 0, 3 * kUnitPs, {}, {first});
  tracer_.OnSent(LaneIndex{0}, first, 0);
  tracer_.OnSeen(first, 0, 5 * kUnitPs);
  Slice(1, 6 * kUnitPs, 10 * kUnitPs, {first}, {second});
  tracer_.OnSent(LaneIndex{1}, second, 0);
  tracer_.OnSeen(second, 0, 13 * kUnitPs);
  Slice(2, 13 * kUnitPs, 15 * kUnitPs, {second});
  tracer_.EndLane(LaneIndex{2}, ChannelIndex{2});
  const CriticalPath& path = tracer_.OfChannel(ChannelIndex{2});
  EXPECT_THAT(path.spent_ps, ElementsAre((3 + 1 + 4 + 2) * kUnitPs, (2 + 3) * kUnitPs, 0, 0, 0, 0));
  EXPECT_EQ(path.EndPs(), 15 * kUnitPs);
  EXPECT_EQ(path.origin_gpu, 0u);
}

TEST_F(PathTracerTest, ASliceContinuesBehindTheLastOfItsMessages) {
  const ConnectionId early = Between(0, 2);
  const ConnectionId late = Between(1, 2);
  for (const uint32_t gpu : {0u, 1u, 2u}) Start(gpu);
  Slice(0, 0, 6 * kUnitPs);
  tracer_.OnSent(LaneIndex{0}, early, 0);
  tracer_.OnSeen(early, 0, 7 * kUnitPs);
  Slice(1, 0, 2 * kUnitPs);
  tracer_.OnSent(LaneIndex{1}, late, 0);
  tracer_.OnSeen(late, 0, 9 * kUnitPs);
  Slice(2, 9 * kUnitPs, 12 * kUnitPs, {late, early});
  EXPECT_EQ(PathOf(2).origin_gpu, 1u);
  EXPECT_THAT(PathOf(2).spent_ps, ElementsAre((2 + 3) * kUnitPs, 7 * kUnitPs, 0, 0, 0, 0));
  // A message that is there before the lane is free does not hold it up.
  Slice(0, 6 * kUnitPs, 11 * kUnitPs);
  tracer_.OnSent(LaneIndex{0}, early, 0);
  tracer_.OnSeen(early, 0, 11 * kUnitPs);
  Slice(2, 12 * kUnitPs, 13 * kUnitPs, {early});
  EXPECT_EQ(PathOf(2).origin_gpu, 1u);
}

// The receiver has the first message for a long time, and there is one slot.
TEST_F(PathTracerTest, ASenderContinuesBehindTheFlagThatFreesItsSlot) {
  const ConnectionId id = Between(0, 1);
  const int64_t flag_ps = 2 * ServerSpec{}.nvlink_delay_ps + ServerSpec{}.nvswitch_latency_ps;
  for (const uint32_t gpu : {0u, 1u}) Start(gpu);
  Slice(0, 0, 5 * kUnitPs, {}, {id});
  ++table_->slots(id).posted;
  Slice(1, 0, 20 * kUnitPs);
  tracer_.OnTaken(LaneIndex{1}, id, 0, 20 * kUnitPs);
  const int64_t start_ps = 20 * kUnitPs + flag_ps;
  Slice(0, start_ps, start_ps + 5 * kUnitPs, {}, {id});
  EXPECT_EQ(PathOf(0).origin_gpu, 1u);
  EXPECT_THAT(PathOf(0).spent_ps, ElementsAre((20 + 5) * kUnitPs, flag_ps, 0, 0, 0, 0));
}

TEST_F(PathTracerTest, WhatASlowGpuTakesLongerIsItsFault) {
  Start(0);
  tracer_.OnSlice({.lane = LaneIndex{0},
                   .gpu = GpuIndex{0},
                   .receives = {},
                   .sends = {},
                   .start_ps = 0,
                   .done_ps = 8 * kUnitPs,
                   .usual_ps = 3 * kUnitPs});
  // Half of the overhead of 4 between two slices.
  tracer_.OnSlice({.lane = LaneIndex{0},
                   .gpu = GpuIndex{0},
                   .receives = {},
                   .sends = {},
                   .start_ps = 12 * kUnitPs,
                   .done_ps = 15 * kUnitPs,
                   .slower_overhead_ps = 2 * kUnitPs,
                   .usual_ps = 3 * kUnitPs});
  EXPECT_THAT(PathOf(0).spent_ps,
              ElementsAre((3 + 2 + 3) * kUnitPs, 0, 0, 0, 0, (5 + 2) * kUnitPs));
  EXPECT_EQ(PathOf(0).worst_from, 0u);
  EXPECT_EQ(PathOf(0).worst_to, 0u);
  EXPECT_EQ(PathOf(0).worst_ps, 7 * kUnitPs);
}

// A GPU stands still while its slice ends all the same.
TEST_F(PathTracerTest, AGpuThatStandsStillIsSlowFromTheEndOfItsWork) {
  Start(0);
  Slice(0, 0, 10 * kUnitPs);
  AtTime(4 * kUnitPs, [this] { tracer_.StandStill(LaneIndex{0}); });
  AtTime(15 * kUnitPs, [this] { tracer_.StandStill(LaneIndex{0}); });  // it was examined again
  AtTime(30 * kUnitPs, [this] { Slice(0, 30 * kUnitPs, 33 * kUnitPs); });
  engine().Run();
  EXPECT_THAT(PathOf(0).spent_ps, ElementsAre((10 + 3) * kUnitPs, 0, 0, 0, 0, 20 * kUnitPs));
}

// The clear-to-send comes after the sender's slice, so the path begins at the receiver.
TEST_F(PathTracerTest, AMessageOverTheNetworkContinuesBehindItsGrant) {
  const ConnectionId id = Between(0, 8);
  for (const uint32_t gpu : {0u, 8u}) Start(gpu);
  tracer_.OnGrant(id, ChannelIndex{8}, 8);
  ++table_->slots(id).progress.granted;
  Slice(0, 0, 3 * kUnitPs, {}, {id});
  tracer_.OnSent(LaneIndex{0}, id, 0);
  AtTime(10 * kUnitPs, [&] {
    tracer_.OnGranted(id, 0);
    tracer_.OnQueued(id, 0);
  });
  AtTime(12 * kUnitPs, [&] { tracer_.OnPosted(id, 0); });
  AtTime(20 * kUnitPs, [&] {
    tracer_.OnArrived(id, 0, 23 * kUnitPs);
    Slice(8, 23 * kUnitPs, 30 * kUnitPs, {id});
  });
  engine().Run();
  EXPECT_EQ(PathOf(8).origin_gpu, 8u);
  EXPECT_THAT(PathOf(8).spent_ps,
              ElementsAre((2 + 3 + 7) * kUnitPs, (10 + 8) * kUnitPs, 0, 0, 0, 0));
}

TEST_F(PathTracerTest, TheTimeOfARecoveryIsNotTransit) {
  RecoveringTransport transport;
  transport.recovery = {.timeout_ps = 100 * kUnitPs, .retransmission_ps = 100 * kUnitPs};
  const ConnectionId id = PostOver(transport);
  AtTime(10 * kUnitPs, [&] {
    transport.recovery.timeout_ps += 4 * kUnitPs;
    transport.recovery.retransmission_ps += kUnitPs;
    Receive(id);
  });
  engine().Run();
  EXPECT_THAT(PathOf(8).spent_ps, ElementsAre(0, 5 * kUnitPs, 0, 4 * kUnitPs, kUnitPs, 0));
  EXPECT_EQ(PathOf(8).worst_from, 0u);
  EXPECT_EQ(PathOf(8).worst_to, 8u);
  EXPECT_EQ(PathOf(8).worst_ps, 5 * kUnitPs);
}

TEST_F(PathTracerTest, WhatAConnectionSendsAfterItHasMovedIsRerouted) {
  RecoveringTransport transport;
  const ConnectionId id = PostOver(transport);
  AtTime(6 * kUnitPs, [&] { tracer_.OnMove(id); });
  AtTime(20 * kUnitPs, [&] { Receive(id); });
  engine().Run();
  EXPECT_THAT(PathOf(8).spent_ps, ElementsAre(0, 6 * kUnitPs, 14 * kUnitPs, 0, 0, 0));
}

// Routes that change there and back leave a connection on the path it was opened with.
TEST_F(PathTracerTest, AConnectionIsReroutedWhileItsPathIsNotItsFirst) {
  RecoveringTransport transport;
  transport.links = {LinkId{1}, LinkId{2}};
  const ConnectionId id = PostOver(transport);
  transport.links = {LinkId{1}, LinkId{3}};
  tracer_.OnRoutesChanged();
  AtTime(5 * kUnitPs, [&] { EXPECT_EQ(Receive(id).SpentPs(PathCause::kRerouted), 5 * kUnitPs); });
  AtTime(6 * kUnitPs, [&] {
    transport.links = {LinkId{1}, LinkId{2}};
    tracer_.OnRoutesChanged();
    EXPECT_EQ(Receive(id).SpentPs(PathCause::kRerouted), 0);
  });
  engine().Run();
}

TEST_F(PathTracerTest, KeptPathsOfFreeSlotsHoldUpLaterSenders) {
  const ConnectionId id = Between(0, 1);
  const int64_t flag_ps = 2 * ServerSpec{}.nvlink_delay_ps + ServerSpec{}.nvswitch_latency_ps;
  Start(1);
  Slice(1, 0, 20 * kUnitPs);
  tracer_.OnTaken(LaneIndex{1}, id, 0, 20 * kUnitPs);
  const std::vector<ConnectionId> connections = {id};
  const std::vector<PathTracer::Kept> kept = tracer_.Keep(connections);
  // Another message is taken, later.
  Slice(1, 20 * kUnitPs, 90 * kUnitPs);
  tracer_.OnTaken(LaneIndex{1}, id, 0, 90 * kUnitPs);
  tracer_.PutBack(connections, kept);
  table_->slots(id).posted = 1;
  Start(0);
  Slice(0, 20 * kUnitPs + flag_ps, 20 * kUnitPs + flag_ps, {}, {id});
  EXPECT_EQ(PathOf(0).EndPs(), 20 * kUnitPs + flag_ps);
}

}  // namespace
}  // namespace railyard
