// SPDX-License-Identifier: GPL-2.0-only
// A fabric within a program of ns-3's: unmodified network stacks and applications share its links
// with the collectives, and ns-3's traces, attributes and seeds reach it.
#include "railyard/ns3/fabric_simulation.h"

#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ns3/boolean.h>
#include <ns3/bulk-send-helper.h>
#include <ns3/config.h>
#include <ns3/data-rate.h>
#include <ns3/double.h>
#include <ns3/drop-tail-queue.h>
#include <ns3/inet-socket-address.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/log.h>
#include <ns3/mac48-address.h>
#include <ns3/node-container.h>
#include <ns3/on-off-helper.h>
#include <ns3/packet-sink-helper.h>
#include <ns3/packet-sink.h>
#include <ns3/pointer.h>
#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>
#if __has_include(<ns3/ping-helper.h>)
#include <ns3/ping-helper.h>
#else
#include <ns3/v4ping-helper.h>
#endif

#include "railyard/ns3/fabric_net_device.h"
#include "railyard/ns3/railyard_helper.h"
#include "railyard/ns3/trace_events.h"
#include "simulator/scenario/schema/scenario.h"
#include "simulator/transport/nic/nic_events.h"
#include "tests/ns3/fabric_program.h"

namespace railyard {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kBytePs = 20;  // at 400 Gb/s
const std::vector<std::string> kNics = {"server0/nic0", "server1/nic0"};

class FabricSimulationTest : public testing::FabricProgramTest {
 protected:
  // Hosts with ns-3's stacks at the two NICs of rail 0.
  void InstallHosts(const RailyardHelper& helper) {
    devices_ = helper.Install(fabric_, hosts_, kNics);
    ns3::InternetStackHelper().Install(hosts_);
    addresses_ = ns3::Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices_);
  }
  void RunUntilEnded() {
    fabric_->SetAttribute("StopSimulator", ns3::BooleanValue(true));
    ns3::Simulator::Run();
  }

  ns3::NodeContainer hosts_{2};
  ns3::NetDeviceContainer devices_;
  ns3::Ipv4InterfaceContainer addresses_;
};

// Collects what the simulation tells by ns-3's trace sources.
struct Seen {
  void OnStart(const CollectiveEvent& event) { starts.push_back(event.collective); }
  void OnEnd(const CollectiveEvent& event) {
    durations.push_back((event.end - event.start).GetTimeStep());
  }
  void OnPacket(const PacketEvent& /*event*/) { ++packets; }
  void OnRtt(ns3::Time rtt) { rtts.push_back(rtt.GetTimeStep()); }
  void OnNumberedRtt(uint16_t /*number*/, ns3::Time rtt) { OnRtt(rtt); }
  void OnFrame(ns3::Ptr<const ns3::Packet> /*frame*/) { ++frames; }

  std::vector<uint32_t> starts;
  std::vector<int64_t> durations;
  std::vector<int64_t> rtts;
  uint64_t packets = 0;
  uint64_t frames = 0;
};

// Counts the calls of sinks by their paths.
struct Counting {
  template <typename Event>
  void On(std::string path, const Event& /*event*/) {
    ++counts[path];
  }
  void OnEnded(std::string path) { ++counts[path]; }

  std::map<std::string, uint64_t> counts;
};

TEST_F(FabricSimulationTest, CollectivesRunAsTheyDoWithoutNs3sEvents) {
  Seen seen;
  Create(RailyardHelper(TwoServers()));
  ns3::Config::ConnectWithoutContext("/Railyard/CollectiveStart",
                                     ns3::MakeCallback(&Seen::OnStart, &seen));
  ns3::Config::ConnectWithoutContext("/Railyard/CollectiveEnd",
                                     ns3::MakeCallback(&Seen::OnEnd, &seen));
  ns3::Simulator::Run();
  EXPECT_TRUE(fabric_->HasEnded());
  const RunResult result = fabric_->GetResult();
  EXPECT_EQ(result.status, RunStatus::kCompleted);
  EXPECT_THAT(seen.starts, SizeIs(2));
  ASSERT_THAT(seen.durations, SizeIs(2));
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(seen.durations[i], result.collectives[i].duration_ps());
}

