// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ns3/ptr.h>

#include "simulator/transport/nic/nic.h"
#include "simulator/transport/stacks/network_stack_settings.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Holds the NICs of a fabric before its transports exist, so that a program can set their
// attributes and connect to their trace sources.
class NicList {
 public:
  // `graph` and `stated`, the scenario's settings, must outlive this.
  NicList(const FabricGraph& graph, const NetworkStackSettings& stated);

  uint32_t size() const { return static_cast<uint32_t>(devices_.size()); }
  // Returns the NICs in the fabric's order. Precondition: index < size().
  DeviceId device(uint32_t index) const { return devices_[index]; }
  const ns3::Ptr<Nic>& nic(uint32_t index) const { return nics_[devices_[index]]; }

  // Returns whether any NIC has other attributes than the scenario states.
  bool HasChanged() const;
  // Returns the scenario's settings with these NICs and their attributes. Aborts where the
  // attributes of a NIC contradict each other or the scenario.
  NetworkStackSettings Settings() const;

 private:
  void CheckAttributes(DeviceId nic) const;

  const FabricGraph& graph_;
  const NetworkStackSettings& stated_;
  std::vector<ns3::Ptr<Nic>> nics_;               // by device; null if it is no NIC
  std::vector<DeviceId> devices_;                 // of the NICs
  std::vector<std::vector<std::string>> before_;  // values of the attributes, by NIC
};

}  // namespace railyard
