// SPDX-License-Identifier: GPL-2.0-only
// Connects an ns-3 node to a NIC of a fabric as an Ethernet device. Frames of the node's network
// stack cross the fabric's links, queues and faults together with the collectives' packets.
#pragma once

#include <cstdint>

#include <ns3/address.h>
#include <ns3/mac48-address.h>
#include <ns3/net-device.h>
#include <ns3/node.h>
#include <ns3/packet.h>
#include <ns3/ptr.h>
#include <ns3/queue.h>
#include <ns3/traced-callback.h>

#include "railyard/ns3/fabric_channel.h"

namespace railyard {

class FabricSimulation;

// Sends frames in the order of a separate queue. On each link a frame takes the time of its bytes
// with preamble, frame check sequence and gap. Broadcast and multicast frames are copied at the
// sender, once per other device of the fabric. The device cannot be part of a bridge, because it
// sends from its own address only.
//
// Its attributes are Address, Mtu and TxQueue. It has the trace sources of ns-3's devices;
// PhyTxDrop fires for frames that the fabric loses. Switches mark only frames whose IP header says
// that the sender reacts to marks (ECT).
class FabricNetDevice : public ns3::NetDevice {
 public:
  // The bytes that a frame takes on a wire in addition to an ns-3 packet with its Ethernet header:
  // preamble 8, frame check sequence 4, gap 12 (IEEE 802.3).
  static constexpr uint32_t kFramingBytes = 24;
  static constexpr uint32_t kFrameBytesMin = 60;  // without the frame check sequence

  static ns3::TypeId GetTypeId();
  FabricNetDevice();

  void SetQueue(const ns3::Ptr<ns3::Queue<ns3::Packet>>& queue) { queue_ = queue; }
  ns3::Ptr<ns3::Queue<ns3::Packet>> GetQueue() const { return queue_; }

  // FabricSimulation::Attach() calls this; `nic` is the NIC's number among the fabric graph's
  // devices.
  void SetFabric(const ns3::Ptr<FabricSimulation>& fabric, uint32_t nic);
  uint32_t nic() const { return nic_; }
  // The fabric calls these when a frame has arrived, when a frame of this device was lost, when the
  // NIC's port has room again, and when the NIC's links have gone down or come up.
  void Receive(ns3::Ptr<const ns3::Packet> frame, bool is_marked);
  void NotifyLost(const ns3::Ptr<const ns3::Packet>& frame) { phy_tx_drop_(frame); }
  void SendWaiting();
  void SetLinkUp(bool is_up);

  // These implement ns3::NetDevice.
  void SetIfIndex(uint32_t index) override { if_index_ = index; }
  uint32_t GetIfIndex() const override { return if_index_; }
  ns3::Ptr<ns3::Channel> GetChannel() const override;
  void SetAddress(ns3::Address address) override;
  ns3::Address GetAddress() const override { return address_; }
  bool SetMtu(uint16_t mtu) override;
  uint16_t GetMtu() const override { return mtu_; }
  bool IsLinkUp() const override { return is_link_up_ && fabric_ != nullptr; }
  void AddLinkChangeCallback(ns3::Callback<void> callback) override;
  bool IsBroadcast() const override { return true; }
  ns3::Address GetBroadcast() const override;
  bool IsMulticast() const override { return true; }
  ns3::Address GetMulticast(ns3::Ipv4Address group) const override;
  ns3::Address GetMulticast(ns3::Ipv6Address group) const override;
  bool IsBridge() const override { return false; }
  bool IsPointToPoint() const override { return false; }
  bool Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& destination,
            uint16_t protocol) override;
  bool SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address& source,
                const ns3::Address& destination, uint16_t protocol) override;
  ns3::Ptr<ns3::Node> GetNode() const override { return node_; }
  void SetNode(ns3::Ptr<ns3::Node> node) override { node_ = node; }
  bool NeedsArp() const override { return true; }
  void SetReceiveCallback(ReceiveCallback callback) override { receive_ = callback; }
  void SetPromiscReceiveCallback(PromiscReceiveCallback callback) override {
    promiscuous_receive_ = callback;
  }
  bool SupportsSendFrom() const override { return false; }

 protected:
  void DoDispose() override;

 private:
  // Returns false if the port has no room for the frame yet.
  bool SendFrame(const ns3::Ptr<const ns3::Packet>& frame);

  ns3::Ptr<FabricSimulation> fabric_;
  uint32_t nic_ = 0;
  ns3::Ptr<ns3::Node> node_;
  ns3::Ptr<ns3::Queue<ns3::Packet>> queue_;
  ns3::Mac48Address address_;
  uint32_t if_index_ = 0;
  uint16_t mtu_ = 1500;
  bool is_link_up_ = true;
  ReceiveCallback receive_;
  PromiscReceiveCallback promiscuous_receive_;
  ns3::TracedCallback<> link_changed_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> mac_tx_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> mac_tx_drop_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> mac_rx_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> mac_promiscuous_rx_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> phy_tx_begin_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> phy_tx_drop_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> phy_rx_end_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> sniffer_;
  ns3::TracedCallback<ns3::Ptr<const ns3::Packet>> promiscuous_sniffer_;
};

}  // namespace railyard
