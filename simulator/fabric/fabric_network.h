// SPDX-License-Identifier: GPL-2.0-only
// The packets under way and the links they cross. One event per hop: a link is a FIFO, so when a
// packet starts to be sent its arrival at the far end is known.
//
// Modelled: serialisation at the link's rate (store and forward), queueing in arrival order without
// bound, propagation, the forwarding latency of the device a link ends at, link state per direction
// with the loss of what was on the wire. Not modelled here: finite buffers, ECN, PFC, bit errors.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <ns3/object.h>
#include <ns3/traced-callback.h>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/packet.h"
#include "simulator/units/units.h"
#include "topologies/fabric_graph.h"

namespace railyard {

// A path of the fabric: the index of its first link in the network's table, and their number. A
// path of no links leads nowhere.
struct PathRef {
  uint32_t first = 0;
  uint8_t hop_count = 0;
};

// Who receives packets. A packet handed over stays the network's until the sink frees it or sends
// it on; a dropped one is freed by the network after the call.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  // At a NIC, from the wire.
  virtual void OnPacketAtNic(uint32_t packet) = 0;
  // In a GPU's memory, at the end of its path.
  virtual void OnPacketAtGpu(uint32_t packet) = 0;
  virtual void OnPacketDropped(uint32_t packet, DropReason reason, LinkId link) = 0;
};

// What crossed one direction of a link. Bytes count when the last bit arrives.
struct LinkCounters {
  uint64_t payload_bytes = 0;        // first transmissions of data
  uint64_t header_bytes = 0;         // everything that is not payload of data
  uint64_t retransmitted_bytes = 0;  // payload sent again
  uint64_t packets = 0;
  uint64_t dropped_packets = 0;
};

struct NetworkCounters {
  uint64_t packets = 0;         // data packets injected
  uint64_t packet_hops = 0;     // data packets times links crossed
  uint64_t control_hops = 0;    // the same of all other packets
  uint64_t injected_bytes = 0;  // payload of data, every transmission
  uint64_t delivered_bytes = 0;
  std::array<uint64_t, kDropReasonCount> dropped_packets{};
  std::array<uint64_t, kDropReasonCount> dropped_bytes{};  // payload of data
  uint64_t dropped_data_bytes() const;
};

struct PacketDropped {
  int64_t time_ps;
  const Packet* packet;
  DropReason reason;
  LinkId link;
};
struct LinkStateChanged {
  int64_t time_ps;
  LinkId link;
  bool up;
};

class FabricNetwork : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();
  FabricNetwork() = default;

  // `graph`, `engine` and the sink must outlive this; the sink is set before the first packet.
  void Build(const FabricGraph& graph, FabricSimulatorImpl& engine);
  void SetSink(PacketSink& sink) { sink_ = &sink; }

  // Paths stay valid for the life of the network.
  PathRef AddPath(const std::vector<LinkId>& links);
  LinkId LinkOfPath(PathRef path, uint32_t hop) const { return paths_[path.first + hop]; }

  uint32_t AllocatePacket() {
    if (free_packet_ == kNoPacket) [[unlikely]]
      GrowPool();
    const uint32_t index = free_packet_;
    free_packet_ = packets_[index].next;
    packets_[index] = Packet{};
    ++live_packets_;
    return index;
  }
  void FreePacket(uint32_t index) {
    packets_[index].next = free_packet_;
    free_packet_ = index;
    --live_packets_;
  }
  Packet& packet(uint32_t index) { return packets_[index]; }
  uint64_t live_packets() const { return live_packets_; }
  // Payload of data packets under way, by walking the pool.
  uint64_t InFlightBytes() const;

  // Puts a packet, with path, bytes and kind set and hop 0, on its first link. A path of no links
  // drops it (NO_ROUTE).
  void Inject(uint32_t index);
  // Sends a packet that was handed to the sink on its next link.
  void SendOn(uint32_t index) { Transmit(index); }
  // A data packet reached its receiver; frees it.
  void Deliver(uint32_t index) {
    counters_.delivered_bytes += packets_[index].payload_bytes;
    FreePacket(index);
  }
  // The sink will not take a packet; frees it.
  void Drop(uint32_t index, DropReason reason, LinkId link);

  // A direction of a link goes down or comes back, now. What is on the wire at that moment is lost.
  void SetLinkUp(LinkId link, bool up);
  bool IsLinkUp(LinkId link) const { return links_[link].up; }
  int64_t BusyUntilPs(LinkId link) const { return links_[link].busy_until_ps; }
  int64_t TransmissionPs(LinkId link, uint32_t wire_bytes) const {
    return TransferTimePs(wire_bytes, graph_->link(link).rate_bps);
  }
  // Sum of propagation and forwarding latency along a path, and of the serialisation of one packet
  // at each hop.
  int64_t PathLatencyPs(PathRef path, uint32_t wire_bytes) const;

  LinkCounters CountersOfLink(LinkId link) const;
  const NetworkCounters& counters() const { return counters_; }
  FabricSimulatorImpl& engine() { return *engine_; }

 private:
  static constexpr uint32_t kNoPacket = UINT32_MAX;

  enum class Arrival : uint8_t { kForward, kNic, kGpu };

  // What an event touches of a link: one cache line.
  struct alignas(64) Link {
    int64_t busy_until_ps = 0;
    int64_t delay_ps = 0;  // propagation, and forwarding latency of the device at the end
    int64_t usual_transmission_ps = 0;
    uint64_t payload_bytes = 0;
    uint64_t wire_bytes = 0;
    uint64_t packets = 0;
    uint16_t usual_wire_bytes = 0;  // the size usual_transmission_ps is of
    Arrival arrival = Arrival::kForward;
    bool up : 1 = true;
    bool has_been_down : 1 = false;
  };
  static_assert(sizeof(Link) == 64);

  // Only of links that lost something or went down.
  struct Downtime {
    int64_t from_ps;
    int64_t until_ps;
  };
  struct ColdLink {
    std::vector<Downtime> downtimes;
    uint64_t retransmitted_bytes = 0;
    uint64_t dropped_packets = 0;
  };

  static void HandleArrival(void* self, uint32_t index);
  void Transmit(uint32_t index);
  int64_t LearnTransmission(LinkId id, uint32_t wire_bytes);
  bool WasLost(LinkId link, const Packet& packet) const;
  void GrowPool();

  const FabricGraph* graph_ = nullptr;
  FabricSimulatorImpl* engine_ = nullptr;
  PacketSink* sink_ = nullptr;
  std::vector<Link> links_;
  std::unordered_map<LinkId, ColdLink> cold_links_;
  std::vector<LinkId> paths_;
  std::vector<Packet> packets_;
  const char* packet_base_ = nullptr;
  uint32_t free_packet_ = kNoPacket;
  uint64_t live_packets_ = 0;
  NetworkCounters counters_;
  ns3::TracedCallback<const PacketDropped&> packet_dropped_;
  ns3::TracedCallback<const LinkStateChanged&> link_state_changed_;
};

}  // namespace railyard
