// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/run/packet_capture.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/names.h"
#include "simulator/transport/tcp/tcp_stream.h"
#include "simulator/units/mix64.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr uint32_t kMask24 = 0xFFFFFF;
constexpr uint32_t kFirstQueuePair = 0x11;  // 0 and 1 are for management
// Addresses of messages in the receiver's memory, which the model does not have: one place for each
// queue and message in turn.
constexpr int kQueueShift = 40;
constexpr int kMessageShift = 32;
constexpr uint32_t kMessageSlots = 8;
constexpr uint16_t kTcpPorts = 50'000;
constexpr int kWindowShift = 8;
constexpr size_t kFileNameMax = 200;  // without what makes it differ; file systems take 255

bool IsBetweenServers(Tier tier) { return tier != Tier::kNvlink && tier != Tier::kHost; }

// Returns whether the packet answers data: it goes from the queue's receiver to its sender.
bool IsAnswer(PacketKind kind) {
  return kind == PacketKind::kAck || kind == PacketKind::kNack || kind == PacketKind::kCnp;
}

// Returns whether the packet goes from the queue pair's sender to its receiver.
bool IsForward(const Packet& packet) {
  return IsDataQueue(QueueId{packet.flow}) != IsAnswer(packet.kind);
}

}  // namespace

std::vector<LinkId> FindCapturedLinks(const FabricGraph& graph, const std::string& name) {
  std::vector<LinkId> links;
  std::vector<std::string> names;
  const bool is_direction = name.find('>') != std::string::npos;
  for (const Cable& cable : graph.cables()) {
    const bool is_captured = IsBetweenServers(graph.link(cable.forward).tier);
    if (cable.name == name) links = {cable.forward, cable.backward};
    if (is_captured && !is_direction) names.push_back(cable.name);
    for (const LinkId link : {cable.forward, cable.backward}) {
      if (graph.link(link).name == name) links = {link};
      if (is_captured && is_direction) names.push_back(graph.link(link).name);
    }
  }
  if (links.empty()) throw std::invalid_argument(UnknownName("link or cable", name, names));
  if (!IsBetweenServers(graph.link(links.front()).tier)) {
    throw std::invalid_argument(fmt::format(
        "{} is inside a server (expected a link between servers, e.g. of a NIC)", Quote(name)));
  }
  return links;
}

std::vector<std::string> CaptureFileNames(const std::vector<std::string>& links) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const std::string& link : links) {
    std::string stem = link.substr(0, kFileNameMax);
    for (char& c : stem) {
      const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
      if (!is_plain && c != '.' && c != '#') c = '_';
    }
    if (stem.starts_with('.')) stem.front() = '_';  // it would be hidden
    std::string name = stem + ".pcapng";
    for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}-{}.pcapng", stem, i);
    names.push_back(name);
  }
  return names;
}

PacketCapture::PacketCapture(const LinkCapture& capture, const FabricGraph& graph,
                             FabricNetwork& network, const QueueTransport& queue_pairs,
                             const NicSettings& settings)
    : graph_(graph),
      network_(network),
      queue_pairs_(queue_pairs),
      settings_(settings),
      name_(capture.name),
      snap_bytes_(capture.snap_bytes),
      bytes_max_(capture.bytes_max),
      file_(capture.file) {
  const auto type =
      settings.is_infiniband ? PcapngWriter::LinkType::kErf : PcapngWriter::LinkType::kEthernet;
  const uint32_t record_bytes = settings.is_infiniband ? kErfHeaderBytes : 0;
  for (const LinkId link : FindCapturedLinks(graph, capture.name)) {
    order_lag_ps_ =
        std::max(order_lag_ps_, graph.device(graph.link_target(link)).forwarding_latency_ps);
    const uint32_t interface =
        file_.AddInterface(type, graph.link(link).name, snap_bytes_ + record_bytes);
    network.taps().Add(link,
                       [this, interface](const Packet& packet, std::optional<DropReason> loss) {
                         OnPacket(interface, packet, loss);
                       });
  }
}

void PacketCapture::OnPacket(uint32_t interface, const Packet& packet,
                             std::optional<DropReason> loss) {
  if (!is_running_) return;
  WriteUntil(network_.LastBitPs(packet) - order_lag_ps_);
  if (file_.bytes() >= bytes_max_) {
    ++left_out_;
    return;
  }
  std::optional<Frame> frame = FrameOf(packet);
  if (!frame) {
    ++(IsAggregate(packet.kind) ? aggregates_ : unknown_);
    return;
  }
  ++captured_;
  waiting_.emplace(
      network_.LastBitPs(packet),
      Waiting{.interface = interface,
              .frame = *std::move(frame),
              .comment = loss ? fmt::format("lost on this link: {}", DropReasonName(*loss)) : ""});
}

