// SPDX-License-Identifier: GPL-2.0-only
// Implements the common part of RDMA's and TCP's queue pairs: the two ends of each, the division of
// messages into packets, their turns on a port, and the windows and rates of congestion control. A
// derived class implements the protocol's acknowledgements, timers and losses. Parts that work
// without queue pairs are objects: paths, kinds of NICs, ports, the duration of recoveries.
//
// A queue pair has two queues, each a reliable stream: data, from the sender's GPU memory to the
// receiver's, and grants in the opposite direction. A NIC has a port per wire. A port serves the
// queues that may send in turn, at its wire's rate; ACKs and NACKs do not wait for a turn. A
// CongestionControl limits the data of a queue pair.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/transport/congestion/congestion_control_base.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/transport/contract/network_stack.h"
#include "simulator/transport/contract/payload_count.h"
#include "simulator/transport/contract/transport.h"
#include "simulator/transport/nic/message_history.h"
#include "simulator/transport/nic/nic.h"
#include "simulator/transport/nic/nic_kinds.h"
#include "simulator/transport/nic/nic_ports.h"
#include "simulator/transport/nic/nic_settings.h"
#include "simulator/transport/nic/packet_framing.h"
#include "simulator/transport/nic/queue_obstacles.h"
#include "simulator/transport/nic/queue_paths.h"
#include "simulator/transport/nic/queue_state.h"
#include "simulator/transport/nic/recovery_clocks.h"
#include "topologies/routing/routing.h"

namespace railyard {

class QueueTransport : public Transport, public PacketSink, public StateOwner {
 public:
  // Flows are queue pairs. Precondition of all functions with a flow: its number is below
  // queue_pair_count().
  FlowId Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
              uint64_t entropy) override {
    return OpenBound(sink, source_gpu, destination_gpu, entropy, std::nullopt);
  }
  // Opens a queue pair that is bound to one port of each NIC, if `data_pins` is set.
  FlowId OpenBound(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
                   uint64_t entropy, const std::optional<PortPins>& data_pins);
  // Appends a message to the data queue: an RDMA write with immediate (0 bytes: only the
  // immediate), or an application's write to a stream.
  void Post(FlowId queue_pair, const PostedMessage& message) override {
    PostMessage(DataQueueOf(queue_pair), message.size, message.tolerance_ppm);
  }
  // Posts `count` more receives. Precondition: fewer than 2^32 are open at once.
  void PostReceives(FlowId queue_pair, uint32_t count) {
    receive_queues_[DataQueueOf(queue_pair)].receives += count;
  }
  void Close(FlowId queue_pair) override;
  // Puts one end into the error state, in which it neither sends nor receives.
  void SetError(FlowId queue_pair, bool at_sender);
  // Adds the current waits of both streams to their time-outs. The user gives the queue pair up
  // before its timers expire.
  void ClockTimeouts(FlowId queue_pair);
  // Sets another sink for the callbacks of the queue pair.
  void SetUser(FlowId queue_pair, const SinkRef& user) { queue_pairs_[queue_pair].user = user; }
  void CountPayload(FlowId queue_pair) override { payload_count_.Follow(queue_pair); }
  uint64_t counted_payload_bytes() const override { return payload_count_.bytes(); }

  void OnLinkReleased(LinkId link) override { ports_.OnLinkReleased(link); }
  void OnPacketDropped(PacketId packet, DropReason reason, LinkId link) override;
  void OnRoutesChanged() override;

  std::vector<LinkId> LinksOf(FlowId queue_pair) const override;
  std::vector<LinkShare> LinkSharesOf(FlowId queue_pair) const override;
  // Returns the links of queue pairs that carry equal parts of one flow's payload.
  std::vector<LinkShare> EvenSharesOf(std::span<const FlowId> queue_pairs) const;
  // Returns the links in both directions: those of the data and those of its acknowledgements.
  std::vector<LinkId> AllLinksOf(FlowId queue_pair) const;
  // Returns the recovery times. They include a recovery that is not complete, from its first
  // retransmission on.
  RecoveryTimes RecoveryOf(FlowId queue_pair, bool of_data) const override;
  bool HasUnrepairedLoss(FlowId queue_pair) const override;
  // Returns what the flow waits for. A flow without unacknowledged data has no obstacles.
  FlowStatus StatusOf(FlowId queue_pair) const override;
  // Returns a text such as "server1/nic3 -> server2/nic3 (12 data packets and 0 clear-to-send
  // unacknowledged)".
  virtual std::string Describe(FlowId queue_pair) const = 0;

