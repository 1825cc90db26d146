// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/rdma_transport.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

// Signed distance from b to a of sequence numbers that wrap.
int32_t Distance(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b); }

// Packets a NIC has read from memory ahead of its port: what covers the path from there, and two
// more.
constexpr int64_t kReadAheadPackets = 2;

// Completed messages are taken off a queue's list by so many.
constexpr uint32_t kMessagesForgottenAtOnce = 16;

}  // namespace

RdmaTransport::RdmaTransport(const FabricGraph& graph, FabricNetwork& network, EcmpRouting& routing,
                             const NicSettings& settings, uint32_t first_port,
                             TransportListener& listener)
    : graph_(graph),
      network_(network),
      routing_(routing),
      settings_(settings),
      first_port_(first_port),
      listener_(listener),
      window_packets_(
          static_cast<uint32_t>(std::max<uint64_t>(1, settings.window_bytes / settings.mtu_bytes))),
      port_of_device_(graph.device_count(), kNone) {
  const uint32_t full_wire_bytes = settings.mtu_bytes + kRoceHeaderBytes;
  for (DeviceId device = 0; device < graph.device_count(); ++device) {
    if (graph.device(device).kind != DeviceKind::kNic) continue;
    Port port;
    int64_t memory_ps = 0;
    bool has_wire = false;
    for (const auto edge : boost::make_iterator_range(boost::out_edges(device, graph.graph()))) {
      const LinkId link = graph.link_of_edge(edge);
      if (graph.link(link).tier == Tier::kHost) {
        memory_ps = std::max(memory_ps, graph.link(link).propagation_ps +
                                            network.TransmissionPs(link, full_wire_bytes));
      } else if (!has_wire) {
        port.wire = link;
        has_wire = true;
      }
    }
    if (!has_wire) continue;
    port.backlog_max_ps =
        memory_ps + kReadAheadPackets * network.TransmissionPs(port.wire, full_wire_bytes);
    port_of_device_[device] = static_cast<uint32_t>(ports_.size());
    ports_.push_back(port);
  }
}

uint64_t RdmaTransport::WireBytes(uint64_t payload_bytes) const {
  const uint64_t packets =
      std::max<uint64_t>(1, (payload_bytes + settings_.mtu_bytes - 1) / settings_.mtu_bytes);
  return payload_bytes + packets * kRoceHeaderBytes + kRethBytes;
}

void RdmaTransport::Resolve(Queue& queue) {
  queue.path = network_.AddPath(routing_.Resolve(queue.source, queue.destination, queue.entropy));
  queue.ack_path =
      network_.AddPath(routing_.Resolve(queue.destination_nic, queue.source_nic, queue.entropy));
}

uint32_t RdmaTransport::AddQueue(Queue queue) {
  queue.port = port_of_device_[queue.source_nic];
  SIM_CHECK(queue.port != kNone, "a queue pair on a NIC without a cable");
  Resolve(queue);
  queues_.push_back(std::move(queue));
  return static_cast<uint32_t>(queues_.size() - 1);
}

uint32_t RdmaTransport::Open(uint32_t connection, uint32_t source_gpu, uint32_t destination_gpu,
                             uint64_t entropy) {
  Queue data;
  data.is_data = true;
  data.connection = connection;
  data.entropy = entropy;
  data.source = graph_.gpus()[source_gpu];
  data.destination = graph_.gpus()[destination_gpu];
  data.source_nic = graph_.NicOfGpu(data.source).value();
  data.destination_nic = graph_.NicOfGpu(data.destination).value();
  Queue credits;
  credits.connection = connection;
  credits.entropy = entropy;
  credits.source = credits.source_nic = data.destination_nic;
  credits.destination = credits.destination_nic = data.source_nic;
  const uint32_t data_queue = AddQueue(std::move(data));
  AddQueue(std::move(credits));
  return data_queue / 2;
}

void RdmaTransport::ResolvePaths() {
  for (uint32_t id = 0; id < queues_.size(); ++id) Resolve(queues_[id]);
}

void RdmaTransport::Post(uint32_t queue_pair, uint64_t bytes) {
  PostMessage(2 * queue_pair, bytes);
}

void RdmaTransport::PostClearToSend(uint32_t queue_pair) {
  PostMessage(2 * queue_pair + 1, kClearToSendBytes);
}

