// SPDX-License-Identifier: GPL-2.0-only
#include "railyard/ns3/fabric_net_device.h"

#include <algorithm>
#include <array>
#include <string>

#include <ns3/ethernet-header.h>
#include <ns3/ipv4-header.h>
#include <ns3/ipv6-header.h>
#include <ns3/log.h>
#include <ns3/pointer.h>
#include <ns3/uinteger.h>

#include "railyard/ns3/fabric_simulation.h"
#include "simulator/ns3/fabric_bridge.h"
#include "simulator/ns3/frame_reader.h"

NS_LOG_COMPONENT_DEFINE("RailyardFabricNetDevice");

namespace railyard {

NS_OBJECT_ENSURE_REGISTERED(FabricNetDevice);

namespace {

constexpr uint32_t kMtuDefault = 1500;
constexpr uint32_t kMtuMax = 9178;  // 9,216 B on the wire, for which switches compute headroom
constexpr uint32_t kMtuMin = 68;    // RFC 791

// Sets "congestion experienced" in the frame's IP header.
ns3::Ptr<ns3::Packet> Marked(const ns3::Packet& frame) {
  const ns3::Ptr<ns3::Packet> marked = frame.Copy();
  ns3::EthernetHeader ethernet(false);
  marked->RemoveHeader(ethernet);
  if (ethernet.GetLengthType() == kEtherTypeIpv4) {
    ns3::Ipv4Header header;
    marked->RemoveHeader(header);
    header.SetEcn(ns3::Ipv4Header::ECN_CE);
    if (ns3::Node::ChecksumEnabled()) header.EnableChecksum();
    marked->AddHeader(header);
  } else {
    ns3::Ipv6Header header;
    marked->RemoveHeader(header);
    header.SetEcn(ns3::Ipv6Header::ECN_CE);
    marked->AddHeader(header);
  }
  marked->AddHeader(ethernet);
  return marked;
}

}  // namespace

// A list of attributes and trace sources. NOLINTNEXTLINE(readability-function-size)
ns3::TypeId FabricNetDevice::GetTypeId() {
  constexpr auto kSignature = "ns3::Packet::TracedCallback";
  static ns3::TypeId type_id =
      ns3::TypeId("railyard::FabricNetDevice")
          .SetParent<ns3::NetDevice>()
          .SetGroupName("Railyard")
          .AddConstructor<FabricNetDevice>()
          .AddAttribute("Address",
                        "The MAC address; a helper gives a device one if none is stated.",
                        ns3::Mac48AddressValue(ns3::Mac48Address("ff:ff:ff:ff:ff:ff")),
                        ns3::MakeMac48AddressAccessor(&FabricNetDevice::address_),
                        ns3::MakeMac48AddressChecker())
          .AddAttribute("Mtu", "The largest packet without its Ethernet header, in bytes.",
                        ns3::UintegerValue(kMtuDefault),
                        ns3::MakeUintegerAccessor(&FabricNetDevice::mtu_),
                        ns3::MakeUintegerChecker<uint16_t>(kMtuMin, kMtuMax))
          .AddAttribute("TxQueue", "The queue in which frames wait for the NIC's port.",
                        ns3::PointerValue(), ns3::MakePointerAccessor(&FabricNetDevice::queue_),
                        ns3::MakePointerChecker<ns3::Queue<ns3::Packet>>())
          .AddTraceSource("MacTx", "A packet has come from the node's network stack.",
                          ns3::MakeTraceSourceAccessor(&FabricNetDevice::mac_tx_), kSignature)
          .AddTraceSource("MacTxDrop", "The device has dropped a frame before sending it.",
                          ns3::MakeTraceSourceAccessor(&FabricNetDevice::mac_tx_drop_), kSignature)
          .AddTraceSource("MacRx", "A packet for this device goes to the network stack.",
                          ns3::MakeTraceSourceAccessor(&FabricNetDevice::mac_rx_), kSignature)
          .AddTraceSource("MacPromiscRx", "A packet goes to the promiscuous network stack.",
                          ns3::MakeTraceSourceAccessor(&FabricNetDevice::mac_promiscuous_rx_),
                          kSignature)
          .AddTraceSource("PhyTxBegin", "A frame joins the NIC's port.",
                          ns3::MakeTraceSourceAccessor(&FabricNetDevice::phy_tx_begin_), kSignature)
          .AddTraceSource("PhyTxDrop", "The fabric has lost a frame of this device.",
                          ns3::MakeTraceSourceAccessor(&FabricNetDevice::phy_tx_drop_), kSignature)
          .AddTraceSource("PhyRxEnd", "A frame has come from the fabric.",
                          ns3::MakeTraceSourceAccessor(&FabricNetDevice::phy_rx_end_), kSignature)
          .AddTraceSource("Sniffer", "Frames as a sniffer on the device sees them.",
                          ns3::MakeTraceSourceAccessor(&FabricNetDevice::sniffer_), kSignature)
          .AddTraceSource("PromiscSniffer", "Frames as a promiscuous sniffer sees them.",
                          ns3::MakeTraceSourceAccessor(&FabricNetDevice::promiscuous_sniffer_),
                          kSignature);
  return type_id;
}

FabricNetDevice::FabricNetDevice() { NS_LOG_FUNCTION(this); }

void FabricNetDevice::SetFabric(const ns3::Ptr<FabricSimulation>& fabric, uint32_t nic) {
  fabric_ = fabric;
  nic_ = nic;
  link_changed_();
}

void FabricNetDevice::SetLinkUp(bool is_up) {
  if (is_up == is_link_up_) return;
  is_link_up_ = is_up;
  link_changed_();
}

void FabricNetDevice::DoDispose() {
  fabric_ = nullptr;
  node_ = nullptr;
  queue_ = nullptr;
  receive_ = ReceiveCallback();
  promiscuous_receive_ = PromiscReceiveCallback();
  ns3::NetDevice::DoDispose();
}

// --- Sending -------------------------------------------------------------------------------------

bool FabricNetDevice::Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& destination,
                           uint16_t protocol) {
  NS_LOG_FUNCTION(this << packet << destination << protocol);
  mac_tx_(packet);
  ns3::EthernetHeader header(false);
  header.SetSource(address_);
  header.SetDestination(ns3::Mac48Address::ConvertFrom(destination));
  header.SetLengthType(protocol);
  packet->AddHeader(header);
  const bool fits = packet->GetSize() + kFramingBytes <= UINT16_MAX;
  if (fabric_ == nullptr || !fits || !queue_->Enqueue(packet)) {
    NS_LOG_LOGIC("dropped before it is sent: " << *packet);
    mac_tx_drop_(packet);
    return false;
  }
  SendWaiting();
  return true;
}

