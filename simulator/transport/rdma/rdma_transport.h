// SPDX-License-Identifier: GPL-2.0-only
// RoCE v2 reliable connections between NICs: queue pairs with a window, ACK coalescing, NACK once
// per gap, go-back-N, the local ACK timer and its retries (InfiniBand Architecture
// Specification 1.7, 9.7), or selective repeat as IRN has it (Mittal et al., SIGCOMM 2018).
//
// A queue pair has two queues, each a reliable stream of its own: data, from the sender's GPU
// memory to the receiver's, and clear-to-send elements the other way, from NIC to NIC. A NIC has a
// port per wire; a port serves the queues that may send in turn, at its wire's rate; ACKs and NACKs
// do not wait for their turn. The data of a queue pair obeys a CongestionControl.
//
// A message may have a bounded loss: its packets say their place in it and how many of it the
// receiver may do without. One that comes in behind a gap of its own message, with those missing
// before within that number, is taken as if nothing were missing: acknowledged, and nothing asked
// for.
//
// A receiver answers marked data with CNPs, no more than one per queue pair and interval, and every
// ACK says how many packets came in marked since the last one and when the one that caused it was
// sent.
//
// With NicSettings::is_tcp a queue pair is a TCP stream between hosts: its data queue keeps
// whatever comes beyond a gap, and is acknowledged, repeated and timed as tcp_stream.h says
// (rdma_tcp.cc). Its ACKs go from the receiver's memory to the sender's, for kernels send and read
// them; NICs pass on what comes.
//
// Not modelled: receiver-not-ready (NCCL posts its receives before it sends clear-to-send, so it
// cannot meet it; a message without a receive is a program error), PCIe reads of the payload
// failing on their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/transport/congestion/congestion_control.h"
#include "simulator/transport/contract/message_sink.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/transport/nic/nic.h"
#include "simulator/transport/nic/nic_port.h"
#include "simulator/transport/nic/nic_settings.h"
#include "simulator/transport/nic/queue_state.h"
#include "simulator/transport/tcp/tcp_stream.h"
#include "topologies/routing/routing.h"

namespace railyard {

// How verbs call what ends a queue pair that has used up its retries; what is said of it begins so.
inline constexpr const char* kRetryExceeded = "IBV_WC_RETRY_EXC_ERR(12)";
// The same of sockets, whose TCP stream gives up.
inline constexpr const char* kConnectionTimedOut = "ETIMEDOUT(110)";

struct RdmaCounters {
  uint64_t retransmitted_packets = 0;
  uint64_t timeouts = 0;
  uint64_t nacks = 0;
  uint64_t queue_pair_errors = 0;
  uint64_t ecn_marked = 0;  // data packets that came in marked
  uint64_t cnp = 0;         // sent
  // Messages with a tolerated loss, and how many of their packets may be lost.
  uint64_t tolerant_messages = 0;
  uint64_t dispensable_packets = 0;
  // What receivers did without.
  uint64_t missing_packets = 0;
  uint64_t missing_bytes = 0;
};

// With go-back-N a receiver drops what is beyond a gap; with selective repeat it keeps up to 64
// packets there, whose bitmap its NACKs carry, and the sender repeats what is missing among them,
// once; a repetition that is lost too waits for the timer, which goes back to the gap in either
// case. What was beyond those 64 is asked for, all of it, when the gap is filled.
class RdmaTransport {
 public:
  // EventClass::kPort ids and targets count from `first_port`; kTimer ids are queue numbers.
  RdmaTransport(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                const NicSettings& settings, uint32_t first_port, MessageSink& listener);

  // A queue pair from one GPU's NIC to another's. `entropy` is what the fabric's hashes see of it;
  // make it a function of the endpoints. With pins it is bound to a port of either NIC. Returns its
  // number, dense from 0.
  uint32_t Open(uint32_t connection, uint32_t source_gpu, uint32_t destination_gpu,
                uint64_t entropy, const std::optional<PortPins>& data_pins = std::nullopt);
  // Appends a message to the data queue (RDMA write with immediate; 0 bytes: the immediate alone).
  // Of its packets the receiver does without up to `tolerance_ppm` millionths, rounded down, but
  // never without the last: bounded loss.
  void Post(uint32_t queue_pair, const MessageSize& size, uint32_t tolerance_ppm = 0);
  void Post(uint32_t queue_pair, uint64_t data_bytes, uint32_t tolerance_ppm = 0) {
    Post(queue_pair, MessageSize::OfData(data_bytes), tolerance_ppm);
  }
  // Posts receives for so many messages more. Precondition: 2^32 or more are never open at once.
  void PostReceives(uint32_t queue_pair, uint32_t count);
  // The receiver grants one message, as NCCL does: posts a receive and appends an element to the
  // clear-to-send queue.
  void PostClearToSend(uint32_t queue_pair);
  // Appends so many bytes to the clear-to-send queue, without a receive.
  void PostToSender(uint32_t queue_pair, uint32_t bytes);
  // One packet without payload along a queue pair's path, out of any order and never repeated, as
  // an unreliable connection beside it sends it; from the sending end to the receiving, or back.
  void SendUnreliable(uint32_t queue_pair, bool to_receiver, uint32_t immediate);
  // TCP: from now on what comes takes up the receive buffer until Read(), in messages' bytes, which
  // must have been delivered.
  void ReadByHand(uint32_t queue_pair);
  void Read(uint32_t queue_pair, uint64_t bytes);
  // One end is put into the error state: it sends and takes in nothing any more.
  void SetError(uint32_t queue_pair, bool at_sender);

