// SPDX-License-Identifier: GPL-2.0-only
// A program of ns-3's: an AllReduce between two servers while one of them writes a checkpoint to
// the other over ns-3's TCP, on the same cables. Prints how long each AllReduce took, without the
// checkpoint and with it.
#include <cstdio>
#include <string>

// ns-3.37's core-module.h is not C++20.
#include <ns3/boolean.h>
#include <ns3/bulk-send-helper.h>
#include <ns3/command-line.h>
#include <ns3/config.h>
#include <ns3/inet-socket-address.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/node-container.h>
#include <ns3/packet-sink-helper.h>
#include <ns3/packet-sink.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/uinteger.h>

#include "railyard/ns3/railyard_helper.h"

namespace {

using ns3::UintegerValue;

void PrintCollective(const railyard::CollectiveEvent& event) {
  std::printf("  %s of %llu bytes: %.0f us\n", event.kind.data(),
              static_cast<unsigned long long>(event.bytes),
              (event.end - event.start).ToDouble(ns3::Time::US));
}

railyard::ScenarioBuilder TwoServers(uint32_t repeat) {
  railyard::ScenarioBuilder scenario("checkpoint_traffic");
  scenario.Fabric(railyard::scenario::RailOptimized{.servers = 2})
      .Add(railyard::scenario::Collective{.size = railyard::DataSize::MiB(64), .repeat = repeat})
      .Set("workload.algorithm", "RING");
  return scenario;
}

// Returns false if the scenario has errors.
bool Simulate(bool writes_checkpoint, uint32_t repeat, const std::string& pcap) {
  std::printf("%s a checkpoint\n", writes_checkpoint ? "with" : "without");
  railyard::RailyardHelper helper(TwoServers(repeat));
  helper.SetAttribute("StopSimulator", ns3::BooleanValue(true));
  helper.SetAttribute("StartTime", ns3::TimeValue(ns3::MilliSeconds(1)));
  helper.SetDeviceAttribute("Mtu", UintegerValue(9000));
  railyard::Diagnostics diagnostics;
  const auto fabric = helper.Create(diagnostics);
  std::fputs(diagnostics.ToString().c_str(), stderr);
  if (fabric == nullptr) return false;

  ns3::NodeContainer hosts(2);
  const auto devices = helper.Install(fabric, hosts, {"server0/nic0", "server1/nic0"});
  ns3::InternetStackHelper().Install(hosts);
  const auto addresses = ns3::Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
  if (!pcap.empty()) helper.EnablePcap(pcap, devices);

  constexpr uint16_t kPort = 9;
  const ns3::InetSocketAddress storage(addresses.GetAddress(1), kPort);
  const auto sinks = ns3::PacketSinkHelper("ns3::TcpSocketFactory", storage).Install(hosts.Get(1));
  if (writes_checkpoint) {
    ns3::BulkSendHelper("ns3::TcpSocketFactory", storage).Install(hosts.Get(0));
  }
  ns3::Config::ConnectWithoutContext("/Railyard/CollectiveEnd",
                                     ns3::MakeCallback(&PrintCollective));
  ns3::Simulator::Run();
  if (writes_checkpoint) {
    const auto bytes = ns3::DynamicCast<ns3::PacketSink>(sinks.Get(0))->GetTotalRx();
    std::printf("  the checkpoint moved %.1f GB/s meanwhile\n",
                static_cast<double>(bytes) / ns3::Simulator::Now().ToDouble(ns3::Time::NS));
  }
  ns3::Simulator::Destroy();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  railyard::RailyardHelper::UseEngine();
  uint32_t repeat = 3;
  std::string pcap;
  ns3::CommandLine command(__FILE__);
  command.AddValue("repeat", "how many AllReduces there are", repeat);
  command.AddValue("pcap", "write PREFIX-0-0.pcap and PREFIX-1-0.pcap, with the checkpoint", pcap);
  command.Parse(argc, argv);
  // ns-3 waits up to 10 ms before it asks for an address. TCP as hosts with such NICs have it.
  ns3::Config::SetDefault("ns3::ArpL3Protocol::RequestJitter",
                          ns3::StringValue("ns3::ConstantRandomVariable[Constant=0]"));
  ns3::Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(8948));
  ns3::Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(16 << 20));
  ns3::Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(16 << 20));
  return Simulate(false, repeat, "") && Simulate(true, repeat, pcap) ? 0 : 2;
}
