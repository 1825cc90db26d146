// SPDX-License-Identifier: GPL-2.0-only
// Implements TCP streams between hosts. tcp_stream.h describes the state of a stream and the limits
// of the model. A stream is the data queue of a queue pair. It keeps segments beyond a gap, and
// acknowledges, retransmits and times segments as Linux does. Segments and ACKs travel from memory
// to memory, because kernels send and read them; NICs only forward them. There are no grants: the
// sender waits for room in the receive buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/transport/nic/queue_transport.h"
#include "simulator/transport/tcp/tcp_stream.h"

namespace railyard {

// The error of a stream that has given up begins with its name in Linux.
inline constexpr const char* kConnectionTimedOut = "ETIMEDOUT(110)";

class TcpTransport final : public QueueTransport {
 public:
  TcpTransport(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
               const NicSettings& settings, std::span<const ns3::Ptr<Nic>> nics = {});

  bool BuffersMessages() const override { return true; }
  // Posts one more receive. The sender is not informed.
  void Grant(FlowId stream, bool /*tells_sender*/) override { PostReceives(stream, 1); }
  // Makes received data occupy the receive buffer from now on until Read() is called for it.
  void ReadByHand(FlowId stream);
  // Reads one delivered message of `bytes`. It must not be called for more than has arrived.
  void Read(FlowId stream, uint64_t bytes);

  void OnPacketAtNic(PacketId packet) override { network_.SendOn(packet); }
  void OnPacketInMemory(PacketId packet) override;
  std::string Describe(FlowId stream) const override;

 private:
  void AddQueueState() override;
  void OnOpened(FlowId stream, int64_t base_rtt_ps) override;
  int64_t SendRepair(QueueId queue) override;
  void ArmTimer(QueueId queue) override;
  void OnTimer(QueueId queue) override;
  void OnSegmentSent(QueueId queue) override { senders_[queue].scoreboard.OnSend(); }
  void OnLimits(QueueId queue) override;
  std::string DescribeRetries(QueueId queue) const override;

  void SetWindow(QueueId queue);
  uint32_t TakeLostSegment(QueueId queue);
  void OnAcknowledgement(PacketId packet);
  static bool IsWaitingForRoom(const SendQueue& queue);
  void ProbeWindow(QueueId queue);
  void OnSegment(PacketId packet);
  void Acknowledge(QueueId queue, const TcpReassembly::Block& block);

  uint32_t window_packets_;             // segments that a receiver has room for
  std::vector<TcpSender> senders_;      // by queue
  std::vector<TcpReceiver> receivers_;  // by queue
};

}  // namespace railyard
