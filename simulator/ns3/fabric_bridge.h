// SPDX-License-Identifier: GPL-2.0-only
// Carries ns-3's packets as packets of the fabric, from NIC to NIC. An ns3::Packet is kept in a
// table while a packet of its size crosses the fabric's links and queues.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include <ns3/packet.h>
#include <ns3/ptr.h>

#include "simulator/fabric/fabric_network.h"
#include "simulator/fabric/packet_sink.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {

class FabricNetDevice;

// Sends the frames of all attached devices. A NIC's port is shared by its device and its queue
// pairs: the device keeps at most half of the NIC's read-ahead (ReadAheadPs) in the port, so that
// each gets about half of the port's rate if both have data for all of it.
class FabricBridge final : public PacketSink {
 public:
  // All references must outlive this. `full_wire_bytes` is the size of a full packet of the NICs.
  FabricBridge(const FabricGraph& graph, FabricNetwork& network, const EcmpRouting& routing,
               uint32_t full_wire_bytes);

  // Registers `device` at the NIC; it receives the frames that are sent to this NIC.
  void Attach(DeviceId nic, FabricNetDevice& device) { devices_[nic] = &device; }
  void OnRoutesChanged() { paths_.clear(); }

  struct Way {
    DeviceId from{};
    DeviceId to{};
    uint64_t entropy = 0;  // hashed by ECMP
  };
  // Returns whether the first port of the way has room for the device's next packet. If not,
  // FabricNetDevice::SendWaiting() is called when it has.
  bool HasRoom(const Way& way);
  struct Frame {
    ns3::Ptr<const ns3::Packet> packet;
    uint32_t wire_bytes = 0;  // at most UINT16_MAX
    bool is_ecn_capable = false;
  };
  void Send(const Way& way, const Frame& frame);

  // Implements PacketSink.
  void OnPacketAtNic(PacketId packet) override;
  void OnPacketInMemory(PacketId packet) override;
  void OnPacketDropped(PacketId packet, DropReason reason, LinkId link) override;
  void OnLinkReleased(LinkId link) override;

 private:
  struct UnderWay {
    ns3::Ptr<const ns3::Packet> packet;
    DeviceId from{};
    DeviceId to{};
  };
  // Describes a device's packets in the port of one of its NIC's links.
  struct InPort {
    struct Departure {
      int64_t time_ps = 0;
      int64_t transmission_ps = 0;
    };
    DeviceId nic{};
    int64_t room_ps = 0;
    int64_t used_ps = 0;
    std::deque<Departure> departures{};
    bool is_waited_for = false;
  };

  PathRef PathOf(const Way& way);
  InPort& PortOf(LinkId link);
  void LetDepart(InPort& port) const;
  void WakeAt(LinkId link, int64_t time_ps);
  void Wake(LinkId link);
  UnderWay Take(PacketId packet);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  const EcmpRouting& routing_;
  const uint32_t full_wire_bytes_;
  std::unordered_map<DeviceId, FabricNetDevice*> devices_;  // by NIC
  std::map<std::vector<LinkId>, PathRef> known_paths_;
  struct WayHash {
    size_t operator()(const Way& way) const;
  };
  struct SameWay {
    bool operator()(const Way& a, const Way& b) const {
      return a.from == b.from && a.to == b.to && a.entropy == b.entropy;
    }
  };
  std::unordered_map<Way, PathRef, WayHash, SameWay> paths_;  // cleared when routes change
  std::unordered_map<LinkId, InPort> ports_;
  std::vector<UnderWay> under_way_;  // by Packet::flow
  std::vector<uint32_t> free_;       // unused elements of under_way_
  uint32_t sent_ = 0;
};

}  // namespace railyard