void RdmaTransport::PostMessage(uint32_t queue_id, uint64_t bytes) {
  SIM_CHECK(bytes < UINT32_MAX, "an RDMA message of 4 GiB or more");
  Queue& queue = queues_[queue_id];
  if (queue.first_message >= kMessagesForgottenAtOnce) {
    queue.messages.erase(queue.messages.begin(), queue.messages.begin() + queue.first_message);
    queue.cursor -= queue.first_message;
    queue.first_message = 0;
  }
  const auto packets = static_cast<uint32_t>(
      std::max<uint64_t>(1, (bytes + settings_.mtu_bytes - 1) / settings_.mtu_bytes));
  queue.messages.push_back(
      {queue.posted_end, queue.posted_end + packets, static_cast<uint32_t>(bytes)});
  queue.posted_end += packets;
  Activate(queue_id);
}

bool RdmaTransport::MaySend(const Queue& queue) const {
  return !queue.broken && queue.next_sequence != queue.posted_end &&
         queue.next_sequence - queue.unacknowledged < window_packets_;
}

void RdmaTransport::Activate(uint32_t queue_id) {
  Queue& queue = queues_[queue_id];
  if (queue.active || !MaySend(queue)) return;
  queue.active = true;
  queue.next_active = kNone;
  Port& port = ports_[queue.port];
  if (port.first_active == kNone) {
    port.first_active = queue_id;
  } else {
    queues_[port.last_active].next_active = queue_id;
  }
  port.last_active = queue_id;
  if (port.event_pending) return;
  port.event_pending = true;
  const uint32_t id = first_port_ + queue.port;
  network_.engine().ScheduleFabric(std::max(port.free_ps, network_.engine().NowPs()),
                                   EventClass::kPort, id, id);
}

void RdmaTransport::Serve(uint32_t port_id) {
  Port& port = ports_[port_id];
  FabricSimulatorImpl& engine = network_.engine();
  const uint32_t event_id = first_port_ + port_id;
  // ACKs take their share of the wire as well: let what was read ahead drain first.
  const int64_t backlog_ps = network_.BusyUntilPs(port.wire) - engine.NowPs();
  if (backlog_ps > port.backlog_max_ps) {
    port.free_ps = engine.NowPs() + backlog_ps - port.backlog_max_ps;
    engine.ScheduleFabric(port.free_ps, EventClass::kPort, event_id, event_id);
    return;
  }
  const uint32_t queue_id = port.first_active;
  Queue& queue = queues_[queue_id];
  port.first_active = queue.next_active;
  queue.active = false;
  // A queue may have lost its right to send while it waited for its turn.
  if (MaySend(queue)) SendPacket(queue_id);
  port.event_pending = true;  // keeps Activate from scheduling
  Activate(queue_id);
  port.event_pending = port.first_active != kNone;
  if (port.event_pending) {
    engine.ScheduleFabric(std::max(port.free_ps, engine.NowPs()), EventClass::kPort, event_id,
                          event_id);
  }
}

void RdmaTransport::SendPacket(uint32_t queue_id) {
  Queue& queue = queues_[queue_id];
  while (queue.messages[queue.cursor].end_sequence == queue.next_sequence) ++queue.cursor;
  const Message& message = queue.messages[queue.cursor];
  const uint32_t sequence = queue.next_sequence++;
  const uint32_t offset = (sequence - message.first_sequence) * settings_.mtu_bytes;
  const bool is_last = queue.next_sequence == message.end_sequence;

  const uint32_t index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.flow = queue_id;
  packet.sequence = sequence;
  packet.path = queue.path.first;
  packet.hop_count = queue.path.hop_count;
  packet.hop = 0;
  packet.kind = queue.is_data ? PacketKind::kRdmaWrite : PacketKind::kClearToSend;
  packet.payload_bytes =
      static_cast<uint16_t>(std::min(message.bytes - offset, settings_.mtu_bytes));
  packet.wire_bytes = static_cast<uint16_t>(packet.payload_bytes + kRoceHeaderBytes +
                                            (offset == 0 ? kRethBytes : 0));
  packet.flags = is_last ? Packet::kLastOfMessage : 0;
  const bool is_repeat = Distance(sequence, queue.sent_end) < 0;
  if (is_repeat) {
    packet.flags |= Packet::kRetransmitted;
    ++counters_.retransmitted_packets;
    if (queue.has_lost && !queue.has_repeated) {
      queue.has_repeated = true;
      listener_.OnRetransmission(queue.connection);
    }
  } else {
    queue.sent_end = queue.next_sequence;
  }
  // The timer is of the oldest unacknowledged packet.
  if (sequence == queue.unacknowledged) StartTimer(queue_id);
  Port& port = ports_[queue.port];
  port.free_ps = network_.engine().NowPs() + network_.TransmissionPs(port.wire, packet.wire_bytes);
  network_.Inject(index);
}

