// SPDX-License-Identifier: GPL-2.0-only
#include "railyard/ns3/railyard_helper.h"

#include <ios>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ns3/abort.h>
#include <ns3/log.h>
#include <ns3/mac48-address.h>
#include <ns3/net-device-queue-interface.h>
#include <ns3/pcap-file-wrapper.h>
#include <ns3/queue.h>

#include "railyard/ns3/fabric_net_device.h"
#include "simulator/engine/virtual_time.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/fabric/port/switch.h"
#include "simulator/fabric/routing_delays.h"
#include "simulator/transport/nic/nic.h"

NS_LOG_COMPONENT_DEFINE("RailyardHelper");

namespace railyard {

void RailyardHelper::UseEngine() {
  InitVirtualTime();
  // The linker takes no type out of a static library that nobody calls.
  for (const auto type :
       {&FabricSimulation::GetTypeId, &FabricLink::GetTypeId, &FabricChannel::GetTypeId,
        &FabricNetDevice::GetTypeId, &FabricNetwork::GetTypeId, &Switch::GetTypeId, &Nic::GetTypeId,
        &Routing::GetTypeId}) {
    NS_LOG_LOGIC("type " << type());
  }
}

RailyardHelper::RailyardHelper(ScenarioBuilder scenario)
    : scenario_(std::move(scenario)),
      simulations_(FabricSimulation::GetTypeId().GetName()),
      devices_(FabricNetDevice::GetTypeId().GetName()),
      queues_("ns3::DropTailQueue<Packet>") {}

RailyardHelper::RailyardHelper(const std::string& scenario_file)
    : RailyardHelper(ScenarioBuilder::Read(scenario_file)) {}

void RailyardHelper::SetAttribute(const std::string& name, const ns3::AttributeValue& value) {
  simulations_.Set(name, value);
}

void RailyardHelper::SetDeviceAttribute(const std::string& name, const ns3::AttributeValue& value) {
  devices_.Set(name, value);
}

void RailyardHelper::SetQueue(const std::string& type) { queues_.SetTypeId(type); }

void RailyardHelper::SetQueueAttribute(const std::string& name, const ns3::AttributeValue& value) {
  queues_.Set(name, value);
}

ns3::Ptr<FabricSimulation> RailyardHelper::Create(Diagnostics& diagnostics) const {
  const auto fabric = simulations_.Create<FabricSimulation>();
  return fabric->Build(scenario_, diagnostics) ? fabric : nullptr;
}

ns3::NetDeviceContainer RailyardHelper::Install(const ns3::Ptr<FabricSimulation>& fabric,
                                                const ns3::NodeContainer& nodes,
                                                const std::vector<std::string>& nics) const {
  NS_ABORT_MSG_IF(nodes.GetN() != nics.size(),
                  fmt::format("{} nodes at {} NICs", nodes.GetN(), nics.size()));
  ns3::NetDeviceContainer devices;
  for (uint32_t i = 0; i < nodes.GetN(); ++i) {
    const auto device = devices_.Create<FabricNetDevice>();
    if (ns3::Mac48Address::ConvertFrom(device->GetAddress()).IsBroadcast()) {  // none is stated
      device->SetAddress(ns3::Mac48Address::Allocate());
    }
    if (device->GetQueue() == nullptr) device->SetQueue(queues_.Create<ns3::Queue<ns3::Packet>>());
    const auto queue = device->GetQueue();
    nodes.Get(i)->AddDevice(device);
    NS_ABORT_MSG_IF(!fabric->Attach(device, nics[i]),
                    fmt::format("no device can be at {} (expected a NIC without a device, one of "
                                "{})",
                                nics[i], fmt::join(fabric->NicNames(), ", ")));
    // Queue discs of ns-3's traffic control stop while the device's queue is full.
    const auto interface = ns3::CreateObject<ns3::NetDeviceQueueInterface>();
    device->AggregateObject(interface);
    interface->GetTxQueue(0)->ConnectQueueTraces(queue);
    devices.Add(device);
  }
  return devices;
}

void RailyardHelper::EnablePcapInternal(std::string prefix, ns3::Ptr<ns3::NetDevice> device,
                                        bool promiscuous, bool explicit_filename) {
  const auto fabric_device = ns3::DynamicCast<FabricNetDevice>(device);
  if (fabric_device == nullptr) {
    NS_LOG_INFO("not a FabricNetDevice: " << device);
    return;
  }
  ns3::PcapHelper pcap;
  const std::string name =
      explicit_filename ? prefix : pcap.GetFilenameFromDevice(prefix, fabric_device);
  const auto file = pcap.CreateFile(name, std::ios::out, ns3::PcapHelper::DLT_EN10MB);
  pcap.HookDefaultSink<FabricNetDevice>(fabric_device, promiscuous ? "PromiscSniffer" : "Sniffer",
                                        file);
}

}  // namespace railyard