// Sends echoes from one host to an address. ns-3.43 has another helper than ns-3.37.
void InstallPing(ns3::Ptr<ns3::Node> from, ns3::Ipv4Address to, Seen& seen) {
#if __has_include(<ns3/ping-helper.h>)
  ns3::PingHelper ping(ns3::Address{to});
  ping.SetAttribute("VerboseMode", ns3::StringValue("Silent"));
#else
  ns3::V4PingHelper ping(to);
#endif
  ping.SetAttribute("Interval", ns3::TimeValue(ns3::MilliSeconds(1)));
  const auto apps = ping.Install(from);
#if __has_include(<ns3/ping-helper.h>)
  apps.Get(0)->TraceConnectWithoutContext("Rtt", ns3::MakeCallback(&Seen::OnNumberedRtt, &seen));
#else
  apps.Get(0)->TraceConnectWithoutContext("Rtt", ns3::MakeCallback(&Seen::OnRtt, &seen));
#endif
}

// Twice: an ICMP echo of 56 B has 98 B with its headers, and 24 B of framing, on two cables and
// through one switch.
TEST_F(FabricSimulationTest, APingTakesTheLatencyOfItsPath) {
  Seen seen;
  const RailyardHelper helper(
      TwoServers(1).Set("workload.program.collectives[0].compute_before", "1s"));
  Create(helper);
  InstallHosts(helper);
  InstallPing(hosts_.Get(0), addresses_.GetAddress(1), seen);
  ns3::Simulator::Stop(ns3::MilliSeconds(5));
  ns3::Simulator::Run();

  Diagnostics diagnostics;
  const auto scenario = TwoServers().Build(diagnostics);
  const FabricGraph& graph = scenario->fabric;
  const DeviceId leaf = *graph.FindDevice("leaf0");
  int64_t one_way_ps = graph.device(leaf).forwarding_latency_ps;
  for (const std::string& nic : kNics) {
    const LinkId cable = *graph.FindLink(*graph.FindDevice(nic), leaf);
    one_way_ps += graph.link(cable).propagation_ps + (98 + 24) * kBytePs;
  }
  ASSERT_THAT(seen.rtts, SizeIs(Gt(2u)));
  EXPECT_EQ(seen.rtts.back(), 2 * one_way_ps);  // the first also asks for the address
}

TEST_F(FabricSimulationTest, TcpAndAnAllReduceShareTheCables) {
  Seen seen;
  ns3::Config::SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(8948));
  ns3::Config::SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(16 << 20));
  ns3::Config::SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(16 << 20));
  RailyardHelper helper(TwoServers(2, 64));
  helper.SetAttribute("StartTime", ns3::TimeValue(ns3::MilliSeconds(1)));
  helper.SetDeviceAttribute("Mtu", ns3::UintegerValue(9000));
  Create(helper);
  InstallHosts(helper);
  const ns3::InetSocketAddress storage(addresses_.GetAddress(1), 9);
  const auto sinks = ns3::PacketSinkHelper("ns3::TcpSocketFactory", storage).Install(hosts_.Get(1));
  ns3::BulkSendHelper("ns3::TcpSocketFactory", storage).Install(hosts_.Get(0));
  ns3::Config::ConnectWithoutContext("/Railyard/CollectiveEnd",
                                     ns3::MakeCallback(&Seen::OnEnd, &seen));
  RunUntilEnded();
  const double seconds = ns3::Simulator::Now().GetSeconds();
  const auto bytes =
      static_cast<double>(ns3::DynamicCast<ns3::PacketSink>(sinks.Get(0))->GetTotalRx());
  EXPECT_GT(bytes / seconds, 5e9);
  EXPECT_LT(bytes / seconds, 50e9);  // the cable's rate
  TearDown();

  Seen alone;
  Create(RailyardHelper(TwoServers(2, 64)));
  ns3::Config::ConnectWithoutContext("/Railyard/CollectiveEnd",
                                     ns3::MakeCallback(&Seen::OnEnd, &alone));
  ns3::Simulator::Run();
  ASSERT_THAT(seen.durations, SizeIs(2));
  ASSERT_THAT(alone.durations, SizeIs(2));
  EXPECT_GT(seen.durations[1], alone.durations[1] * 11 / 10);
}