  StateOwner* state() override { return this; }
  std::string state_name() const override { return "queue pairs with " + kinds_.ControlNames(); }
  // Returns the reason of the congestion control, if it has one.
  std::string WhyNeverReplayed() const override { return kinds_.WhyNeverReplayed(); }
  void Visit(StateArchive& archive) override;
  // These functions visit the state of one queue pair and the counters of all.
  void VisitQueuePair(FlowId queue_pair, StateArchive& archive);
  void VisitCounters(StateArchive& archive);
  // Ignores the pending timers of a quiescent queue pair from now on. Returns which timers were
  // pending, for PutTimers().
  uint8_t TakeTimers(FlowId queue_pair);
  void PutTimers(FlowId queue_pair, uint8_t timers);

  uint32_t queue_pair_count() const { return static_cast<uint32_t>(queue_pairs_.size()); }
  // Returns the sink of the user of a queue's pair.
  const SinkRef& UserOf(QueueId queue) const { return PairOf(queue).user; }
  const StackCounters& counters() const { return counters_; }
  // Adds the counters of the queue pairs in another process's part of the network.
  void Absorb(const StackCounters& counters) { counters_.Add(counters); }
  const NicKinds& nic_kinds() const { return kinds_; }
  NicPorts& nic_ports() { return ports_; }
  // Returns the limits that its congestion control sets to a queue pair, or nullopt if the queue
  // pair has nothing to send and nothing unacknowledged. Where the control sets no lower limit,
  // they are the rate of its port and the NIC's window.
  std::optional<SendLimits> LimitsNow(FlowId queue_pair) const;
  const QueuePair& pair(FlowId queue_pair) const { return queue_pairs_[queue_pair]; }
  uint32_t mtu_bytes() const { return settings_.mtu_bytes; }
  // Makes MessageOf() find completed messages too. Must be called before the first message.
  void KeepMessages() { history_ = std::make_unique<MessageHistory>(); }
  // Returns the message that contains a packet of a queue, or nullopt if no known message does.
  // Precondition: KeepMessages() was called.
  std::optional<PlacedMessage> MessageOf(QueueId queue, uint32_t sequence) const;

 protected:
  // Registers the events of its ports and timers with the engine, which allows one instance at a
  // time. All references must outlive this object. NicKinds describes `variants`
  // and `nics`.
  QueueTransport(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                 const NicSettings& settings, std::span<const NicVariant> variants,
                 std::span<const ns3::Ptr<Nic>> nics, const PacketFraming& framing);

  // --- Implemented by the protocol ---------------------------------------------------------------
  // Adds the protocol's state of one more queue.
  virtual void AddQueueState() {}
  // Checks the protocol's state of a quiescent queue (CheckFields()).
  virtual void CheckQueueState(QueueId /*queue*/, StateArchive& /*archive*/) {}
  // Called when the path's round trip on an idle fabric is known.
  virtual void OnOpened(FlowId /*queue_pair*/, int64_t /*base_rtt_ps*/) {}
  // Sends one of the packets for which SendQueue::kHasRepairs is set. Returns its time on the wire.
  virtual int64_t SendRepair(QueueId queue) = 0;
  // Called when the timer restarts and has no pending event.
  virtual void ArmTimer(QueueId queue) = 0;
  // Called when an event of the timer is due.
  virtual void OnTimer(QueueId queue) = 0;
  // Called when a segment was sent for the first time.
  virtual void OnSegmentSent(QueueId /*queue*/) {}
  // Called when the congestion control's limits have changed.
  virtual void OnLimits(QueueId /*queue*/) {}
  // Returns a text such as "sent again 3 of 7 times". Precondition: the queue has retransmitted.
  virtual std::string DescribeRetries(QueueId queue) const = 0;

  // --- For the protocol --------------------------------------------------------------------------
  // Returns a text such as "server1/nic3 -> server2/nic3".
  std::string NamesOf(FlowId queue_pair) const;
  const QueuePair& PairOf(QueueId queue) const { return queue_pairs_[QueuePairOf(queue)]; }
  // Returns the kind of the NIC that sends the queue's packets.
  const NicKind& KindOf(QueueId queue) const { return kinds_[send_queues_[queue].nic_kind]; }
  // Returns the kind of the NIC that receives the queue's packets, which sends those of the pair's
  // other queue.
  const NicKind& KindOfReceiver(QueueId queue) const { return KindOf(OtherQueueOf(queue)); }
  const Nic& NicOf(QueueId queue) const {
    const QueuePair& pair = PairOf(queue);
    return *kinds_.nics()[IsDataQueue(queue) ? pair.source_nic : pair.destination_nic];
  }
  uint32_t PacketsOf(uint64_t bytes) const {
    return PacketFraming::PacketsOf(bytes, settings_.mtu_bytes);
  }

