// SPDX-License-Identifier: GPL-2.0-only
// Makes a fabric with its collectives, and attaches devices to it, in ns-3's style:
//
//   RailyardHelper::UseEngine();
//   RailyardHelper helper("scenario.textproto");
//   const auto fabric = helper.Create(diagnostics);
//   helper.Install(fabric, nodes, {"server0/nic0", "server1/nic0"});
//   ns3::Simulator::Run();
//   const railyard::RunResult result = fabric->GetResult();
#pragma once

#include <string>
#include <vector>

#include <ns3/attribute.h>
#include <ns3/net-device-container.h>
#include <ns3/node-container.h>
#include <ns3/object-factory.h>
#include <ns3/ptr.h>
#include <ns3/trace-helper.h>

#include "railyard/ns3/fabric_simulation.h"
#include "railyard/scenario_builder.h"

namespace railyard {

class RailyardHelper : public ns3::PcapHelperForDevice {
 public:
  // Makes Railyard's engine ns-3's simulator, and sets ns-3's time resolution to picoseconds. Must
  // be called before anything else of ns-3 is used, even its command line.
  static void UseEngine();

  explicit RailyardHelper(ScenarioBuilder scenario);
  // Reads a scenario file. Throws EnvironmentError if a file that exists cannot be read.
  explicit RailyardHelper(const std::string& scenario_file);

  // These set attributes of the FabricSimulation and of each FabricNetDevice, and the type of the
  // devices' queues: "ns3::DropTailQueue<Packet>".
  void SetAttribute(const std::string& name, const ns3::AttributeValue& value);
  void SetDeviceAttribute(const std::string& name, const ns3::AttributeValue& value);
  void SetQueue(const std::string& type);
  void SetQueueAttribute(const std::string& name, const ns3::AttributeValue& value);

  // Builds the fabric; its workload begins when the simulator runs. If the scenario has errors,
  // returns null and reports them in `diagnostics`.
  ns3::Ptr<FabricSimulation> Create(Diagnostics& diagnostics) const;

  // Gives node i a device at the i-th NIC of the list. The program ends with a message if there is
  // no such NIC, or if it has a device already.
  ns3::NetDeviceContainer Install(const ns3::Ptr<FabricSimulation>& fabric,
                                  const ns3::NodeContainer& nodes,
                                  const std::vector<std::string>& nics) const;

 private:
  void EnablePcapInternal(std::string prefix, ns3::Ptr<ns3::NetDevice> device, bool promiscuous,
                          bool explicit_filename) override;

  ScenarioBuilder scenario_;
  ns3::ObjectFactory simulations_;
  ns3::ObjectFactory devices_;
  ns3::ObjectFactory queues_;
};

}  // namespace railyard
