// SPDX-License-Identifier: GPL-2.0-only
// Tests the state of a network's objects without the network.
#include "simulator/fabric/network_state.h"

#include <array>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "simulator/state/state_archive.h"
#include "tests/fabric/objects_fixture.h"

namespace railyard {
namespace {

class NetworkStateTest : public testing::ObjectsFixture {
 protected:
  void AddDevices() override {
    ObjectsFixture::AddDevices();
    const DeviceId gpu = AddDevice("server0/gpu0", DeviceKind::kGpu, 0, 0);
    const DeviceId nvswitch = AddDevice("server0/nvswitch0", DeviceKind::kNvSwitch, 0, 0);
    to_nvswitch_ = AddCable(gpu, nvswitch, Tier::kNvlink);
    from_nvswitch_ = graph_.ReverseLink(to_nvswitch_);
  }
  struct Taken {
    bool is_quiescent = false;
    uint64_t unrepeatable = 0;
    StateSnapshot state;
    CountSnapshot counts;
  };
  template <typename Visit>
  Taken Take(Visit visit) {
    StateArchive archive(engine().NowPs());
    visit(archive);
    return {.is_quiescent = archive.is_quiescent(),
            .unrepeatable = archive.unrepeatable(),
            .state = archive.TakeState(),
            .counts = archive.TakeCounts()};
  }
  Taken TakeAll() {
    return Take([this](StateArchive& archive) { state_.Visit(archive); });
  }
  // Counts so many packets of 1,000 B, with 900 B of payload, from the GPU to the NVSwitch and
  // back.
  void CountRoundTrips(uint32_t count) {
    for (const LinkId link : {to_nvswitch_, from_nvswitch_}) {
      tables_.links[link].sent += count;
      tables_.links[link].packets += count;
      tables_.links[link].wire_bytes += uint64_t{1'000} * count;
      tables_.links[link].payload_bytes += uint64_t{900} * count;
    }
  }

  LinkId to_nvswitch_{0};
  LinkId from_nvswitch_{0};
  NetworkState state_{{.tables = tables_,
                       .accounts = accounts_,
                       .buffers = buffers_,
                       .pause_frames = pause_frames_,
                       .states = states_,
                       .delays = delays_,
                       .holds = holds_,
                       .telemetry = telemetry_,
                       .reduction = reduction_,
                       .flows = flows_}};
};

TEST_F(NetworkStateTest, ANetworkIsQuiescentWithoutPacketsAndFlows) {
  EXPECT_TRUE(TakeAll().is_quiescent);
  flows_.CountInjected(1);
  EXPECT_FALSE(TakeAll().is_quiescent);
  flows_.CountDelivered(1);
  EXPECT_TRUE(TakeAll().is_quiescent);
  MakePacket(from_left_, 1'000);
  EXPECT_FALSE(TakeAll().is_quiescent);
}

TEST_F(NetworkStateTest, WhatSwitchesDecideByTelemetryIsNotVisited) {
  telemetry_.Enable();
  EXPECT_FALSE(TakeAll().is_quiescent);
}

TEST_F(NetworkStateTest, FaultsAndFailedLinksMakeAnotherState) {
  const StateSnapshot whole = TakeAll().state;
  state_.SetConditions(7);
  EXPECT_EQ(state_.conditions(), 7u);
  EXPECT_FALSE(TakeAll().state == whole);
  state_.SetConditions(0);
  EXPECT_TRUE(TakeAll().state == whole);
  states_.SetUp(from_left_, false);
  EXPECT_FALSE(TakeAll().state == whole);
}

TEST_F(NetworkStateTest, LostPacketsAreUnrepeatable) {
  EXPECT_EQ(TakeAll().unrepeatable, 0u);
  ++tables_.counters.draws;
  EXPECT_EQ(TakeAll().unrepeatable, 1u);
}

TEST_F(NetworkStateTest, ChangesOfCountersAreAdded) {
  const CountSnapshot before = TakeAll().counts;
  tables_.links[from_left_].wire_bytes = 1'000;
  tables_.counters.packets = 3;
  const CountChanges changes = ChangesBetween(before, TakeAll().counts);
  StateArchive add(changes);
  state_.Visit(add);
  EXPECT_EQ(tables_.links[from_left_].wire_bytes, 2'000u);
  EXPECT_EQ(tables_.counters.packets, 6u);
}

TEST_F(NetworkStateTest, CountersOfNvlinksAddUpToThoseOfTheNetwork) {
  const std::array<LinkId, 2> links = {to_nvswitch_, from_nvswitch_};
  const auto take = [&] {
    return Take([&](StateArchive& archive) { state_.VisitNvlinks(links, archive); });
  };
  const CountSnapshot before = take().counts;
  CountRoundTrips(5);
  const Taken after = take();
  EXPECT_TRUE(after.is_quiescent);
  const CountChanges changes = ChangesBetween(before, after.counts);
  StateArchive add(changes);
  state_.VisitNvlinks(links, add);
  EXPECT_EQ(tables_.links[from_nvswitch_].packets, 10u);
  EXPECT_EQ(tables_.counters.packets, 5u);
  EXPECT_EQ(tables_.counters.packet_hops, 10u);
  EXPECT_EQ(tables_.counters.injected_bytes, 4'500u);
  EXPECT_EQ(tables_.counters.delivered_bytes, 4'500u);
}

TEST_F(NetworkStateTest, LinksOfNicsWithOtherBuffersAreInAnotherState) {
  const std::array<LinkId, 2> links = {from_left_, to_left_};
  const auto take = [&] {
    return Take([&](StateArchive& archive) { state_.VisitNicLinks(links, archive); });
  };
  const StateSnapshot unlimited = take().state;
  accounts_[FirstChannelOf(from_left_)].has_credits = 1;
  accounts_[FirstChannelOf(from_left_)].set_buffer_or_limit(9'000);
  const Taken limited = take();
  EXPECT_TRUE(limited.is_quiescent);
  EXPECT_FALSE(limited.state == unlimited);
  accounts_[FirstChannelOf(from_left_)].bytes = 1;
  EXPECT_FALSE(take().is_quiescent);
}

}  // namespace
}  // namespace railyard
