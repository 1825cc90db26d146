// SPDX-License-Identifier: GPL-2.0-only
// Implements RoCE v2 reliable connections between NICs: queue pairs with a window, ACK coalescing,
// one NACK per gap, go-back-N, the local ACK timer and its retries (InfiniBand Architecture
// Specification 1.7, 9.7), or selective repeat as in IRN (Mittal et al., SIGCOMM 2018).
//
// With go-back-N a receiver drops packets beyond a gap. With selective repeat it keeps up to 64 of
// them, and its NACKs carry their bitmap; the sender retransmits the missing ones once. If a
// retransmission is lost as well, the timer expires. When a timer expires, the sender goes back to
// the gap with either scheme. Packets beyond those 64 are all requested again when the gap is
// filled.
//
// A message may tolerate bounded losses: its packets state their position in it and how many
// packets the receiver may go without. If a packet arrives behind a gap within its own message, and
// the message's missing packets are within that number, the receiver treats it as if nothing were
// missing: it acknowledges the packet and requests nothing.
//
// A receiver answers marked data with CNPs, at most one per queue pair and interval. Every ACK
// states how many packets arrived marked since the last one, and when the packet that caused it was
// sent.
//
// Grants are NCCL's clear-to-send elements: RDMA writes of 64 bytes from NIC to NIC.
//
// Not modelled: receiver-not-ready (it cannot occur, since NCCL posts its receives before it sends
// clear-to-send; a message without a receive is a programming error), and failures of the PCIe
// reads of the payload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

// The error of a queue pair that has used up its retries begins with its name in verbs.
inline constexpr const char* kRetryExceeded = "IBV_WC_RETRY_EXC_ERR(12)";

class RdmaTransport final : public QueueTransport {
 public:
  RdmaTransport(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                const NicSettings& settings, std::span<const NicVariant> variants = {},
                std::span<const ns3::Ptr<Nic>> nics = {});

  // Posts a receive and, with `tells_sender`, sends a clear-to-send element.
  void Grant(FlowId queue_pair, bool tells_sender) override;
  // Appends `bytes` to the queue of grants without posting a receive.
  void PostToSender(FlowId queue_pair, uint32_t bytes);
  // Sends one packet without payload along a queue pair's path, from its sending to its receiving
  // end or back. It is unordered and never retransmitted, as on an unreliable connection.
  void SendUnreliable(FlowId queue_pair, bool to_receiver, uint32_t immediate);

  void OnPacketAtNic(PacketId packet) override;
  void OnPacketInMemory(PacketId packet) override;
  std::string Describe(FlowId queue_pair) const override;

 private:
  void AddQueueState() override;
  void CheckQueueState(QueueId queue, StateArchive& archive) override {
    if (!repairs_.empty()) CheckFields(repairs_[queue], queue, archive);
  }
  int64_t SendRepair(QueueId queue) override;
  void ArmTimer(QueueId queue) override;
  void OnTimer(QueueId queue) override;
  std::string DescribeRetries(QueueId queue) const override;

  // These functions implement the sending ends (rdma_send.cc).
  void OnCnp(QueueId queue);
  void GoBack(QueueId queue, uint32_t sequence);
  void RepeatMissing(QueueId queue, uint64_t beyond);
  void AdvanceRepair(QueueId queue, uint32_t count);
  void OnAcknowledgement(PacketId packet);

  // These functions implement the receiving ends (rdma_receive.cc).
  void OnWrite(PacketId packet);
  static uint32_t TakeBeyond(ReceiveQueue& queue);
  void OnAhead(PacketId packet, uint32_t distance);
  bool DoWithout(PacketId packet, uint32_t distance);
  bool ReportGaps(ReceiveQueue& queue, uint32_t distance) const;
  void Accept(PacketId packet, uint32_t completed);
  bool IsGone(const ReceiveQueue& queue) const;
  void NoteRefused(ReceiveQueue& queue, const Packet& packet) const;
  // `kept` has a bit for each packet beyond the expected one that was kept; without any, a NACK
  // makes the sender go back.
  void Acknowledge(QueueId queue, PacketKind kind, PacketId cause, uint64_t kept);
  void OnMarked(QueueId queue);

  std::vector<Repair> repairs_;  // by queue, with selective repeat
};

}  // namespace railyard