  void Serve(uint32_t port);     // EventClass::kPort, after the first_port
  void OnTimer(uint32_t queue);  // EventClass::kTimer
  void OnPacketAtNic(uint32_t packet);
  void OnPacketInMemory(uint32_t packet);
  void OnLinkReleased(LinkId link);
  void OnDropped(const Packet& packet, DropReason reason, LinkId link);
  // A queue pair sends nothing any more, as that of a process that has ended; what it is sent is
  // taken in as ever.
  void Close(uint32_t queue_pair);
  // Routes changed: every queue resolves its paths again.
  void ResolvePaths();

  // What decides what comes once all is acknowledged, and the counters.
  void Visit(StateArchive& archive);
  // The same of one queue pair, of a NIC's ports, and what was counted of all.
  void VisitQueuePair(uint32_t queue_pair, StateArchive& archive);
  void VisitPorts(DeviceId nic, StateArchive& archive);
  void VisitCounters(StateArchive& archive);
  // From now on the ACK timers of a queue pair at rest count as not on the wheel; which of them
  // are, for them to do so again.
  uint8_t TakeTimers(uint32_t queue_pair);
  void PutTimers(uint32_t queue_pair, uint8_t timers);

  uint32_t port_count() const { return static_cast<uint32_t>(ports_.size()); }
  uint32_t queue_count() const { return static_cast<uint32_t>(send_queues_.size()); }
  uint32_t connection_of_queue(uint32_t queue) const { return PairOf(queue).connection; }
  PathRef DataPath(uint32_t queue_pair) const {
    return send_queues_[size_t{2} * queue_pair].path();
  }
  PathRef AckPath(uint32_t queue_pair) const {
    return receive_queues_[size_t{2} * queue_pair].ack_path();
  }
  uint32_t FirstPortOf(DeviceId nic) const { return first_port_of_device_[nic]; }
  // What recoveries of a queue pair's data or clear-to-send queue took until now. What is not made
  // good yet counts from the first repetition on.
  RecoveryTimes RecoveryOf(uint32_t queue_pair, bool of_data) const;
  // Wire bytes of a message of so many payload bytes.
  uint64_t WireBytes(uint64_t payload_bytes) const;
  const RdmaCounters& counters() const { return counters_; }
  // Whose trace sources tell of all NICs of this transport.
  Nic& nic() { return *nic_; }
  const CongestionControl& congestion_control() const { return *control_; }
  // "server1/nic3 -> server2/nic3 (12 data packets and 0 clear-to-send unacknowledged)", to explain
  // what a queue pair waits for.
  std::string Describe(uint32_t queue_pair) const;
  // Whether anything posted to it is not acknowledged yet.
  bool IsUnderWay(uint32_t queue_pair) const;
  // What keeps that from arriving, or its ACKs from coming back, as things are now:
  // "leaf3>server1/nic3 is down", "… is paused", "there is no route: … is down"; where nothing
  // does, how often it was sent again.
  std::vector<std::string> ObstaclesOf(uint32_t queue_pair) const;

 private:
  // Setting up (rdma_transport.cc).
  void AddPorts(DeviceId nic);
  uint32_t AddQueue();
  void OpenControl(uint32_t queue_pair);
  void Resolve(uint32_t queue);
  // `is_forward`: the way that data goes.
  PathRef PathTo(DeviceId from, DeviceId to, const QueuePair& pair, bool is_forward, PathRef last);
  PathRef FindOrAddPath(const Path& path, std::optional<uint32_t> detour_hop);
  void AddObstacles(PathRef path, std::vector<std::string>& obstacles) const;
  std::string WhyNoRoute(const QueuePair& pair) const;
  static bool IsData(uint32_t queue) { return queue % 2 == 0; }
  const QueuePair& PairOf(uint32_t queue) const { return queue_pairs_[queue / 2]; }

  uint32_t PacketsOf(uint64_t bytes) const {
    return static_cast<uint32_t>(
        std::max<uint64_t>(1, (bytes + settings_.mtu_bytes - 1) / settings_.mtu_bytes));
  }

  // Turns (rdma_turns.cc).
  void Visit(uint32_t queue, StateArchive& archive);
  void VisitEnds(uint32_t queue, StateArchive& archive);
  static void Visit(NicPort& port, StateArchive& archive);
  uint64_t HashOfPath(PathRef path) const;
  bool MaySend(const SendQueue& queue) const {
    if (queue.Is(SendQueue::kBroken | SendQueue::kHasRepairs)) [[unlikely]]
      return !queue.Is(SendQueue::kBroken);
    return queue.next_sequence != queue.posted_end &&
           queue.next_sequence - queue.unacknowledged < queue.window_packets;
  }
  bool MustWait(const SendQueue& queue, uint32_t queue_id) const {
    return queue.Is(SendQueue::kPaced) &&
           pacers_[queue_id / 2].next_send_ps > network_.engine().NowPs();
  }
  void Activate(uint32_t queue);
  void Append(NicPort& port, uint32_t queue);
  void TakePaced(NicPort& port);
  void ScheduleServe(uint32_t port, int64_t time_ps);
  void ScheduleNextTurn(uint32_t port);

