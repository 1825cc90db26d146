// SPDX-License-Identifier: GPL-2.0-only
// Links held for too long, and deadlocks.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric/star_fixture.h"
#include "tests/fabric/switch_attributes.h"

namespace railyard {
namespace {

using ::testing::UnorderedElementsAre;

// Three switches in a ring, a NIC at each; the NIC of switch i sends to that of switch i + 2,
// always the same way round.
class RingTest : public testing::NetworkFixture {
 protected:
  void BuildRing() {
    for (int i = 0; i < 3; ++i) switches_.push_back(AddSwitch("s" + std::to_string(i)));
    for (int32_t i = 0; i < 3; ++i) {
      nics_.push_back(AddInServer(DeviceKind::kNic, i, 0));
      const auto at = static_cast<size_t>(i);
      graph_.AddCable(nics_[at], switches_[at], {Tier::kNicLeaf, 400'000'000'000, 1'000, 1});
      graph_.AddCable(switches_[at], switches_[(at + 1) % 3],
                      {Tier::kLeafSpine, 400'000'000'000, 1'000, 1});
    }
    BuildNetwork();
  }
  // `hops` switches on from each.
  void Load(size_t hops, uint32_t packets) {
    for (size_t i = 0; i < 3; ++i) {
      std::vector<LinkId> links = {*graph_.FindLink(nics_[i], switches_[i])};
      for (size_t hop = 0; hop < hops; ++hop) {
        links.push_back(*graph_.FindLink(switches_[(i + hop) % 3], switches_[(i + hop + 1) % 3]));
      }
      links.push_back(*graph_.FindLink(switches_[(i + hops) % 3], nics_[(i + hops) % 3]));
      const PathRef path = network().AddPath(links);
      for (uint32_t p = 0; p < packets; ++p) Inject(path, p, 1'000, 900);
    }
  }
  std::vector<DeviceId> switches_;
  std::vector<DeviceId> nics_;
};

TEST_F(RingTest, ARingOfFullBuffersIsADeadlockAndItsCycleIsNamed) {
  BuildRing();
  network().SetAttribute("StormThresholdPs", ns3::IntegerValue(kPsPerMs));
  for (const DeviceId id : switches_) {
    testing::SetBuffer(*network().GetSwitch(id), {.buffer_bytes = 100'000, .alpha = 1});
  }
  network().Configure();
  Load(2, 2'000);
  engine().Run();
  EXPECT_LT(at_nic_.size(), 6'000u);
  EXPECT_EQ(network().counters().dropped_data_bytes(), 0u);
  uint32_t deadlocks = 0;
  for (const HoldReport& report : network().hold_reports()) {
    if (report.kind != HoldKind::kBufferDeadlock) continue;
    ++deadlocks;
    EXPECT_THAT(report.cycle, UnorderedElementsAre("s0>s1", "s1>s2", "s2>s0"));
    EXPECT_EQ(report.cycle[0], graph_.link(report.link).name);
    EXPECT_GE(report.time_ps, kPsPerMs);
  }
  EXPECT_EQ(deadlocks, 3u);
  // The NICs' own links wait for the ring but are no part of it.
  EXPECT_EQ(network().hold_reports().size(), 6u);
  network().CheckConservation();
}

TEST_F(RingTest, ARingWithCreditsDeadlocksAsWell) {
  BuildRing();
  network().SetAttribute("StormThresholdPs", ns3::IntegerValue(kPsPerMs));
  network().SetAttribute("NetworkFlowControl",
                         ns3::EnumValue(static_cast<int>(FlowControl::kCredits)));
  network().SetAttribute("CreditBytes", ns3::UintegerValue(20'000));
  network().Configure();
  Load(2, 2'000);
  engine().Run();
  EXPECT_LT(at_nic_.size(), 6'000u);
  EXPECT_TRUE(std::any_of(network().hold_reports().begin(), network().hold_reports().end(),
                          [](const HoldReport& report) { return report.cycle.size() == 3; }));
  network().CheckConservation();
}

TEST_F(RingTest, PathsThatDoNotCloseTheRingDoNotDeadlock) {
  BuildRing();
  for (const DeviceId id : switches_) {
    testing::SetBuffer(*network().GetSwitch(id), {.buffer_bytes = 100'000, .alpha = 1});
  }
  network().Configure();
  Load(1, 2'000);
  engine().Run();
  EXPECT_EQ(at_nic_.size(), 6'000u);
  EXPECT_TRUE(network().hold_reports().empty());
}

// Five switches around a ring, each NIC sending to the one two switches on: in one class the links
// wait for each other (Dally, Seitz 1987), in the classes of either avoidance everything arrives.
class ClassedRingTest : public testing::NetworkFixture,
                        public ::testing::WithParamInterface<FlowControl> {
 protected:
  void Run(DeadlockAvoidance avoidance) {
    constexpr size_t kSwitches = 5;
    std::vector<DeviceId> switches;
    std::vector<DeviceId> nics;
    for (uint16_t i = 0; i < kSwitches; ++i) {
      switches.push_back(graph_.AddDevice(
          {.name = "s" + std::to_string(i), .kind = DeviceKind::kSwitch, .coordinates = {i}}));
    }
    for (size_t i = 0; i < kSwitches; ++i) {
      nics.push_back(AddInServer(DeviceKind::kNic, static_cast<int32_t>(i), 0));
      graph_.AddCable(nics[i], switches[i], {Tier::kNicLeaf, 400'000'000'000, 1'000, 1});
      graph_.AddCable(switches[i], switches[(i + 1) % kSwitches],
                      {Tier::kDirect, 400'000'000'000, 1'000, 1});
    }
    graph_.deadlock_avoidance = avoidance;
    BuildNetwork();
    network().SetAttribute("NetworkFlowControl", ns3::EnumValue(static_cast<int>(GetParam())));
    network().SetAttribute("CreditBytes", ns3::UintegerValue(20'000));
    network().SetAttribute("StormThresholdPs", ns3::IntegerValue(kPsPerMs));
    for (const DeviceId id : switches) {
      testing::SetBuffer(*network().GetSwitch(id), {.buffer_bytes = 100'000, .alpha = 1});
    }
    network().Configure();
    for (size_t i = 0; i < kSwitches; ++i) {
      const size_t end = (i + 2) % kSwitches;
      const PathRef path =
          network().AddPath({*graph_.FindLink(nics[i], switches[i]),
                             *graph_.FindLink(switches[i], switches[(i + 1) % kSwitches]),
                             *graph_.FindLink(switches[(i + 1) % kSwitches], switches[end]),
                             *graph_.FindLink(switches[end], nics[end])});
      for (uint32_t p = 0; p < 2'000; ++p) Inject(path, p, 1'000, 900);
    }
    engine().Run();
    network().CheckConservation();
    EXPECT_EQ(network().counters().dropped_data_bytes(), 0u);
  }
};

TEST_P(ClassedRingTest, OneClassDeadlocks) {
  Run(DeadlockAvoidance::kRoutes);
  EXPECT_LT(at_nic_.size(), 10'000u);
  EXPECT_TRUE(std::any_of(network().hold_reports().begin(), network().hold_reports().end(),
                          [](const HoldReport& report) { return report.cycle.size() == 5; }));
}

TEST_P(ClassedRingTest, AClassForEachHopDoesNot) {
  Run(DeadlockAvoidance::kHopClasses);
  EXPECT_EQ(at_nic_.size(), 10'000u);
  EXPECT_TRUE(network().hold_reports().empty());
  EXPECT_EQ(network().counters().xoff_frames > 0, GetParam() == FlowControl::kPfc);
}

TEST_P(ClassedRingTest, ADatelineDoesNot) {
  Run(DeadlockAvoidance::kDateline);
  EXPECT_EQ(at_nic_.size(), 10'000u);
  EXPECT_TRUE(network().hold_reports().empty());
  EXPECT_EQ(network().counters().xoff_frames > 0, GetParam() == FlowControl::kPfc);
}

INSTANTIATE_TEST_SUITE_P(FlowControls, ClassedRingTest,
                         ::testing::Values(FlowControl::kPfc, FlowControl::kCredits));

TEST(HoldKindTest, KindsHaveNames) {
  EXPECT_STREQ(HoldKindName(HoldKind::kPauseStorm), "PAUSE_STORM");
  EXPECT_STREQ(HoldKindName(HoldKind::kBufferDeadlock), "BUFFER_DEADLOCK");
}

class StormTest : public testing::StarFixture {};

// A receiver that takes 8 us for a packet, and whose senders are paused meanwhile.
TEST_F(StormTest, APauseBeyondTheThresholdIsReportedOnce) {
  AddNic();
  AddNic(1'000'000'000);
  BuildStar({.buffer_bytes = 100'000, .alpha = 1, .xon_offset_bytes = 30'000});
  network().SetAttribute("StormThresholdPs", ns3::IntegerValue(300 * kPsPerUs));
  network().Configure();
  InjectMany(PathTo(0, 1), {.count = 90, .wire_bytes = 1'000});
  engine().Run();
  EXPECT_EQ(at_nic_.size(), 90u);
  // One packet of 8 us after the other goes out until 35 are left of those that came: the pause is
  // longer than 300 us, and what came after it fits.
  ASSERT_EQ(network().counters().xoff_frames, 1u);
  const auto& reports = network().hold_reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].kind, HoldKind::kPauseStorm);
  EXPECT_EQ(reports[0].link, Uplink(0));
  EXPECT_TRUE(reports[0].cycle.empty());
  const int64_t paused_from_ps = pauses_[0].time_ps + 1'680 + 1'000 + 614'400;
  EXPECT_EQ(reports[0].time_ps, paused_from_ps + 300 * kPsPerUs);
}

TEST_F(StormTest, PausesThatEndInTimeAreNotAddedUp) {
  AddNic();
  AddNic(100'000'000'000);
  BuildStar({.buffer_bytes = 100'000, .alpha = 1});
  network().SetAttribute("StormThresholdPs", ns3::IntegerValue(20 * kPsPerUs));
  network().Configure();
  InjectMany(PathTo(0, 1), {.count = 2'000, .wire_bytes = 1'000});
  engine().Run();
  EXPECT_GT(network().counters().pfc_pause_ps, 60 * kPsPerUs);
  EXPECT_GT(network().counters().xoff_frames, 5u);
  EXPECT_TRUE(network().hold_reports().empty());
}

}  // namespace
}  // namespace railyard