bool FabricNetDevice::SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address& source,
                               const ns3::Address& destination, uint16_t protocol) {
  if (ns3::Mac48Address::ConvertFrom(source) == address_) {
    return Send(packet, destination, protocol);
  }
  NS_LOG_WARN("a frame from another address: the device sends from its own only");
  mac_tx_drop_(packet);
  return false;
}

void FabricNetDevice::SendWaiting() {
  if (fabric_ == nullptr) return;
  while (const ns3::Ptr<const ns3::Packet> next = queue_->Peek()) {
    if (!SendFrame(next)) return;
    queue_->Dequeue();
  }
}

bool FabricNetDevice::SendFrame(const ns3::Ptr<const ns3::Packet>& frame) {
  FabricBridge& bridge = *fabric_->bridge();
  const FrameHeaders headers = ReadFrame(*frame);
  std::vector<ns3::Ptr<FabricNetDevice>> receivers;
  if (headers.destination.IsGroup()) {
    receivers = fabric_->GetChannel()->devices();
    std::erase_if(receivers, [this](const auto& device) { return PeekPointer(device) == this; });
  } else if (const auto receiver = fabric_->GetChannel()->Find(headers.destination)) {
    receivers.push_back(receiver);
  }
  const auto way_to = [&](const FabricNetDevice& receiver) -> FabricBridge::Way {
    return {.from = DeviceId{nic_}, .to = DeviceId{receiver.nic()}, .entropy = headers.flow_hash};
  };
  for (const auto& receiver : receivers) {
    if (!bridge.HasRoom(way_to(*receiver))) return false;
  }
  if (receivers.empty()) {
    NS_LOG_LOGIC("nobody has the address " << headers.destination);
    mac_tx_drop_(frame);
    return true;
  }
  phy_tx_begin_(frame);
  sniffer_(frame);
  promiscuous_sniffer_(frame);
  const uint32_t wire_bytes = std::max(frame->GetSize(), kFrameBytesMin) + kFramingBytes;
  for (const auto& receiver : receivers) {
    bridge.Send(
        way_to(*receiver),
        {.packet = frame, .wire_bytes = wire_bytes, .is_ecn_capable = headers.is_ecn_capable});
  }
  return true;
}

// --- Receiving -----------------------------------------------------------------------------------

void FabricNetDevice::Receive(ns3::Ptr<const ns3::Packet> frame, bool is_marked) {
  if (node_ == nullptr) return;  // it has been disposed of
  const ns3::Ptr<ns3::Packet> packet = is_marked ? Marked(*frame) : frame->Copy();
  NS_LOG_FUNCTION(this << packet << is_marked);
  phy_rx_end_(packet);
  sniffer_(packet);
  promiscuous_sniffer_(packet);
  ns3::EthernetHeader header(false);
  packet->RemoveHeader(header);
  const ns3::Mac48Address destination = header.GetDestination();
  PacketType type = PACKET_HOST;
  if (destination.IsBroadcast()) {
    type = PACKET_BROADCAST;
  } else if (destination.IsGroup()) {
    type = PACKET_MULTICAST;
  }
  if (!promiscuous_receive_.IsNull()) {
    mac_promiscuous_rx_(packet);
    promiscuous_receive_(this, packet, header.GetLengthType(), header.GetSource(), destination,
                         type);
  }
  mac_rx_(packet);
  if (!receive_.IsNull()) receive_(this, packet, header.GetLengthType(), header.GetSource());
}

// --- Properties ----------------------------------------------------------------------------------

ns3::Ptr<ns3::Channel> FabricNetDevice::GetChannel() const {
  return fabric_ == nullptr ? nullptr : fabric_->GetChannel();
}

void FabricNetDevice::SetAddress(ns3::Address address) {
  address_ = ns3::Mac48Address::ConvertFrom(address);
}

bool FabricNetDevice::SetMtu(uint16_t mtu) {
  if (mtu < kMtuMin || mtu > kMtuMax) return false;
  mtu_ = mtu;
  return true;
}

void FabricNetDevice::AddLinkChangeCallback(ns3::Callback<void> callback) {
  link_changed_.ConnectWithoutContext(callback);
}

ns3::Address FabricNetDevice::GetBroadcast() const { return ns3::Mac48Address::GetBroadcast(); }

ns3::Address FabricNetDevice::GetMulticast(ns3::Ipv4Address group) const {
  return ns3::Mac48Address::GetMulticast(group);
}

ns3::Address FabricNetDevice::GetMulticast(ns3::Ipv6Address group) const {
  return ns3::Mac48Address::GetMulticast(group);
}

}  // namespace railyard