void RdmaTransport::StartTimer(uint32_t queue_id) {
  Queue& queue = queues_[queue_id];
  queue.timer_start_ps = network_.engine().NowPs();
  if (queue.timer_pending) return;
  queue.timer_pending = true;
  network_.engine().ScheduleFabric(queue.timer_start_ps + settings_.LocalAckTimeoutPs(),
                                   EventClass::kTimer, queue_id, queue_id);
}

void RdmaTransport::OnTimer(uint32_t queue_id) {
  Queue& queue = queues_[queue_id];
  queue.timer_pending = false;
  if (queue.broken || queue.unacknowledged == queue.sent_end) return;
  const int64_t now_ps = network_.engine().NowPs();
  const int64_t deadline_ps = queue.timer_start_ps + settings_.LocalAckTimeoutPs();
  if (deadline_ps > now_ps) {
    queue.timer_pending = true;
    network_.engine().ScheduleFabric(deadline_ps, EventClass::kTimer, queue_id, queue_id);
    return;
  }
  ++counters_.timeouts;
  if (queue.retries == settings_.ib_retry_cnt) {
    Break(queue_id, fmt::format("IBV_WC_RETRY_EXC_ERR(12) on {}", Describe(queue_id / 2)));
    return;
  }
  ++queue.retries;
  // Restarted here as well, for the port may be kept from sending for long.
  StartTimer(queue_id);
  GoBack(queue_id, queue.unacknowledged);
}

void RdmaTransport::GoBack(uint32_t queue_id, uint32_t sequence) {
  Queue& queue = queues_[queue_id];
  queue.next_sequence = sequence;
  queue.cursor = queue.first_message;
  Activate(queue_id);
}

void RdmaTransport::OnPacketAtNic(uint32_t index) {
  const Packet& packet = network_.packet(index);
  if (packet.kind == PacketKind::kAck || packet.kind == PacketKind::kNack) {
    const uint32_t queue_id = packet.flow;
    const uint32_t expected = packet.sequence;
    const bool is_nack = packet.kind == PacketKind::kNack;
    network_.FreePacket(index);
    OnAcknowledgement(queue_id, expected, is_nack);
    return;
  }
  OnWrite(index);
}

void RdmaTransport::OnWrite(uint32_t index) {
  Packet& packet = network_.packet(index);
  const uint32_t queue_id = packet.flow;
  Queue& queue = queues_[queue_id];
  const int32_t distance = Distance(packet.sequence, queue.expected);
  const LinkId link =
      network_.LinkOfPath({packet.path, packet.hop_count}, static_cast<uint32_t>(packet.hop - 1));
  const bool is_last = (packet.flags & Packet::kLastOfMessage) != 0;
  if (distance > 0) {
    network_.Drop(index, DropReason::kOutOfSequence, link);
    if (!queue.nack_sent) {
      queue.nack_sent = true;
      ++counters_.nacks;
      SendAcknowledgement(queue, queue_id, PacketKind::kNack);
    }
    return;
  }
  if (distance < 0) {
    network_.Drop(index, DropReason::kDuplicate, link);
    // Coalesced as well: a whole window of them may end no message.
    if (is_last || ++queue.unreported >= settings_.ack_every_packets) {
      queue.unreported = 0;
      SendAcknowledgement(queue, queue_id, PacketKind::kAck);
    }
    return;
  }
  if (queue.is_data) packet.flags |= Packet::kAccepted;  // before an ACK moves the pool
  ++queue.expected;
  ++queue.unreported;
  queue.nack_sent = false;
  if (is_last || queue.unreported >= settings_.ack_every_packets) {
    queue.unreported = 0;
    SendAcknowledgement(queue, queue_id, PacketKind::kAck);
  }
  if (queue.is_data) {
    network_.SendOn(index);
  } else {
    network_.FreePacket(index);
    listener_.OnClearToSend(queue.connection);
  }
}

