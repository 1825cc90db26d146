// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/nic/queue_transport.h"

#include <algorithm>

#include <fmt/format.h>

#include "simulator/diagnostics/check.h"
#include "simulator/event_order/event_order.h"
#include "simulator/transport/contract/sequence_distance.h"

namespace railyard {
QueueTransport::QueueTransport(const FabricGraph& graph, FabricNetwork& network,
                               EcmpRouting& routing, const NicSettings& settings,
                               std::span<const NicVariant> variants,
                               std::span<const ns3::Ptr<Nic>> nics, const PacketFraming& framing)
    : network_(network),
      settings_(settings),
      framing_(framing),
      kinds_(graph, settings, variants, nics),
      graph_(graph),
      paths_(graph, network, routing, framing.is_answered_by_host),
      full_packet_bytes_(settings.mtu_bytes + framing.header_bytes),
      ports_(graph, network) {
  for (DeviceId device{0}; device < graph.device_count(); ++device) {
    if (kinds_.nics()[device] == nullptr) continue;
    const NicSettings& nic = kinds_[kinds_.KindOf(device)].settings;
    ports_.AddNic(device, network,
                  {.full_wire_bytes = full_packet_bytes_, .burst_packets = nic.burst_packets});
  }
  if (kinds_.needs_telemetry()) network.telemetry().Enable();
  FabricSimulatorImpl& engine = network.engine();
  engine.Register(event_order::kQueuePort,
                  {.name = "turns of NICs' ports", .state = {.owner = this}},
                  &QueueTransport::HandlePort, this);
  // A timer that expires without anything to wait for has no effect.
  engine.Register(
      event_order::kQueueTimer,
      {.name = "timers of queues", .pending = PendingMeans::kNothing, .state = {.owner = this}},
      &QueueTransport::HandleTimer, this);
}

FlowId QueueTransport::OpenBound(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
                                 uint64_t entropy, const std::optional<PortPins>& data_pins) {
  QueuePair pair{EndsBetween(graph_, source_gpu, destination_gpu, entropy), sink};
  pair.data_pins = data_pins;
  queue_pairs_.push_back(pair);
  const QueueId data = AddQueue();
  const QueueId grants = AddQueue();
  SetAckPolicy(data);
  SetAckPolicy(grants);
  const FlowId id = QueuePairOf(data);
  OpenControl(id);
  return id;
}

void QueueTransport::OpenControl(FlowId queue_pair) {
  const QueueId data = DataQueueOf(queue_pair);
  const SendQueue& queue = send_queues_[data];
  // The NIC answers a queue pair's packets; the host behind it answers a stream's segments.
  PathRef path = queue.path();
  const uint32_t links_to_nic = network_.LinksToNic(path);
  if (!framing_.is_answered_by_host) path.hop_count = static_cast<uint8_t>(links_to_nic);
  ControlledQueuePair controlled;
  controlled.line_rate_bps = graph_.link(ports_[queue.port].wire).rate_bps;
  controlled.mtu_bytes = settings_.mtu_bytes;
  controlled.full_packet_wire_bytes = FullPacketBytes();
  controlled.hop_count = links_to_nic;
  controlled.base_rtt_ps = network_.PathLatencyPs(path, controlled.full_packet_wire_bytes) +
                           network_.PathLatencyPs(receive_queues_[data].ack_path(),
                                                  framing_.header_bytes + framing_.ack_bytes);
  pacers_.emplace_back();
  kinds_.Open(controlled);
  OnOpened(queue_pair, controlled.base_rtt_ps);
  ApplyLimits(data);
}

QueueId QueueTransport::AddQueue() {
  const QueueId id{send_queues_.size()};
  const QueuePair& pair = PairOf(id);
  const DeviceId nic = IsDataQueue(id) ? pair.source_nic : pair.destination_nic;
  SendQueue queue;
  queue.nic_kind = kinds_.KindOf(nic);
  queue.port = ports_.FirstPortOf(nic);
  if (pair.data_pins) {
    queue.port = ports_.PortOf(IsDataQueue(id) ? pair.data_pins->first
                                               : graph_.ReverseLink(pair.data_pins->last));
  }
  SIM_CHECK(queue.port != SendQueue::kNone, "a queue pair on a NIC without a cable");
  queue.window_packets = kinds_[queue.nic_kind].window_packets;
  send_queues_.push_back(queue);
  receive_queues_.emplace_back();
  backlogs_.emplace_back();
  recoveries_.AddQueue();
  AddQueueState();
  Resolve(id);
  return id;
}

// A window smaller than the number of packets per ACK would never open again.
void QueueTransport::SetAckPolicy(QueueId queue) {
  const NicKind& sender = KindOf(queue);
  receive_queues_[queue].ack_every_packets =
      sender.needs.every_packet
          ? 1
          : std::min(KindOfReceiver(queue).settings.ack_every_packets, sender.window_packets);
}

void QueueTransport::Resolve(QueueId queue_id) {
  SendQueue& queue = send_queues_[queue_id];
  ReceiveQueue& receiver = receive_queues_[queue_id];
  const QueuePaths::Ways ways =
      paths_.Resolve(PairOf(queue_id), IsDataQueue(queue_id),
                     {.packets = queue.path(), .acks = receiver.ack_path()});
  queue.first_link = ways.packets.first;
  queue.hop_count = ways.packets.hop_count;
  for (uint32_t hop = 0; hop < queue.hop_count; ++hop) {
    const uint32_t port = ports_.PortOf(network_.paths().LinkOf(ways.packets, hop));
    if (port == SendQueue::kNone) continue;
    queue.port = port;
    break;
  }
  receiver.ack_first_link = ways.acks.first;
  receiver.ack_hop_count = ways.acks.hop_count;
}

void QueueTransport::Close(FlowId queue_pair) {
  for (const QueueId queue : {DataQueueOf(queue_pair), GrantQueueOf(queue_pair)}) {
    send_queues_[queue].Set(SendQueue::kBroken);
  }
}

void QueueTransport::SetError(FlowId queue_pair, bool at_sender) {
  const QueueId sent = at_sender ? DataQueueOf(queue_pair) : GrantQueueOf(queue_pair);
  send_queues_[sent].Set(SendQueue::kBroken);
  receive_queues_[OtherQueueOf(sent)].is_broken = true;
}

void QueueTransport::ClockTimeouts(FlowId queue_pair) {
  for (const QueueId queue : {DataQueueOf(queue_pair), GrantQueueOf(queue_pair)}) {
    if (!send_queues_[queue].Is(SendQueue::kBroken)) {
      ClockRecovery(queue, &RecoveryTimes::timeout_ps);
    }
  }
}

void QueueTransport::OnRoutesChanged() {
  paths_.OnRoutesChanged();
  for (QueueId id{0}; id < send_queues_.size(); ++id) Resolve(id);
}

void QueueTransport::OnPacketDropped(PacketId index, DropReason reason, LinkId link) {
  const Packet& packet = network_.packet(index);
  if (reason == DropReason::kOutOfSequence || reason == DropReason::kDuplicate) return;
  const QueueId queue_id{packet.flow};
  SendQueue& queue = send_queues_[queue_id];
  const bool is_never_repeated =
      packet.kind == PacketKind::kCnp || packet.kind == PacketKind::kUnreliableSend;
  const bool says_nothing_new = queue.unacknowledged == queue.sent_end;  // a repeated ACK
  const bool needs_repair = !is_never_repeated && !says_nothing_new;
  if (reason != DropReason::kQueuePairError) {
    const SinkRef& user = UserOf(queue_id);
    user.sink->OnPacketLost(user.number,
                            {.reason = reason, .link = link, .needs_repair = needs_repair});
  }
  if ((packet.flags & Packet::kAccepted) != 0) {
    Break(queue_id, {.why = fmt::format("a packet acknowledged to its sender was lost on {}",
                                        graph_.link(link).name)});
    return;
  }
  if (!needs_repair) return;
  queue.Set(SendQueue::kHasLost);
  backlogs_[queue_id].loss_end = queue.sent_end;
  recoveries_.Begin(queue_id, network_.engine().NowPs());
}

void QueueTransport::Break(QueueId queue_id, const FlowError& error) {
  SendQueue& queue = send_queues_[queue_id];
  if (queue.Is(SendQueue::kBroken)) return;
  queue.Set(SendQueue::kBroken);
  ++counters_.queue_pair_errors;
  const SinkRef user = UserOf(queue_id);
  user.sink->OnFailed(user.number, IsDataQueue(queue_id), error);
}

// --- Queries -------------------------------------------------------------------------------------

std::vector<LinkId> QueueTransport::LinksOf(FlowId queue_pair) const {
  return network_.paths().LinksOf(DataPath(queue_pair));
}

std::vector<LinkShare> QueueTransport::LinkSharesOf(FlowId queue_pair) const {
  return EvenSharesOf({&queue_pair, 1});
}

std::vector<LinkShare> QueueTransport::EvenSharesOf(std::span<const FlowId> queue_pairs) const {
  std::vector<PathRef> paths;
  for (const FlowId queue_pair : queue_pairs) paths.push_back(DataPath(queue_pair));
  return railyard::EvenSharesOf(network_, paths);
}

std::vector<LinkId> QueueTransport::AllLinksOf(FlowId queue_pair) const {
  std::vector<LinkId> links = LinksOf(queue_pair);
  const std::vector<LinkId> back = network_.paths().LinksOf(AckPath(queue_pair));
  links.insert(links.end(), back.begin(), back.end());
  return links;
}

std::string QueueTransport::NamesOf(FlowId queue_pair) const {
  return railyard::NamesOf(graph_, queue_pairs_[queue_pair]);
}

FlowStatus QueueTransport::StatusOf(FlowId queue_pair) const {
  const QueueTables tables = {graph_, network_, send_queues_, receive_queues_};
  FlowStatus status = {.is_under_way = IsUnderWay(tables, queue_pair),
                       .description = Describe(queue_pair),
                       .obstacles = ObstaclesOf(tables, queue_pair, queue_pairs_[queue_pair])};
  if (status.obstacles.empty()) {
    const auto tried = MostTriedQueue(tables, queue_pair);
    if (tried) status.obstacles.push_back(DescribeRetries(*tried));
  }
  return status;
}

std::optional<PlacedMessage> QueueTransport::MessageOf(QueueId queue, uint32_t sequence) const {
  if (const auto completed = history_->Find(queue, sequence)) return completed;
  PlacedMessage placed = history_->Next(queue);
  const MessageRing& messages = backlogs_[queue].messages;
  for (uint32_t position = messages.first(); position != messages.end(); ++position) {
    placed.message = messages.at(position);
    if (SequenceDistance(sequence, placed.message.first_sequence) < 0) break;
    if (SequenceDistance(sequence, placed.message.end_sequence) < 0) return placed;
    ++placed.number;
    placed.offset_bytes += placed.message.bytes;
  }
  return std::nullopt;
}

std::optional<SendLimits> QueueTransport::LimitsNow(FlowId queue_pair) const {
  const SendQueue& queue = send_queues_[DataQueueOf(queue_pair)];
  if (queue.posted_end == queue.unacknowledged) return std::nullopt;
  const NicKind& kind = kinds_[queue.nic_kind];
  SendLimits limits = kind.control->limits(queue_pair);
  limits.window_bytes = std::min(limits.window_bytes, uint64_t{kind.settings.window_bytes});
  if (queue.port != SendQueue::kNone) {
    limits.rate_bps = std::min(limits.rate_bps, network_.RateBps(ports_[queue.port].wire));
  }
  return limits;
}

}  // namespace railyard
