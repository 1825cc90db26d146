// SPDX-License-Identifier: GPL-2.0-only
// ns-3's own network stack on our engine: TCP and UDP over a lossy bottleneck leave the same trace
// as on ns3::DefaultSimulatorImpl.
#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <ns3/application-container.h>
#include <ns3/boolean.h>
#include <ns3/bulk-send-helper.h>
#include <ns3/config.h>
#include <ns3/double.h>
#include <ns3/error-model.h>
#include <ns3/inet-socket-address.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/ipv4-global-routing-helper.h>
#include <ns3/net-device.h>
#include <ns3/node-container.h>
#include <ns3/nstime.h>
#include <ns3/packet-sink-helper.h>
#include <ns3/packet.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/pointer.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/udp-echo-helper.h>
#include <ns3/uinteger.h>

#include "tests/engine/forked_run.h"

namespace railyard {
namespace {

// Three nodes in a row. TCP BulkSend crosses a bottleneck with a queue of 20 packets and 0.1 %
// random loss, UDP echoes beside it; stopped in the middle and resumed.
class BottleneckNetwork {
 public:
  explicit BottleneckNetwork(std::string& trace) : trace_(trace) {
    nodes_.Create(3);
    ns3::InternetStackHelper stack;
    stack.Install(nodes_);
    const ns3::NetDeviceContainer access = Connect(0, 1, "10Mbps", "2ms");
    const ns3::NetDeviceContainer bottleneck = Connect(1, 2, "4Mbps", "5ms");
    const auto loss = ns3::CreateObject<ns3::RateErrorModel>();
    loss->SetUnit(ns3::RateErrorModel::ERROR_UNIT_PACKET);
    loss->SetRate(0.001);
    loss->AssignStreams(7);
    bottleneck.Get(1)->SetAttribute("ReceiveErrorModel", ns3::PointerValue(loss));

    ns3::Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    addresses.Assign(access);
    addresses.NewNetwork();
    const ns3::Ipv4Address server = addresses.Assign(bottleneck).GetAddress(1);
    ns3::Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    ns3::BulkSendHelper sender("ns3::TcpSocketFactory", ns3::InetSocketAddress(server, 80));
    sender.Install(nodes_.Get(0)).Start(ns3::MilliSeconds(10));
    ns3::PacketSinkHelper sink("ns3::TcpSocketFactory",
                               ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), 80));
    sink.Install(nodes_.Get(2)).Start(ns3::Seconds(0));
    ns3::UdpEchoServerHelper echo_server(9);
    echo_server.Install(nodes_.Get(2)).Start(ns3::Seconds(0));
    ns3::UdpEchoClientHelper echo_client(server, 9);
    echo_client.SetAttribute("MaxPackets", ns3::UintegerValue(1000));
    echo_client.SetAttribute("Interval", ns3::TimeValue(ns3::MilliSeconds(10)));
    echo_client.Install(nodes_.Get(0)).Start(ns3::Seconds(1));
  }

  void Run() {
    ns3::Simulator::Schedule(ns3::MilliSeconds(20), &BottleneckNetwork::TraceWindow, this);
    for (const double stop_seconds : {2.5, 5.0}) {
      ns3::Simulator::Stop(ns3::Seconds(stop_seconds) - ns3::Simulator::Now());
      ns3::Simulator::Run();
      Log("stopped after " + std::to_string(ns3::Simulator::GetEventCount()) + " events");
    }
    ns3::Simulator::Destroy();
  }

 private:
  ns3::NetDeviceContainer Connect(uint32_t from, uint32_t to, const std::string& rate,
                                  const std::string& delay) {
    ns3::PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", ns3::StringValue(rate));
    link.SetChannelAttribute("Delay", ns3::StringValue(delay));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::StringValue("20p"));
    ns3::NetDeviceContainer devices =
        link.Install(ns3::NodeContainer(nodes_.Get(from), nodes_.Get(to)));
    for (const char* const source : {"MacTx", "MacRx", "PhyTxEnd", "PhyRxDrop", "MacTxDrop"}) {
      for (uint32_t i = 0; i < devices.GetN(); ++i) {
        devices.Get(i)->TraceConnect(source, source,
                                     ns3::MakeCallback(&BottleneckNetwork::OnPacket, this));
      }
    }
    return devices;
  }

  void TraceWindow() {
    ns3::Config::ConnectWithoutContext(
        "/NodeList/0/$ns3::TcpL4Protocol/SocketList/*/CongestionWindow",
        ns3::MakeCallback(&BottleneckNetwork::OnWindow, this));
  }

  void OnPacket(std::string source, ns3::Ptr<const ns3::Packet> packet) {
    Log(std::move(source) + " packet " + std::to_string(packet->GetUid()) + " of " +
        std::to_string(packet->GetSize()) + " bytes");
  }

  void OnWindow(uint32_t from_bytes, uint32_t to_bytes) {
    Log("window " + std::to_string(from_bytes) + " to " + std::to_string(to_bytes));
  }

  void Log(const std::string& line) {
    trace_ += std::to_string(ns3::Simulator::Now().GetTimeStep()) + " context " +
              std::to_string(ns3::Simulator::GetContext()) + " " + line + '\n';
  }

  std::string& trace_;
  ns3::NodeContainer nodes_;
};

TEST(Ns3NetworkEquivalenceTest, TcpAndUdpOverALossyBottleneckLeaveTheSameTrace) {
  const auto program = [](std::string& trace) { BottleneckNetwork(trace).Run(); };
  const std::string expected = RunForked(Implementation::kNs3Default, program);
  const std::string actual = RunForked(Implementation::kFabric, program);
  // The comparison is meaningful only if windows moved and packets were lost.
  EXPECT_GT(std::count(expected.begin(), expected.end(), '\n'), 10'000);
  EXPECT_NE(expected.find("window "), std::string::npos);
  EXPECT_NE(expected.find("PhyRxDrop"), std::string::npos);
  EXPECT_EQ(FirstDifference(expected, actual), "");
}

}  // namespace
}  // namespace railyard
