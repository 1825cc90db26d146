// SPDX-License-Identifier: GPL-2.0-only
// Every attribute changes something: each is set in a network under a load that reaches all of it,
// and the run differs from the one with defaults; or, for those that must not change results, the
// figure differs that they are for.
#include <functional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <ns3/boolean.h>
#include <ns3/string.h>

#include "simulator/fabric/routing_delays.h"
#include "tests/fabric/star_fixture.h"

namespace railyard {
namespace {

class AttributesTest : public testing::StarFixture {
 protected:
  struct Outcome {
    uint64_t hash;
    uint64_t general_hops;
    uint64_t reports;
    bool operator==(const Outcome&) const = default;
  };

  // Sixteen NICs send to one, and two GPUs over an NVSwitch and over a PCIe switch to a third.
  Outcome Run(const std::function<void(FabricNetwork&, Switch&)>& change) {
    graph_ = FabricGraph();
    nics_.clear();
    at_nic_.clear();
    for (int i = 0; i < 17; ++i) AddNic();
    const DeviceId nvswitch = AddInServer(DeviceKind::kNvSwitch, 0, 0);
    std::vector<DeviceId> gpus;
    for (int32_t i = 0; i < 3; ++i) {
      gpus.push_back(AddInServer(DeviceKind::kGpu, 0, i));
      graph_.AddCable(gpus.back(), nvswitch, {Tier::kNvlink, kRate, 100'000, 1});
    }
    const DeviceId pcie_switch = AddInServer(DeviceKind::kPcieSwitch, 0, 1);
    for (const DeviceId gpu : gpus) {
      graph_.AddCable(gpu, pcie_switch, {Tier::kHost, kRate, 100'000, 1});
    }
    BuildStar({});
    network().SetAttribute("TrajectoryHash", ns3::BooleanValue(true));
    ns3::Ptr<Switch> leaf = network().GetSwitch(leaf_);
    leaf->SetAttribute("BufferBytes", ns3::UintegerValue(2'000'000));
    change(network(), *leaf);
    network().Configure();
    headroom_bytes_ = network().buffers().PauseOf(FirstChannelOf(Uplink(0))).headroom_bytes_max;
    for (uint32_t i = 0; i < 16; ++i)
      InjectMany(PathTo(i, 16), {.count = 300, .wire_bytes = 1'000, .flow = i});
    for (size_t i = 0; i < 2; ++i) {
      InjectMany(network().AddPath(
                     {*graph_.FindLink(gpus[i], nvswitch), *graph_.FindLink(nvswitch, gpus[2])}),
                 {.count = 200, .wire_bytes = 1'000, .flow = 100 + static_cast<uint32_t>(i)});
      InjectMany(network().AddPath(graph_.HostPath(gpus[i], gpus[2])),
                 {.count = 200, .wire_bytes = 1'000, .flow = 200 + static_cast<uint32_t>(i)});
    }
    engine().Run();
    network().CheckConservation();
    const Outcome outcome{
        .hash = network().taps().trajectory_hash() ^ network().counters().ecn_marked,
        .general_hops = network().counters().general_hops,
        .reports = network().hold_reports().size()};
    TearDown();
    return outcome;
  }
  uint64_t headroom_bytes_ = 0;
  Outcome RunWithSwitch(const std::string& attribute, const std::string& value) {
    changed_.insert(attribute);
    return Run([&](FabricNetwork&, Switch& leaf) {
      leaf.SetAttribute(attribute, ns3::StringValue(value));
    });
  }
  Outcome RunWithNetwork(const std::string& attribute, const std::string& value) {
    changed_.insert(attribute);
    return Run([&](FabricNetwork& network, Switch&) {
      network.SetAttribute(attribute, ns3::StringValue(value));
    });
  }
  // All the type has must have been changed.
  void ExpectAllChanged(const ns3::TypeId& type) const {
    for (uint32_t i = 0; i < type.GetAttributeN(); ++i) {
      EXPECT_TRUE(changed_.contains(type.GetAttribute(i).name)) << type.GetAttribute(i).name;
      EXPECT_FALSE(type.GetAttribute(i).help.empty());
    }
  }
  std::set<std::string> changed_;
};

TEST_F(AttributesTest, EveryAttributeOfASwitchChangesARun) {
  const Outcome defaults = Run([](FabricNetwork&, Switch&) {});
  EXPECT_EQ(Run([](FabricNetwork&, Switch&) {}), defaults);
  const uint64_t headroom_bytes = headroom_bytes_;
  EXPECT_NE(RunWithSwitch("BufferBytes", "1500000").hash, defaults.hash);
  EXPECT_NE(RunWithSwitch("Alpha", "0.25").hash, defaults.hash);
  EXPECT_NE(RunWithSwitch("LosslessData", "false").hash, defaults.hash);
  EXPECT_NE(RunWithSwitch("HeadroomBytes", "5000").hash, defaults.hash);
  EXPECT_NE(RunWithSwitch("HeadroomScale", "0").hash, defaults.hash);
  EXPECT_NE(RunWithSwitch("XonOffsetBytes", "20000").hash, defaults.hash);
  EXPECT_NE(RunWithSwitch("EcnEnabled", "false").hash, defaults.hash);
  EXPECT_NE(RunWithSwitch("EcnKminBytes", "1000").hash, defaults.hash);
  EXPECT_NE(RunWithSwitch("EcnKmaxBytes", "150000").hash, defaults.hash);
  EXPECT_NE(RunWithSwitch("EcnPmax", "0.9").hash, defaults.hash);
  // A smaller MTU needs less headroom: one packet less each way.
  RunWithSwitch("MtuBytes", "1216");
  EXPECT_EQ(headroom_bytes_, headroom_bytes - uint64_t{2} * 8'000);
  ExpectAllChanged(Switch::GetTypeId());
}

TEST_F(AttributesTest, EveryAttributeOfTheNetworkChangesWhatItIsFor) {
  const Outcome defaults = Run([](FabricNetwork&, Switch&) {});
  EXPECT_EQ(defaults.reports, 0u);
  EXPECT_NE(RunWithNetwork("NetworkFlowControl", "CREDITS").hash, defaults.hash);
  EXPECT_NE(RunWithNetwork("NetworkFlowControl", "NONE").hash, defaults.hash);
  EXPECT_NE(RunWithNetwork("NvlinkCreditBytes", "4000").hash, defaults.hash);
  EXPECT_NE(RunWithNetwork("PcieCreditBytes", "4000").hash, defaults.hash);
  EXPECT_NE(RunWithNetwork("PauseResponsePs", "100000").hash, defaults.hash);
  EXPECT_NE(RunWithNetwork("Seed", "2").hash, defaults.hash);
  EXPECT_NE(RunWithNetwork("TrajectoryHash", "false").hash, defaults.hash);
  const Outcome storms = RunWithNetwork("StormThresholdPs", "1000");
  EXPECT_EQ(storms.hash, defaults.hash);
  EXPECT_GT(storms.reports, 0u);
  const Outcome general = RunWithNetwork("Form", "GENERAL");
  EXPECT_EQ(general.hash, defaults.hash);
  EXPECT_GT(general.general_hops, defaults.general_hops);

  const auto with_credits = [&](uint32_t bytes) {
    return Run([&](FabricNetwork& network, Switch&) {
      network.SetAttribute("NetworkFlowControl", ns3::StringValue("CREDITS"));
      network.SetAttribute("CreditBytes", ns3::UintegerValue(bytes));
    });
  };
  changed_.insert("CreditBytes");
  // Without a choice of links here: LoadBalancerTest, and SettingsEffectTest for whole runs.
  changed_.insert({"LoadBalancing", "FlowletGapPs"});
  EXPECT_NE(with_credits(3'000).hash, with_credits(30'000).hash);
  ExpectAllChanged(FabricNetwork::GetTypeId());
}

// FaultInjectorTest tests their effect, and SettingsEffectTest for whole runs.
TEST(RoutingAttributesTest, AttributesAreTheDelays) {
  const auto routing = ns3::CreateObject<Routing>();
  EXPECT_EQ(routing->delays().detection_ps, RoutingDelays{}.detection_ps);
  EXPECT_EQ(routing->delays().convergence_ps, RoutingDelays{}.convergence_ps);
  EXPECT_EQ(routing->delays().hop_share, RoutingDelays{}.hop_share);
  routing->SetAttribute("DetectionDelayPs", ns3::IntegerValue(3));
  routing->SetAttribute("ConvergenceDelayPs", ns3::IntegerValue(1'000));
  routing->SetAttribute("HopShare", ns3::DoubleValue(0.25));
  EXPECT_EQ(routing->delays().detection_ps, 3);
  EXPECT_EQ(routing->delays().convergence_ps, 1'000);
  EXPECT_EQ(routing->delays().HopPs(), 250);
  EXPECT_EQ(Routing::GetTypeId().GetAttributeN(), 3u);
  EXPECT_FALSE(routing->SetAttributeFailSafe("HopShare", ns3::DoubleValue(-0.1)));
}

TEST_F(AttributesTest, ValuesOutOfRangeAreRefused) {
  const ns3::Ptr<Switch> a_switch = ns3::CreateObject<Switch>();
  EXPECT_FALSE(a_switch->SetAttributeFailSafe("Alpha", ns3::DoubleValue(9)));
  EXPECT_FALSE(a_switch->SetAttributeFailSafe("BufferBytes", ns3::UintegerValue(0)));
  EXPECT_FALSE(a_switch->SetAttributeFailSafe("EcnPmax", ns3::DoubleValue(1.5)));
  EXPECT_TRUE(a_switch->SetAttributeFailSafe("Alpha", ns3::DoubleValue(8)));
  EXPECT_EQ(a_switch->buffer_settings().alpha, 8);
  const ns3::Ptr<FabricNetwork> network = ns3::CreateObject<FabricNetwork>();
  EXPECT_FALSE(network->SetAttributeFailSafe("StormThresholdPs", ns3::IntegerValue(0)));
  EXPECT_FALSE(network->SetAttributeFailSafe("Form", ns3::StringValue("LONG")));
}

TEST_F(AttributesTest, ANetworkIsConfiguredBeforeItsFirstPacket) {
  AddNic();
  AddNic();
  BuildStar({});
  InjectMany(PathTo(0, 1), {.count = 1, .wire_bytes = 1'000});
  EXPECT_DEATH(network().Configure(), "before its first");
}

}  // namespace
}  // namespace railyard
