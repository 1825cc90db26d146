// SPDX-License-Identifier: GPL-2.0-only
// The packets under way and the links they cross. One event per hop: a link is a FIFO, so when a
// packet starts to be sent its arrival at the far end is known.
//
// Modelled: serialisation at the link's rate (store and forward), queueing in arrival order without
// bound, propagation, the forwarding latency of the device a link ends at, link state per direction
// with the loss of what was on the wire. Not modelled here: finite buffers, ECN, PFC, bit errors.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include <ns3/object.h>
#include <ns3/traced-callback.h>

#include "simulator/engine/fabric_simulator_impl.h"
#include "simulator/fabric/buffer_settings.h"
#include "simulator/fabric/hold_report.h"
#include "simulator/fabric/packet.h"
#include "simulator/fabric/packet_pool.h"
#include "simulator/fabric/switch.h"
#include "simulator/fabric/telemetry.h"
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
  // A link out of a NIC or GPU that was held (FabricNetwork::IsHeld) is so no more.
  virtual void OnLinkReleased(LinkId /*link*/) {}
};

// What keeps a receiver's buffer from overflowing.
enum class FlowControl : uint8_t {
  kNone,     // nothing: what finds no room is dropped
  kPfc,      // pause frames, IEEE 802.1Qbb
  kCredits,  // the sender counts what the receiver has room for: InfiniBand, NVLink
};

// What crossed one direction of a link. Bytes count when the last bit arrives.
struct LinkCounters {
  uint64_t payload_bytes = 0;        // first transmissions of data
  uint64_t header_bytes = 0;         // everything that is not payload of data
  uint64_t retransmitted_bytes = 0;  // payload sent again
  uint64_t packets = 0;
  uint64_t dropped_packets = 0;  // lost on the link
  int64_t paused_ps = 0;         // its data class by pause frames, up to now
};

struct NetworkCounters {
  uint64_t packets = 0;         // data packets injected
  uint64_t packet_hops = 0;     // data packets times links crossed
  uint64_t control_hops = 0;    // the same of all other packets
  uint64_t injected_bytes = 0;  // payload of data, every transmission
  uint64_t delivered_bytes = 0;
  std::array<uint64_t, kDropReasonCount> dropped_packets{};
  std::array<uint64_t, kDropReasonCount> dropped_bytes{};  // payload of data
  uint64_t ecn_marked = 0;  // data packets that switches marked, once for each mark
  uint64_t xoff_frames = 0;
  uint64_t xon_frames = 0;
  int64_t pfc_pause_ps = 0;  // of all links, pauses that are over
  // Transmissions in the general form, two events each instead of one.
  uint64_t general_hops = 0;
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

  // May move all packets, as may Inject(): references to packets end here.
  uint32_t AllocatePacket() { return packets_.Allocate(); }
  void FreePacket(uint32_t index) { packets_.Free(index); }
  Packet& packet(uint32_t index) { return packets_[index]; }
  uint64_t live_packets() const { return packets_.live_count(); }
  // Payload of data packets under way, by walking the pool.
  uint64_t InFlightBytes() const { return packets_.PayloadBytes(); }

  // Puts a packet, with path, bytes and kind set and hop 0, on its first link. A path of no links
  // drops it (NO_ROUTE).
  void Inject(uint32_t index);
  // Sends a packet that was handed to the sink on its next link, from within that call.
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
  // Time the link's port takes to send all it holds if nothing holds it up.
  int64_t BacklogPs(LinkId link) const {
    return std::max<int64_t>(0, links_[link].busy_until_ps - engine_->NowPs());
  }
  // Data of the link's port is paused, or waits for credit. Ends with OnLinkReleased().
  bool IsHeld(LinkId link) const { return is_held_[link] != 0; }
  int64_t TransmissionPs(LinkId link, uint32_t wire_bytes) const {
    return TransferTimePs(wire_bytes, graph_->link(link).rate_bps);
  }
  // Sum of propagation and forwarding latency along a path, and of the serialisation of one packet
  // at each hop.
  int64_t PathLatencyPs(PathRef path, uint32_t wire_bytes) const;

  // A link loses each packet for which `is_lost` answers true, asked as its last bit arrives
  // (BIT_ERROR).
  using LossFilter = std::function<bool(const Packet&)>;
  void SetLossFilter(LinkId link, LossFilter is_lost);

  // From now on data packets collect what the switches on their way write into them.
  void EnableTelemetry();
  // Of a packet: what it collected. Empty without EnableTelemetry().
  std::span<const HopTelemetry> Telemetry(uint32_t packet) const;
  void CopyTelemetry(uint32_t from, uint32_t to);

  LinkCounters CountersOfLink(LinkId link) const;
  const NetworkCounters& counters() const { return counters_; }
  const std::vector<HoldReport>& hold_reports() const { return hold_reports_; }
  FabricSimulatorImpl& engine() { return *engine_; }

  // One for every switch device; null for any other.
  ns3::Ptr<Switch> GetSwitch(DeviceId device) const { return switches_[device]; }
  // What every NIC keeps of packets from the wire that wait for its link to the host.
  void SetReceiveBuffers(const BufferSettings& settings) { receive_buffers_ = settings; }

 private:
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
    bool may_lose : 1 = false;  // has been down, or has a filter
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
  // Drops the packet that arrives if its link loses it.
  bool IsLost(uint32_t index);
  bool WasDown(LinkId link, const Packet& packet) const;
  const FabricGraph* graph_ = nullptr;
  FabricSimulatorImpl* engine_ = nullptr;
  PacketSink* sink_ = nullptr;
  std::vector<Link> links_;
  std::unordered_map<LinkId, ColdLink> cold_links_;
  std::vector<LinkId> paths_;
  PacketPool packets_;
  std::vector<uint8_t> is_held_;  // by link
  std::unordered_map<LinkId, LossFilter> loss_filters_;
  std::vector<PacketTelemetry> telemetry_;  // by packet; none unless enabled
  NetworkCounters counters_;
  std::vector<HoldReport> hold_reports_;
  std::vector<ns3::Ptr<Switch>> switches_;  // by device
  BufferSettings receive_buffers_;
  ns3::TracedCallback<const PacketDropped&> packet_dropped_;
  ns3::TracedCallback<const LinkStateChanged&> link_state_changed_;
};

}  // namespace railyard
