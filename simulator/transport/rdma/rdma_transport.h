// SPDX-License-Identifier: GPL-2.0-only
// RoCE v2 reliable connections between NICs: queue pairs with a window, ACK coalescing, NACK once
// per gap, go-back-N, the local ACK timer and its retries (InfiniBand Architecture
// Specification 1.7, 9.7), or selective repeat as IRN has it (Mittal et al., SIGCOMM 2018).
//
// With go-back-N a receiver drops what is beyond a gap; with selective repeat it keeps up to 64
// packets there, whose bitmap its NACKs carry, and the sender repeats what is missing among them,
// once; a repetition that is lost too waits for the timer, which goes back to the gap in either
// case. What was beyond those 64 is asked for, all of it, when the gap is filled.
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
// Grants are NCCL's clear-to-send elements: RDMA writes of 64 bytes from NIC to NIC.
//
// Not modelled: receiver-not-ready (NCCL posts its receives before it sends clear-to-send, so it
// cannot meet it; a message without a receive is a program error), PCIe reads of the payload
// failing on their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/transport/nic/queue_transport.h"

namespace railyard {

// The verbs' name of what ends a queue pair that has used up its retries; its error begins so.
inline constexpr const char* kRetryExceeded = "IBV_WC_RETRY_EXC_ERR(12)";

class RdmaTransport final : public QueueTransport {
 public:
  RdmaTransport(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                const NicSettings& settings, std::span<const NicVariant> variants = {});

  // Posts a receive, and tells the sender by a clear-to-send element.
  void Grant(FlowId queue_pair, bool tells_sender) override;
  // Appends so many bytes to the queue of grants, without a receive.
  void PostToSender(FlowId queue_pair, uint32_t bytes);
  // Sends one packet without payload along a queue pair's path, out of any order and never
  // repeated, as an unreliable connection beside it does; from the sending end to the receiving, or
  // back.
  void SendUnreliable(FlowId queue_pair, bool to_receiver, uint32_t immediate);

  void OnPacketAtNic(uint32_t packet) override;
  void OnPacketInMemory(uint32_t packet) override;
  std::string Describe(FlowId queue_pair) const override;

 private:
  void AddQueueState() override;
  int64_t SendRepair(uint32_t queue) override;
  void ArmTimer(uint32_t queue) override;
  void OnTimer(uint32_t queue) override;
  std::string DescribeRetries(uint32_t queue) const override;

  // Sending ends (rdma_send.cc).
  void OnCnp(uint32_t queue);
  void GoBack(uint32_t queue, uint32_t sequence);
  void RepeatMissing(uint32_t queue, uint64_t beyond);
  void AdvanceRepair(uint32_t queue, uint32_t count);
  void OnAcknowledgement(uint32_t packet);

  // Receiving ends (rdma_receive.cc).
  void OnWrite(uint32_t packet);
  static uint32_t TakeBeyond(ReceiveQueue& queue);
  void OnAhead(uint32_t packet, uint32_t distance);
  bool DoWithout(uint32_t packet, uint32_t distance);
  bool ReportGaps(ReceiveQueue& queue, uint32_t distance) const;
  void Accept(uint32_t packet, uint32_t completed);
  void Acknowledge(uint32_t queue, PacketKind kind, uint32_t cause);
  void OnMarked(uint32_t queue);

  std::vector<Repair> repairs_;  // by queue, with selective repeat
};

}  // namespace railyard
