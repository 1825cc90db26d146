// SPDX-License-Identifier: GPL-2.0-only
// RoCE v2 reliable connections between NICs: queue pairs with a window, ACK coalescing, NACK once
// per gap, go-back-N, the local ACK timer and its retries (InfiniBand Architecture
// Specification 1.7, 9.7).
//
// A queue pair has two queues, each a reliable stream of its own: data, from the sender's GPU
// memory to the receiver's, and clear-to-send elements the other way, from NIC to NIC. A NIC has a
// port per wire; a port serves the queues that may send in turn, at its wire's rate; ACKs and NACKs
// do not wait for their turn.
//
// Not modelled: receiver-not-ready (NCCL posts its receives before it sends clear-to-send), PCIe
// reads of the payload failing on their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/transport/nic_port.h"
#include "simulator/transport/nic_settings.h"
#include "simulator/transport/rdma_queue.h"
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

  uint32_t queue_count() const { return static_cast<uint32_t>(send_queues_.size()); }
  uint32_t connection_of_queue(uint32_t queue) const { return PairOf(queue).connection; }
  PathRef DataPath(uint32_t queue_pair) const { return send_queues_[2 * queue_pair].path(); }
  // Wire bytes of a message of so many payload bytes.
  uint64_t WireBytes(uint64_t payload_bytes) const;
  const RdmaCounters& counters() const { return counters_; }
  // "server1/nic3 -> server2/nic3 (12 data packets and 0 clear-to-send unacknowledged)", to explain
  // what a queue pair waits for.
  std::string Describe(uint32_t queue_pair) const;

 private:
  // Setting up (rdma_transport.cc).
  void AddPorts(DeviceId nic);
  uint32_t AddQueue();
  void Resolve(uint32_t queue);
  PathRef PathTo(DeviceId from, DeviceId to, uint64_t entropy, PathRef last);
  static bool IsData(uint32_t queue) { return queue % 2 == 0; }
  const QueuePair& PairOf(uint32_t queue) const { return queue_pairs_[queue / 2]; }

  // Sending ends (rdma_send.cc).
  void PostMessage(uint32_t queue, uint64_t bytes);
  bool MaySend(const SendQueue& queue) const {
    return queue.next_sequence != queue.posted_end &&
           queue.next_sequence - queue.unacknowledged < queue.window_packets &&
           !queue.Is(SendQueue::kBroken);
  }
  void Activate(uint32_t queue);
  void Append(NicPort& port, uint32_t queue);
  void ScheduleServe(uint32_t port, int64_t time_ps);
  // The time its packet takes on the port's wire.
  int64_t SendPacket(uint32_t queue);
  void TakeMessage(SendQueue& queue, SendBacklog& backlog);
  void Seek(uint32_t queue, uint32_t sequence);
  void MarkRepeated(uint32_t queue);
  void StartTimer(uint32_t queue);
  void GoBack(uint32_t queue, uint32_t sequence);
  void OnAcknowledgement(uint32_t queue, uint32_t expected, bool is_nack);
  void CompleteMessages(uint32_t queue);
  void Break(uint32_t queue, const std::string& why);

  // Receiving ends (rdma_receive.cc).
  void OnWrite(uint32_t packet);
  void Acknowledge(uint32_t queue, PacketKind kind);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  EcmpRouting& routing_;
  NicSettings settings_;
  uint32_t first_port_;
  TransportListener& listener_;
  std::vector<SendQueue> send_queues_;        // 2q: data of queue pair q; 2q+1: its clear-to-send
  std::vector<ReceiveQueue> receive_queues_;  // the same
  std::vector<SendBacklog> backlogs_;         // the same
  std::vector<QueuePair> queue_pairs_;
  std::vector<NicPort> ports_;
  std::vector<uint32_t> port_of_link_;          // by wire
  std::vector<uint32_t> first_port_of_device_;  // by NIC
  RdmaCounters counters_;
};

}  // namespace railyard
