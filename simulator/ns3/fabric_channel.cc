// SPDX-License-Identifier: GPL-2.0-only
#include "railyard/ns3/fabric_channel.h"

#include "railyard/ns3/fabric_net_device.h"

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(FabricChannel);

ns3::TypeId FabricChannel::GetTypeId() {
  static ns3::TypeId type_id = ns3::TypeId("railyard::FabricChannel")
                                   .SetParent<ns3::Channel>()
                                   .SetGroupName("Railyard")
                                   .AddConstructor<FabricChannel>();
  return type_id;
}

std::size_t FabricChannel::GetNDevices() const { return devices_.size(); }

ns3::Ptr<ns3::NetDevice> FabricChannel::GetDevice(std::size_t index) const {
  return devices_.at(index);
}

void FabricChannel::Add(const ns3::Ptr<FabricNetDevice>& device) { devices_.push_back(device); }

ns3::Ptr<FabricNetDevice> FabricChannel::Find(ns3::Mac48Address address) const {
  for (const auto& device : devices_) {
    if (ns3::Mac48Address::ConvertFrom(device->GetAddress()) == address) return device;
  }
  return nullptr;
}

void FabricChannel::DoDispose() {
  devices_.clear();
  ns3::Channel::DoDispose();
}

}  // namespace railyard