void RdmaTransport::SendAcknowledgement(const Queue& queue, uint32_t queue_id, PacketKind kind) {
  const PathRef path = queue.ack_path;
  const uint32_t expected = queue.expected;
  const uint32_t index = network_.AllocatePacket();
  Packet& packet = network_.packet(index);
  packet.flow = queue_id;
  packet.sequence = expected;
  packet.path = path.first;
  packet.hop_count = path.hop_count;
  packet.hop = 0;
  packet.kind = kind;
  packet.payload_bytes = 0;
  packet.wire_bytes = kRoceHeaderBytes + kAethBytes;
  packet.flags = 0;
  network_.Inject(index);
}

void RdmaTransport::OnAcknowledgement(uint32_t queue_id, uint32_t expected, bool is_nack) {
  Queue& queue = queues_[queue_id];
  if (queue.broken) return;
  if (Distance(expected, queue.sent_end) > 0 || Distance(expected, queue.unacknowledged) < 0) {
    return;  // older than what is known
  }
  if (expected != queue.unacknowledged) {
    queue.unacknowledged = expected;
    queue.retries = 0;
    queue.timer_start_ps = network_.engine().NowPs();
    if (Distance(queue.next_sequence, expected) < 0) queue.next_sequence = expected;
    if (queue.has_lost && Distance(expected, queue.loss_end) >= 0) {
      queue.has_lost = false;
      queue.has_repeated = false;
      listener_.OnLossRecovered(queue.connection);
    }
  } else if (is_nack && queue.retries++ == settings_.ib_retry_cnt) {
    // No progress since the last request to repeat: the specification counts it as a retry.
    Break(queue_id, fmt::format("IBV_WC_RETRY_EXC_ERR(12) on {}", Describe(queue_id / 2)));
    return;
  }
  if (is_nack) GoBack(queue_id, expected);
  // The listener may post, which moves messages.
  while (queues_[queue_id].first_message < queues_[queue_id].messages.size()) {
    Queue& current = queues_[queue_id];
    const Message& message = current.messages[current.first_message];
    if (Distance(current.unacknowledged, message.end_sequence) < 0) break;
    ++current.first_message;
    current.cursor = std::max(current.cursor, current.first_message);
    if (current.is_data) listener_.OnSendCompleted(current.connection);
  }
  Activate(queue_id);
}

void RdmaTransport::OnPacketAtGpu(uint32_t index) {
  const Packet& packet = network_.packet(index);
  const uint32_t connection = queues_[packet.flow].connection;
  const bool is_last = (packet.flags & Packet::kLastOfMessage) != 0;
  network_.Deliver(index);
  if (is_last) listener_.OnMessageDelivered(connection);
}

void RdmaTransport::OnDropped(const Packet& packet, DropReason reason, LinkId link) {
  if (reason == DropReason::kOutOfSequence || reason == DropReason::kDuplicate) return;
  Queue& queue = queues_[packet.flow];
  listener_.OnPacketLost(queue.connection, link);
  if ((packet.flags & Packet::kAccepted) != 0) {
    Break(packet.flow, fmt::format("a packet acknowledged to its sender was lost on {}",
                                   graph_.link(link).name));
    return;
  }
  if (queue.unacknowledged == queue.sent_end) return;  // a repeated ACK of what is known already
  queue.has_lost = true;
  queue.loss_end = queue.sent_end;
}

void RdmaTransport::Break(uint32_t queue_id, const std::string& why) {
  Queue& queue = queues_[queue_id];
  if (queue.broken) return;
  queue.broken = true;
  ++counters_.queue_pair_errors;
  listener_.OnConnectionError(queue.connection, why);
}

std::string RdmaTransport::Describe(uint32_t queue_pair) const {
  const Queue& data = queues_[2 * queue_pair];
  const Queue& credits = queues_[2 * queue_pair + 1];
  return fmt::format("{} -> {} ({} data packets and {} clear-to-send unacknowledged)",
                     graph_.device(data.source_nic).name, graph_.device(data.destination_nic).name,
                     data.sent_end - data.unacknowledged,
                     credits.sent_end - credits.unacknowledged);
}

}  // namespace railyard
