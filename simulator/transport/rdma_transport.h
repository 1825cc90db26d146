// SPDX-License-Identifier: GPL-2.0-only
// RoCE v2 reliable connections between NICs: queue pairs with a window, ACK coalescing, NACK once
// per gap, go-back-N, the local ACK timer and its retries (InfiniBand Architecture
// Specification 1.7, 9.7).
//
// A queue pair has two queues, each a reliable stream of its own: data, from the sender's GPU
// memory to the receiver's, and clear-to-send elements the other way, from NIC to NIC. A NIC serves
// its queues that may send in turn, one packet at a time, at its port's rate; ACKs and NACKs do not
// wait for their turn.
//
// Not modelled: congestion control, selective repeat, receiver-not-ready (NCCL posts its receives
// before it sends clear-to-send), PCIe reads of the payload failing on their own.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/transport/nic_settings.h"
#include "simulator/transport/transport_listener.h"
#include "topologies/routing.h"

namespace railyard {

struct RdmaCounters {
  uint64_t retransmitted_packets = 0;
  uint64_t timeouts = 0;
  uint64_t nacks = 0;
  uint64_t queue_pair_errors = 0;
};

class RdmaTransport {
 public:
  // EventClass::kPort ids and targets count from `first_port`; kTimer ids are queue numbers.
  RdmaTransport(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                const NicSettings& settings, uint32_t first_port, TransportListener& listener);

  // A queue pair from one GPU's NIC to another's. `entropy` is what the fabric's hashes see of it;
  // make it a function of the endpoints. Returns its number, dense from 0.
  uint32_t Open(uint32_t connection, uint32_t source_gpu, uint32_t destination_gpu,
                uint64_t entropy);
  // Appends a message to the data queue (RDMA write with immediate; 0 bytes: the immediate alone).
  void Post(uint32_t queue_pair, uint64_t bytes);
  // The receiver grants one message: appends an element to the clear-to-send queue.
  void PostClearToSend(uint32_t queue_pair);

  void Serve(uint32_t port);     // EventClass::kPort, after the first_port
  void OnTimer(uint32_t queue);  // EventClass::kTimer
  void OnPacketAtNic(uint32_t packet);
  void OnPacketAtGpu(uint32_t packet);
  void OnDropped(const Packet& packet, DropReason reason, LinkId link);
  // Routes changed: every queue resolves its paths again.
  void ResolvePaths();

  uint32_t queue_count() const { return static_cast<uint32_t>(queues_.size()); }
  uint32_t connection_of_queue(uint32_t queue) const { return queues_[queue].connection; }
  PathRef DataPath(uint32_t queue_pair) const { return queues_[2 * queue_pair].path; }
  // Wire bytes of a message of so many payload bytes.
  uint64_t WireBytes(uint64_t payload_bytes) const;
  const RdmaCounters& counters() const { return counters_; }
  // "server1/nic3 → server2/nic3: 12 packets unacknowledged, 3 retries" for explanations.
  std::string Describe(uint32_t queue_pair) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Message {
    uint32_t first_sequence = 0;
    uint32_t end_sequence = 0;  // one past the last
    uint32_t bytes = 0;
  };
  // Packet sequence numbers run freely in 32 bits and are compared by signed difference.
  struct Queue {
    // Sender.
    PathRef path;
    uint32_t port = 0;
    uint32_t next_active = kNone;
    uint32_t next_sequence = 0;   // to be sent next
    uint32_t unacknowledged = 0;  // oldest
    uint32_t sent_end = 0;        // one past the highest ever sent
    uint32_t posted_end = 0;      // one past the last packet of the last message
    uint32_t cursor = 0;          // index into messages of the one next_sequence lies in
    int64_t timer_start_ps = 0;
    uint8_t retries = 0;
    bool active = false;         // in its port's ring
    bool timer_pending = false;  // an event of it is on the wheel
    bool broken = false;
    bool is_data = false;
    // Receiver.
    bool nack_sent = false;
    uint32_t expected = 0;
    uint32_t unreported = 0;  // packets accepted, or had before, since the last ACK
    uint32_t delivered_messages = 0;
    PathRef ack_path;
    // Both.
    uint32_t connection = 0;
    DeviceId source_nic = 0;
    DeviceId destination_nic = 0;
    DeviceId source = 0;  // GPU of the data queue, NIC of the other
    DeviceId destination = 0;
    uint64_t entropy = 0;
    // Loss to the fabric not yet made good: sequences below loss_end.
    bool has_lost = false;
    uint32_t loss_end = 0;
    bool has_repeated = false;
    std::vector<Message> messages;  // posted and not yet acknowledged as a whole
    uint32_t first_message = 0;     // of those still open, index into messages
  };
  struct Port {
    LinkId wire = 0;  // first link of the NIC towards the fabric
    int64_t backlog_max_ps = 0;
    int64_t free_ps = 0;
    uint32_t first_active = kNone;
    uint32_t last_active = kNone;
    bool event_pending = false;
  };

  uint32_t AddQueue(Queue queue);
  void Resolve(Queue& queue);
  void PostMessage(uint32_t queue_id, uint64_t bytes);
  bool MaySend(const Queue& queue) const;
  void Activate(uint32_t queue_id);
  void SendPacket(uint32_t queue_id);
  void StartTimer(uint32_t queue_id);
  void GoBack(uint32_t queue_id, uint32_t sequence);
  void OnWrite(uint32_t packet);
  void OnAcknowledgement(uint32_t queue_id, uint32_t expected, bool is_nack);
  void SendAcknowledgement(const Queue& queue, uint32_t queue_id, PacketKind kind);
  void Break(uint32_t queue_id, const std::string& why);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  EcmpRouting& routing_;
  NicSettings settings_;
  uint32_t first_port_;
  TransportListener& listener_;
  uint32_t window_packets_;
  std::vector<Queue> queues_;  // 2q: data of queue pair q; 2q+1: its clear-to-send
  std::vector<Port> ports_;
  std::vector<uint32_t> port_of_device_;
  RdmaCounters counters_;
};

}  // namespace railyard