void PacketCapture::WriteUntil(int64_t time_ps) {
  while (!waiting_.empty() && waiting_.begin()->first <= time_ps) {
    auto& [last_bit_ps, waiting] = *waiting_.begin();
    const int64_t time_ns = last_bit_ps / kPsPerNs;
    Frame& frame = waiting.frame;
    if (settings_.is_infiniband) {
      frame.bytes = ErfHeader(time_ns, frame) + frame.bytes;
      frame.length_bytes += kErfHeaderBytes;
    }
    file_.AddFrame(waiting.interface, {.time_ns = time_ns,
                                       .length_bytes = frame.length_bytes,
                                       .bytes = frame.bytes,
                                       .comment = waiting.comment});
    waiting_.erase(waiting_.begin());
  }
}

void PacketCapture::Finish(RunResult& result) {
  Stop();
  WriteUntil(INT64_MAX);
  file_.Close();
  if (left_out_ > 0) {
    result.notes.push_back(
        fmt::format("Capture of {}: the first {}; {} more are left out, to keep to {}.", name_,
                    Counted(captured_, "packet"), left_out_, FormatBytes(bytes_max_)));
  }
  if (aggregates_ > 0) {
    result.notes.push_back(fmt::format(
        "Capture of {}: it lacks {} of reductions in switches, whose headers are not public.",
        name_, Counted(aggregates_, "packet")));
  }
  if (unknown_ > 0) {
    result.notes.push_back(
        fmt::format("Capture of {}: it lacks {} whose message had been acknowledged too long ago.",
                    name_, Counted(unknown_, "packet")));
  }
}

std::optional<Frame> PacketCapture::FrameOf(const Packet& packet) const {
  switch (packet.kind) {
    case PacketKind::kNetworkData:
    case PacketKind::kClearToSend:
    case PacketKind::kAck:
    case PacketKind::kNack:
    case PacketKind::kCnp:
    case PacketKind::kUnreliableSend:
      return settings_.is_tcp ? TcpFrameOf(packet) : RdmaFrameOf(packet);
    default:
      return std::nullopt;
  }
}

FrameEnds PacketCapture::EndsOf(const Packet& packet) const {
  const QueuePair& pair = queue_pairs_.pair(QueuePairOf(QueueId{packet.flow}));
  FrameEnds ends{.source_nic = pair.source_nic,
                 .destination_nic = pair.destination_nic,
                 .link_source = graph_.link_source(packet.link),
                 .link_target = graph_.link_target(packet.link)};
  if (!IsForward(packet)) std::swap(ends.source_nic, ends.destination_nic);
  return ends;
}

PacketCapture::Position PacketCapture::PositionBefore(QueueId queue, uint32_t sequence) const {
  const auto last = queue_pairs_.MessageOf(queue, sequence - 1);
  if (!last) return {};  // nothing has come
  if (sequence == last->message.end_sequence) {
    return {.messages = last->number + 1, .bytes = last->offset_bytes + last->message.bytes};
  }
  const uint64_t packets = sequence - last->message.first_sequence;
  return {.messages = last->number,
          .bytes = last->offset_bytes + packets * queue_pairs_.mtu_bytes()};
}

// --- RDMA ----------------------------------------------------------------------------------------

std::optional<Frame> PacketCapture::RdmaFrameOf(const Packet& packet) const {
  if (packet.kind == PacketKind::kNetworkData || packet.kind == PacketKind::kClearToSend) {
    const auto headers = WriteHeaders(packet);
    if (!headers) return std::nullopt;
    return RdmaFrame(packet, *headers);
  }
  return AnswerFrameOf(packet);
}

std::optional<RdmaHeaders> PacketCapture::WriteHeaders(const Packet& packet) const {
  using Opcode = RdmaHeaders::Opcode;
  const auto placed = queue_pairs_.MessageOf(QueueId{packet.flow}, packet.sequence);
  if (!placed) return std::nullopt;
  const bool is_last = (packet.flags & Packet::kLastOfMessage) != 0;
  RdmaHeaders headers{.asks_for_ack = is_last,
                      .sequence = packet.sequence & kMask24,
                      .address = (packet.flow + uint64_t{1}) << kQueueShift |
                                 placed->number % kMessageSlots << kMessageShift,
                      .key = packet.flow + 1,
                      .message_bytes = placed->message.bytes,
                      .payload_bytes = packet.payload_bytes};
  if (packet.sequence == placed->message.first_sequence) {
    headers.opcode = is_last ? Opcode::kWriteOnly : Opcode::kWriteFirst;
  } else {
    headers.opcode = is_last ? Opcode::kWriteLast : Opcode::kWriteMiddle;
  }
  return headers;
}