// 10 Gb/s of datagrams of 1,250 B for a millisecond are 1.25 MB, which cables of 400 Gb/s carry
// beside an AllReduce.
TEST_F(FabricSimulationTest, OnOffApplicationsSendAtTheirRate) {
  const RailyardHelper helper(TwoServers(4));
  Create(helper);
  InstallHosts(helper);
  const ns3::InetSocketAddress sink(addresses_.GetAddress(1), 9);
  const auto sinks = ns3::PacketSinkHelper("ns3::UdpSocketFactory", sink).Install(hosts_.Get(1));
  ns3::OnOffHelper source("ns3::UdpSocketFactory", sink);
  source.SetConstantRate(ns3::DataRate("10Gbps"), 1'250);
  auto sources = source.Install(hosts_.Get(0));
  sources.Start(ns3::Seconds(0));
  sources.Stop(ns3::MilliSeconds(1));
  ns3::Simulator::Stop(ns3::MilliSeconds(2));
  ns3::Simulator::Run();
  const uint64_t bytes = ns3::DynamicCast<ns3::PacketSink>(sinks.Get(0))->GetTotalRx();
  EXPECT_EQ(bytes % 1'250, 0u);
  EXPECT_NEAR(static_cast<double>(bytes), 1.25e6, 1'250);
}

TEST_F(FabricSimulationTest, LinksHaveTraceSources) {
  Seen seen;
  Create(RailyardHelper(TwoServers(1)));
  const auto link = fabric_->FindLink("server0/nic0>leaf0");
  ASSERT_NE(link, nullptr);
  link->TraceConnectWithoutContext("PacketReceived", ns3::MakeCallback(&Seen::OnPacket, &seen));
  ns3::Simulator::Run();
  uint64_t packets = 0;
  for (const LinkResult& each : fabric_->GetResult().links) {
    if (each.name == "server0/nic0>leaf0") packets = each.packets;
  }
  EXPECT_GT(packets, 0u);
  EXPECT_GE(seen.packets, packets);  // acknowledgements as well
}

// Events call the sinks half done, with packets that are on no link.
TEST_F(FabricSimulationTest, SinksMayAskForTheResultSoFar) {
  struct Asking {
    void OnPacket(const PacketEvent& event) {
      Ask();
      is_in_time &= event.received <= ns3::Simulator::Now() && event.sent <= event.received;
    }
    void OnCollective(const CollectiveEvent& /*event*/) { Ask(); }
    void Ask() {
      if (asked++ < 8) statuses.push_back(fabric->GetResult().status);
    }
    FabricSimulation* fabric = nullptr;
    std::vector<RunStatus> statuses{};
    uint64_t asked = 0;
    bool is_in_time = true;
  };
  ScenarioBuilder scenario("incast");
  scenario.Fabric(scenario::RailOptimized{.servers = 8})
      .Add(scenario::Collective{.operation = scenario::Operation::kGather,
                                .size = DataSize::MiB(16)})
      .Set("nic.congestion_control.dcqcn");
  Create(RailyardHelper(scenario));
  Asking packets{.fabric = ns3::PeekPointer(fabric_)};
  Asking marks{.fabric = ns3::PeekPointer(fabric_)};
  Asking starts{.fabric = ns3::PeekPointer(fabric_)};
  fabric_->FindLink("server1/nic0>leaf0")
      ->TraceConnectWithoutContext("PacketReceived",
                                   ns3::MakeCallback(&Asking::OnPacket, &packets));
  ns3::Config::ConnectWithoutContext("/Railyard/EcnMarked",
                                     ns3::MakeCallback(&Asking::OnPacket, &marks));
  ns3::Config::ConnectWithoutContext("/Railyard/CollectiveStart",
                                     ns3::MakeCallback(&Asking::OnCollective, &starts));
  ns3::Simulator::Run();
  for (const Asking* sink : {&packets, &marks, &starts}) {
    EXPECT_THAT(sink->statuses, Not(IsEmpty()));
    EXPECT_THAT(sink->statuses, Each(RunStatus::kRunning));
    EXPECT_TRUE(sink->is_in_time);
  }
  EXPECT_EQ(fabric_->GetResult().status, RunStatus::kCompleted);
}

TEST_F(FabricSimulationTest, AttributesByPathDecide) {
  std::vector<int64_t> times_ps;
  for (const double alpha : {1.0 / 128, 8.0}) {
    ScenarioBuilder scenario("incast");
    scenario.Fabric(scenario::RailOptimized{.servers = 4})
        .Add(scenario::Collective{.operation = scenario::Operation::kGather,
                                  .size = DataSize::MiB(8)});
    Create(RailyardHelper(scenario));
    ns3::Config::Set("/Railyard/SwitchList/*/Alpha", ns3::DoubleValue(alpha));
    ns3::Simulator::Run();
    times_ps.push_back(fabric_->GetResult().simulated_time_ps);
    TearDown();
  }
  EXPECT_NE(times_ps[0], times_ps[1]);
}

// Seven senders overrun a receiver whose switch has little room, and a cable is unplugged
// meanwhile.
ScenarioBuilder IncastWithACut() {
  ScenarioBuilder scenario("incast");
  scenario.Fabric(scenario::RailOptimized{.servers = 8})
      .Add(scenario::Collective{.operation = scenario::Operation::kGather,
                                .size = DataSize::MiB(16)})
      .Set("nic.congestion_control.dcqcn")
      .Set("nccl.IB_TIMEOUT", 8)
      .Add(scenario::Fault{.name = "cut",
                           .kind = scenario::Fault::Kind::kLinkDown,
                           .link = "server1/nic0--leaf0",
                           .at = Duration::Us(100),
                           .until = Duration::Us(200)});
  return scenario;
}

// Keeps the text that std::clog gets while it lives: ns-3 logs there.
class CapturedLog {
 public:
  CapturedLog(const char* component, ns3::LogLevel level) : component_(component), level_(level) {
    ns3::LogComponentEnable(component_, level_);
  }
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog() {
    ns3::LogComponentDisable(component_, level_);
    std::clog.rdbuf(before_);
  }
  std::string text() const { return text_.str(); }

 private:
  const char* component_;
  ns3::LogLevel level_;
  std::ostringstream text_;
  std::streambuf* before_ = std::clog.rdbuf(text_.rdbuf());
};

TEST_F(FabricSimulationTest, ALogHasWhatHappensInTheFabric) {
  const auto logged = [&](ns3::LogLevel level) {
    const CapturedLog log("RailyardFabricSimulation", level);
    Create(RailyardHelper(IncastWithACut()));
    ns3::Config::Set("/Railyard/SwitchList/*/Alpha", ns3::DoubleValue(1.0 / 128));
    ns3::Simulator::Run();
    TearDown();
    return log.text();
  };
  const std::string of_info = logged(ns3::LOG_LEVEL_INFO);
  EXPECT_THAT(of_info, HasSubstr("server1/nic0>leaf0 is down\n"));
  EXPECT_THAT(of_info, HasSubstr("server1/nic0>leaf0 is up\n"));
  EXPECT_THAT(of_info, HasSubstr("time-out of queue pair "));
  EXPECT_THAT(of_info, Not(HasSubstr(" is lost at ")));
  const std::string of_logic = logged(ns3::LOG_LEVEL_LOGIC);
  EXPECT_THAT(of_logic, HasSubstr(" is lost at server1/nic0>leaf0: LINK_DOWN\n"));
  EXPECT_THAT(of_logic, HasSubstr(" sends a CNP of queue pair "));
  EXPECT_THAT(of_logic, HasSubstr(" bit/s\n"));
}

// Every trace source of the simulation, by its path, in one job.
TEST_F(FabricSimulationTest, EveryTraceSourceHasAPath) {
  Create(RailyardHelper(IncastWithACut()));
  ns3::Config::Set("/Railyard/SwitchList/*/Alpha", ns3::DoubleValue(1.0 / 128));
  Counting seen;
  const auto connect = [&](const std::string& name, const auto& callback) {
    ns3::Config::Connect("/Railyard/" + name, callback);
  };
  connect("CollectiveStart", ns3::MakeCallback(&Counting::On<CollectiveEvent>, &seen));
  connect("CollectiveEnd", ns3::MakeCallback(&Counting::On<CollectiveEvent>, &seen));
  connect("CallEnd", ns3::MakeCallback(&Counting::On<CallEvent>, &seen));
  connect("Ended", ns3::MakeCallback(&Counting::OnEnded, &seen));
  connect("PacketDropped", ns3::MakeCallback(&Counting::On<PacketEvent>, &seen));
  connect("EcnMarked", ns3::MakeCallback(&Counting::On<PacketEvent>, &seen));
  connect("LinkState", ns3::MakeCallback(&Counting::On<LinkStateEvent>, &seen));
  connect("PauseSent", ns3::MakeCallback(&Counting::On<PauseEvent>, &seen));
  connect("Timeout", ns3::MakeCallback(&Counting::On<QueuePairEvent>, &seen));
  connect("CnpSent", ns3::MakeCallback(&Counting::On<QueuePairEvent>, &seen));
  connect("RateChanged", ns3::MakeCallback(&Counting::On<RateEvent>, &seen));
  connect("NicList/*/Timeout", ns3::MakeCallback(&Counting::On<NicTimeout>, &seen));
  connect("NicList/*/CnpSent", ns3::MakeCallback(&Counting::On<NicCnpSent>, &seen));
  connect("NicList/*/RateChanged", ns3::MakeCallback(&Counting::On<NicRateChanged>, &seen));
  connect("LinkList/*/PacketLost", ns3::MakeCallback(&Counting::On<PacketEvent>, &seen));
  ns3::Simulator::Run();
  const RunResult result = fabric_->GetResult();
  EXPECT_EQ(result.status, RunStatus::kCompleted);
  EXPECT_EQ(seen.counts["/Railyard/CollectiveStart"], 1u);
  EXPECT_EQ(seen.counts["/Railyard/CollectiveEnd"], 1u);
  EXPECT_EQ(seen.counts["/Railyard/CallEnd"], 64u);
  EXPECT_EQ(seen.counts["/Railyard/Ended"], 1u);
  EXPECT_EQ(seen.counts["/Railyard/LinkState"], 4u);  // two directions, down and up
  uint64_t lost = 0;
  for (const auto& [path, count] : seen.counts) {
    if (path.starts_with("/Railyard/LinkList/")) lost += count;
  }
  EXPECT_GT(lost, 0u);
  uint64_t dropped = 0;  // by the link, or before they were on it
  for (const DropResult& drops : result.drops) dropped += drops.packets;
  EXPECT_EQ(seen.counts["/Railyard/PacketDropped"], dropped);
  EXPECT_GE(dropped, lost);
  for (const std::string name : {"Timeout", "CnpSent", "RateChanged"}) {
    uint64_t of_nics = 0;
    for (const auto& [path, count] : seen.counts) {
      if (path.starts_with("/Railyard/NicList/") && path.ends_with("/" + name)) of_nics += count;
    }
    EXPECT_EQ(of_nics, seen.counts["/Railyard/" + name]) << name;
  }
  for (const char* name : {"EcnMarked", "PauseSent", "Timeout", "CnpSent", "RateChanged"}) {
    EXPECT_GT(seen.counts[std::string("/Railyard/") + name], 0u) << name;
  }
}

TEST_F(FabricSimulationTest, DefaultsAndTheRunOfNs3Decide) {
  const auto simulate = [this] {
    ScenarioBuilder scenario("incast");
    scenario.Fabric(scenario::RailOptimized{.servers = 4})
        .Add(scenario::Collective{.operation = scenario::Operation::kGather,
                                  .size = DataSize::MiB(8)});
    Create(RailyardHelper(scenario));
    ns3::Simulator::Run();
    RunResult result = fabric_->GetResult();
    TearDown();
    return result;
  };
  const RunResult plain = simulate();
  ns3::Config::SetDefault("railyard::Switch::Alpha", ns3::DoubleValue(1.0 / 128));
  EXPECT_NE(simulate().simulated_time_ps, plain.simulated_time_ps);
  ns3::TypeId::AttributeInformation alpha;
  ASSERT_TRUE(ns3::TypeId::LookupByName("railyard::Switch").LookupAttributeByName("Alpha", &alpha));
  ns3::Config::SetDefault("railyard::Switch::Alpha", *alpha.originalInitialValue);
  ns3::RngSeedManager::SetRun(3);
  const RunResult third = simulate();
  ns3::RngSeedManager::SetRun(1);
  EXPECT_NE(third.seed, plain.seed);
  EXPECT_EQ(simulate().simulated_time_ps, plain.simulated_time_ps);
}

TEST_F(FabricSimulationTest, Ns3sSeedIsTheScenarios) {
  Create(RailyardHelper(TwoServers(1)));
  ns3::Simulator::Run();
  EXPECT_EQ(fabric_->GetResult().seed, 1u);
  TearDown();
  ns3::RngSeedManager::SetSeed(7);
  Create(RailyardHelper(TwoServers(1)));
  ns3::Simulator::Run();
  EXPECT_NE(fabric_->GetResult().seed, 1u);
}

TEST_F(FabricSimulationTest, ADownLinkLosesFramesAndItsDeviceIsDown) {
  Seen seen;
  ScenarioBuilder scenario = TwoServers(1);
  scenario.Set("workload.program.collectives[0].compute_before", "1s")
      .Add(scenario::Fault{.name = "cut",
                           .kind = scenario::Fault::Kind::kLinkDown,
                           .link = "server1/nic0--leaf0",
                           .at = Duration::Ms(2)});
  const RailyardHelper helper(scenario);
  Create(helper);
  InstallHosts(helper);
  InstallPing(hosts_.Get(0), addresses_.GetAddress(1), seen);
  devices_.Get(0)->TraceConnectWithoutContext("PhyTxDrop",
                                              ns3::MakeCallback(&Seen::OnFrame, &seen));
  ns3::Simulator::Stop(ns3::MilliSeconds(5));
  ns3::Simulator::Run();
  EXPECT_GT(seen.frames, 0u);
  EXPECT_TRUE(devices_.Get(0)->IsLinkUp());
  EXPECT_FALSE(devices_.Get(1)->IsLinkUp());
}

TEST_F(FabricSimulationTest, ADeviceKnowsThatItsLinkWasDownBefore) {
  ScenarioBuilder scenario = TwoServers(1);
  scenario.Set("workload.program.collectives[0].compute_before", "1s")
      .Add(scenario::Fault{.name = "cut",
                           .kind = scenario::Fault::Kind::kLinkDown,
                           .link = "server1/nic0--leaf0",
                           .at = Duration::Us(100)});
  const RailyardHelper helper(scenario);
  Create(helper);
  ns3::Simulator::Schedule(ns3::MicroSeconds(300), [&] { InstallHosts(helper); });
  ns3::Simulator::Stop(ns3::MicroSeconds(400));
  ns3::Simulator::Run();
  EXPECT_TRUE(devices_.Get(0)->IsLinkUp());
  EXPECT_FALSE(devices_.Get(1)->IsLinkUp());
}

TEST_F(FabricSimulationTest, AStatedAddressOfADeviceIsKept) {
  RailyardHelper helper(TwoServers());
  Create(helper);
  ns3::NodeContainer host(1);
  const auto free = helper.Install(fabric_, host, {"server0/nic0"});
  EXPECT_FALSE(ns3::Mac48Address::ConvertFrom(free.Get(0)->GetAddress()).IsBroadcast());
  const ns3::Mac48Address stated("00:00:00:00:00:77");
  helper.SetDeviceAttribute("Address", ns3::Mac48AddressValue(stated));
  const auto given = helper.Install(fabric_, host, {"server1/nic0"});
  EXPECT_EQ(ns3::Mac48Address::ConvertFrom(given.Get(0)->GetAddress()), stated);
}

TEST_F(FabricSimulationTest, AStatedQueueOfADeviceIsKept) {
  RailyardHelper helper(TwoServers(1));
  const auto queue = ns3::CreateObject<ns3::DropTailQueue<ns3::Packet>>();
  helper.SetDeviceAttribute("TxQueue", ns3::PointerValue(queue));
  Create(helper);
  const auto device = helper.Install(fabric_, ns3::NodeContainer(hosts_.Get(0)), {kNics[0]}).Get(0);
  EXPECT_EQ(ns3::DynamicCast<FabricNetDevice>(device)->GetQueue(), queue);
}

TEST_F(FabricSimulationTest, ErrorsOfTheScenarioAreAllThere) {
  Diagnostics diagnostics;
  EXPECT_EQ(RailyardHelper(TwoServers().Set("nccl.IB_TIMEOUT", 99).Set("mode", "FLOW"))
                .Create(diagnostics),
            nullptr);
  EXPECT_THAT(diagnostics.ToString(), HasSubstr("IB_TIMEOUT"));
  Diagnostics of_flows;
  EXPECT_EQ(RailyardHelper(TwoServers().Set("mode", "FLOW")).Create(of_flows), nullptr);
  EXPECT_THAT(of_flows.ToString(), HasSubstr("FLOW has no packets"));
}

}  // namespace
}  // namespace railyard