  // These functions control the turns of queues (queue_turns.cc).
  bool MaySend(const SendQueue& queue) const {
    if (queue.Is(SendQueue::kBroken | SendQueue::kHasRepairs)) [[unlikely]]
      return !queue.Is(SendQueue::kBroken);
    return queue.next_sequence != queue.posted_end &&
           queue.next_sequence - queue.unacknowledged < queue.window_packets;
  }
  void Activate(QueueId queue);

  // These functions handle messages and packets (queue_send.cc). Functions that send return the
  // packet's time on the wire.
  void PostMessage(QueueId queue, const MessageSize& size, uint32_t tolerance_ppm);
  // Makes `sequence` the next packet to be sent.
  void Seek(QueueId queue, uint32_t sequence);
  // Sends a packet again that is not acknowledged.
  int64_t SendAgain(QueueId queue, uint32_t sequence);
  void StartTimer(QueueId queue);
  void ScheduleTimer(QueueId queue, int64_t time_ps);
  void ApplyLimits(QueueId queue);
  void NotifyControl(PacketId packet, uint32_t acknowledged_packets);
  // Ends a phase of the current recovery, and begins the next one.
  void ClockRecovery(QueueId queue, int64_t RecoveryTimes::*part) {
    recoveries_.Clock(queue, part, network_.engine().NowPs());
  }
  // Must be called when the oldest unacknowledged packet has changed.
  void ReportRecovery(QueueId queue);
  void CompleteMessages(QueueId queue);
  void Break(QueueId queue, const FlowError& error);
  // Must be called when a packet is in memory that completes `completed_messages`.
  void Deliver(PacketId packet, uint64_t completed_messages);
  // Drops a packet at the receiver.
  void Refuse(PacketId packet, DropReason reason);

  // Returns when the queue's rate lets it send again; 0 if its rate is not limited.
  int64_t PacedUntilPs(const SendQueue& queue, QueueId queue_id) const {
    return queue.Is(SendQueue::kPaced) ? pacers_[QueuePairOf(queue_id)].next_send_ps : 0;
  }

  // The state of both halves of a protocol.
  FabricNetwork& network_;
  const NicSettings settings_;  // of most NICs; variants agree on those used here
  const PacketFraming framing_;
  std::vector<SendQueue> send_queues_;        // by QueueId
  std::vector<ReceiveQueue> receive_queues_;  // the same
  const NicKinds kinds_;
  StackCounters counters_;

 private:
  // These functions set up the transport (queue_transport.cc).
  QueueId AddQueue();
  void SetAckPolicy(QueueId queue);
  void OpenControl(FlowId queue_pair);
  void Resolve(QueueId queue);
  uint32_t FullPacketBytes() const { return full_packet_bytes_; }
  PathRef DataPath(FlowId queue_pair) const { return send_queues_[DataQueueOf(queue_pair)].path(); }
  PathRef AckPath(FlowId queue_pair) const {
    return receive_queues_[DataQueueOf(queue_pair)].ack_path();
  }

  // These functions control the turns of queues (queue_turns.cc).
  bool MustWait(const SendQueue& queue, QueueId queue_id) const {
    return queue.Is(SendQueue::kPaced) && PacedUntilPs(queue, queue_id) > network_.engine().NowPs();
  }
  static void HandlePort(void* self, uint32_t port);
  static void HandleTimer(void* self, uint32_t queue);
  void Serve(uint32_t port);

  // These functions handle messages and packets (queue_send.cc).
  static uint32_t FindMessage(const MessageRing& messages, uint32_t sequence);
  static void TakeMessage(SendQueue& queue, SendBacklog& backlog);
  int64_t SendPacketOf(QueueId queue, uint32_t sequence, const MessageRing::Message& message);
  int64_t SendPacket(QueueId queue);
  [[gnu::noinline]] uint16_t FlagBytes(const Packet& packet, uint32_t offset) const;
  void MarkRepeated(QueueId queue, uint32_t payload_bytes);
  void Pace(QueueId queue, uint32_t wire_bytes);

  // These functions take and restore snapshots (queue_snapshot.cc).
  void Visit(QueueId queue, StateArchive& archive);
  void Check(QueueId queue, StateArchive& archive);
  void VisitEnds(QueueId queue, StateArchive& archive);

  const FabricGraph& graph_;
  QueuePaths paths_;
  uint32_t full_packet_bytes_;
  std::vector<SendBacklog> backlogs_;  // by QueueId
  RecoveryClocks recoveries_;
  std::vector<QueuePair> queue_pairs_;
  std::vector<Pacer> pacers_;  // by queue pair
  NicPorts ports_;
  PayloadCount payload_count_;
  std::unique_ptr<MessageHistory> history_;  // null: not kept
};

}  // namespace railyard