Frame PacketCapture::AnswerFrameOf(const Packet& packet) const {
  using Opcode = RdmaHeaders::Opcode;
  RdmaHeaders headers;
  if (packet.kind == PacketKind::kUnreliableSend) {
    headers.opcode = Opcode::kUnreliableSendOnlyWithImmediate;
    headers.immediate = packet.sequence;
  } else if (packet.kind == PacketKind::kCnp) {
    headers.opcode = Opcode::kCnp;
  } else {
    headers.opcode = Opcode::kAcknowledge;
    headers.is_nak = packet.kind == PacketKind::kNack;
    // An ACK has the number of the last packet in order, a NAK that of the missing one.
    headers.sequence = (packet.sequence - (headers.is_nak ? 0 : 1)) & kMask24;
    headers.messages =
        static_cast<uint32_t>(PositionBefore(QueueId{packet.flow}, packet.sequence).messages) &
        kMask24;
  }
  return RdmaFrame(packet, headers);
}

Frame PacketCapture::RdmaFrame(const Packet& packet, RdmaHeaders headers) const {
  headers.is_marked = (packet.flags & Packet::kEcnMarked) != 0;
  const FlowId queue_pair = QueuePairOf(QueueId{packet.flow});
  const uint32_t end = IsForward(packet) ? 1 : 0;
  headers.queue_pair = (kFirstQueuePair + 2 * queue_pair + end) & kMask24;
  if (settings_.is_infiniband) return InfinibandFrame(EndsOf(packet), headers, snap_bytes_);
  const auto port = static_cast<uint16_t>(0xC000 | (Mix64(queue_pair) & 0x3FFF));
  return RoceFrame(EndsOf(packet), port, headers, snap_bytes_);
}

// --- TCP -----------------------------------------------------------------------------------------

std::optional<Frame> PacketCapture::TcpFrameOf(const Packet& packet) const {
  const FlowId stream = QueuePairOf(QueueId{packet.flow});
  const auto milliseconds = [](int64_t time_ps) {
    return static_cast<uint32_t>(time_ps / kPsPerMs);
  };
  const auto number = [](uint64_t bytes) { return static_cast<uint32_t>(1 + bytes); };
  TcpHeaders headers{.source_port = static_cast<uint16_t>(1'024 + stream % kTcpPorts),
                     .destination_port = static_cast<uint16_t>(52'000 + stream / kTcpPorts),
                     .is_marked = (packet.flags & Packet::kEcnMarked) != 0,
                     .window = UINT16_MAX,
                     .payload_bytes = packet.payload_bytes};
  if (!IsForward(packet)) std::swap(headers.source_port, headers.destination_port);
  if (packet.kind != PacketKind::kAck) {
    const auto placed = queue_pairs_.MessageOf(QueueId{packet.flow}, packet.sequence);
    if (!placed) return std::nullopt;
    const uint64_t packets = packet.sequence - placed->message.first_sequence;
    headers.sequence = number(placed->offset_bytes + packets * queue_pairs_.mtu_bytes());
    headers.acknowledged = 1;
    headers.is_last = (packet.flags & Packet::kLastOfMessage) != 0;
    headers.timestamp = milliseconds(packet.timestamp_ps);
    return TcpFrame(EndsOf(packet), headers, snap_bytes_);
  }
  const TcpAckWord word = TcpAckWord::Unpack(packet.acknowledged);
  const auto before = [&](uint32_t sequence) {
    return number(PositionBefore(QueueId{packet.flow}, sequence).bytes);
  };
  headers.sequence = 1;
  headers.acknowledged = before(packet.sequence);
  const uint64_t room = uint64_t{queue_pairs_.mtu_bytes()} * (word.offered_end - packet.sequence);
  headers.window = static_cast<uint16_t>(std::min<uint64_t>(UINT16_MAX, room >> kWindowShift));
  headers.timestamp = milliseconds(network_.LastBitPs(packet));
  headers.echo = milliseconds(packet.timestamp_ps);
  if (word.block_begin != word.block_end) {
    headers.block_begin = before(packet.sequence + word.block_begin);
    headers.block_end = before(packet.sequence + word.block_end);
  }
  return TcpFrame(EndsOf(packet), headers, snap_bytes_);
}

}  // namespace railyard
