// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/rdma/rdma_transport.h"

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"

namespace railyard {

RdmaTransport::RdmaTransport(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                             const NicSettings& settings, std::span<const NicVariant> variants,
                             std::span<const ns3::Ptr<Nic>> nics)
    : QueueTransport(graph, network, routing, settings, variants, nics, RdmaFraming(settings)) {
  SIM_CHECK(settings.reorder_tolerance_packets < ReceiveQueue::kBeyondPackets,
            "a reorder tolerance beyond what a NACK can tell");
}

void RdmaTransport::AddQueueState() {
  if (settings_.recovery == Recovery::kSelectiveRepeat) repairs_.emplace_back();
}

void RdmaTransport::OnPacketAtNic(PacketId index) {
  const Packet& packet = network_.packet(index);
  if (packet.kind == PacketKind::kAck || packet.kind == PacketKind::kNack) {
    OnAcknowledgement(index);
  } else if (packet.kind == PacketKind::kCnp) {
    const QueueId queue_id{packet.flow};
    network_.FreePacket(index);
    OnCnp(queue_id);
  } else if (packet.kind == PacketKind::kUnreliableSend) {
    const QueueId queue_id{packet.flow};
    const uint32_t immediate = packet.sequence;
    network_.FreePacket(index);
    const SinkRef user = UserOf(queue_id);
    user.sink->OnUnreliableSend(user.number, IsDataQueue(queue_id), immediate);
  } else {
    OnWrite(index);
  }
}

std::string RdmaTransport::Describe(FlowId queue_pair) const {
  const SendQueue& data = send_queues_[DataQueueOf(queue_pair)];
  const SendQueue& grants = send_queues_[GrantQueueOf(queue_pair)];
  return fmt::format("{} ({} data packets and {} clear-to-send unacknowledged)",
                     NamesOf(queue_pair), data.sent_end - data.unacknowledged,
                     grants.sent_end - grants.unacknowledged);
}

std::string RdmaTransport::DescribeRetries(QueueId queue) const {
  return fmt::format("sent again {} of {} times", send_queues_[queue].retries,
                     KindOf(queue).settings.ib_retry_cnt);
}

}  // namespace railyard
