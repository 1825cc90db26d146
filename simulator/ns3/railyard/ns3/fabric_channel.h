// SPDX-License-Identifier: GPL-2.0-only
// Presents the fabric as the channel of the net devices that are attached to it.
#pragma once

#include <cstddef>
#include <vector>

#include <ns3/channel.h>
#include <ns3/mac48-address.h>
#include <ns3/net-device.h>

namespace railyard {

class FabricNetDevice;

// Looks like an Ethernet to its devices: each reaches all others by their MAC addresses.
class FabricChannel : public ns3::Channel {
 public:
  static ns3::TypeId GetTypeId();
  FabricChannel() = default;

  std::size_t GetNDevices() const override;
  ns3::Ptr<ns3::NetDevice> GetDevice(std::size_t index) const override;

  void Add(const ns3::Ptr<FabricNetDevice>& device);
  const std::vector<ns3::Ptr<FabricNetDevice>>& devices() const { return devices_; }
  // Returns null if no device has the address.
  ns3::Ptr<FabricNetDevice> Find(ns3::Mac48Address address) const;

 protected:
  void DoDispose() override;

 private:
  std::vector<ns3::Ptr<FabricNetDevice>> devices_;
};

}  // namespace railyard