  // Sending ends (rdma_send.cc). Those that send return the time the packet takes on the wire.
  void PostMessage(uint32_t queue, const MessageSize& size, uint32_t tolerance_ppm);
  static void TakeMessage(SendQueue& queue, SendBacklog& backlog);
  static uint32_t FindMessage(const MessageRing& messages, uint32_t sequence);
  void Seek(uint32_t queue, uint32_t sequence);
  int64_t SendPacket(uint32_t queue);
  int64_t SendRepair(uint32_t queue);
  int64_t SendPacketOf(uint32_t queue, uint32_t sequence, const MessageRing::Message& message);
  [[gnu::noinline]] uint16_t FlagBytes(uint32_t queue, uint32_t sequence, uint32_t offset,
                                       uint32_t payload_bytes) const;
  void MarkRepeated(uint32_t queue, uint32_t payload_bytes);
  void Pace(uint32_t queue, uint32_t wire_bytes);
  void ApplyLimits(uint32_t queue);
  void OnCnp(uint32_t queue);
  void TellControl(uint32_t packet, uint32_t acknowledged_packets);
  void StartTimer(uint32_t queue);
  // A part of a recovery that is under way is over, and the next one begins.
  void ClockRecovery(uint32_t queue, int64_t RecoveryTimes::*part);
  void GoBack(uint32_t queue, uint32_t sequence);
  void RepeatMissing(uint32_t queue, uint64_t beyond);
  void AdvanceRepair(uint32_t queue, uint32_t count);
  void OnAcknowledgement(uint32_t packet);
  // The oldest unacknowledged packet is another one now.
  void ReportRecovery(uint32_t queue);
  void CompleteMessages(uint32_t queue);
  void Break(uint32_t queue, const std::string& why);

  // Receiving ends (rdma_receive.cc).
  void OnWrite(uint32_t packet);
  static uint32_t TakeBeyond(ReceiveQueue& queue);
  void OnAhead(uint32_t packet, uint32_t distance);
  bool DoWithout(uint32_t packet, uint32_t distance);
  bool ReportGaps(ReceiveQueue& queue, uint32_t distance) const;
  void Accept(uint32_t packet, uint32_t completed);
  // A packet is in memory, and with it all of so many messages.
  void Deliver(uint32_t packet, uint64_t completed_messages);
  void Refuse(uint32_t packet, DropReason reason);
  void Acknowledge(uint32_t queue, PacketKind kind, uint32_t cause);
  void OnMarked(uint32_t queue);

  // TCP (rdma_tcp.cc).
  void AddTcpQueue();
  void SetTcpWindow(uint32_t queue);
  uint32_t TakeLostSegment(uint32_t queue);
  void OnTcpAcknowledgement(uint32_t packet);
  static bool IsWaitingForRoom(const SendQueue& queue);
  void ArmTcpTimer(uint32_t queue);
  void OnTcpTimer(uint32_t queue);
  void ProbeWindow(uint32_t queue);
  void OnPacketAtHost(uint32_t packet);
  void OnSegment(uint32_t packet);
  void AcknowledgeTcp(uint32_t queue, const TcpReassembly::Block& block);

  const FabricGraph& graph_;
  FabricNetwork& network_;
  EcmpRouting& routing_;
  ns3::Ptr<Nic> nic_;
  NicSettings settings_;
  uint32_t header_bytes_;
  uint32_t window_packets_;
  uint32_t first_port_;
  MessageSink& listener_;
  std::vector<SendQueue> send_queues_;        // 2q: data of queue pair q; 2q+1: its clear-to-send
  std::vector<ReceiveQueue> receive_queues_;  // the same
  std::vector<SendBacklog> backlogs_;         // the same
  std::vector<Repair> repairs_;               // the same, with selective repeat
  std::vector<RecoveryClock> recoveries_;     // the same
  std::vector<TcpSender> tcp_senders_;        // the same, of TCP
  std::vector<TcpReceiver> tcp_receivers_;    // the same
  std::vector<QueuePair> queue_pairs_;
  std::vector<Pacer> pacers_;  // by queue pair
  ns3::Ptr<CongestionControl> control_;
  CongestionControl::Needs control_needs_;
  std::vector<NicPort> ports_;
  std::vector<uint32_t> port_of_link_;          // by wire
  std::vector<uint32_t> first_port_of_device_;  // by NIC
  RdmaCounters counters_;
  // Paths that were resolved when routes had changed, by a hash over their links.
  struct LaterPath {
    PathRef path;
    std::optional<uint32_t> detour_hop;
  };
  std::unordered_multimap<uint64_t, LaterPath> later_paths_;
  bool routes_have_changed_ = false;
};

}  // namespace railyard
