// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/connections/socket_connections.h"

#include <algorithm>
#include <utility>

#include "simulator/event_order/event_order.h"
#include "simulator/units/divide_up.h"
#include "simulator/units/mix64.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

constexpr uint64_t kTaskBytesMin = 64u << 10;  // MIN_CHUNKSIZE
constexpr uint32_t kSizeBytes = 4;             // an int
constexpr int kTieBits = 52;                   // of a stream and direction
static_assert(kTieBits >= FabricSimulatorImpl::kIdBits);

}  // namespace

SocketConnections::SocketConnections(TcpTransport& tcp, FabricSimulatorImpl& engine,
                                     uint32_t mtu_payload_bytes, const NetSocketSettings& settings,
                                     ProxyThreads& proxies)
    : tcp_(tcp),
      engine_(engine),
      settings_(settings),
      piece_bytes_max_(kSocketPieceBytesMax / mtu_payload_bytes * mtu_payload_bytes),
      proxies_(proxies) {
  engine.Register(event_order::kCopy, {.name = "copies", .state = {.owner = this}},
                  &SocketConnections::HandleCopy, this);
}

// --- Opening -------------------------------------------------------------------------------------

SocketConnections::HelperThreadId SocketConnections::AddThread() {
  thread_free_ps_.push_back(0);
  return HelperThreadId{thread_free_ps_.size() - 1};
}

int64_t SocketConnections::Occupy(const Thread& thread, int64_t duration_ps) {
  const int64_t now_ps = engine_.NowPs();
  if (const GpuIndex* const gpu = std::get_if<GpuIndex>(&thread)) {
    return proxies_.Occupy(*gpu, now_ps, duration_ps);
  }
  int64_t& free_ps = thread_free_ps_[std::get<HelperThreadId>(thread)];
  free_ps = std::max(free_ps, now_ps) + duration_ps;
  return free_ps;
}

FlowId SocketConnections::Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
                               uint64_t entropy) {
  const FlowId id{connections_.size()};
  SocketConnection& opened = connections_.emplace_back();
  opened.user = sink;
  opened.first_stream = StreamId{streams_.size()};
  AddStream(id, entropy, {source_gpu, destination_gpu}, source_gpu, destination_gpu);
  std::vector<Copiers> helpers;
  for (uint32_t i = 0; i < settings_.nthreads; ++i) {
    const HelperThreadId sending = AddThread();
    helpers.push_back({sending, AddThread()});
  }
  // Socket i belongs to thread i modulo the number of threads.
  for (uint32_t i = 0; i < settings_.data_sockets(); ++i) {
    AddStream(id, Mix64(entropy ^ (i + 1)), helpers[i % helpers.size()], source_gpu,
              destination_gpu);
    opened.data_queue_pairs.push_back(streams_.back().queue_pair);
  }
  if (opened.data_queue_pairs.empty()) {
    opened.data_queue_pairs.push_back(streams_.back().queue_pair);
  }
  return id;
}

void SocketConnections::AddStream(FlowId id, uint64_t entropy, const Copiers& copiers,
                                  GpuIndex source_gpu, GpuIndex destination_gpu) {
  const auto number = static_cast<uint32_t>(streams_.size());
  Stream& stream = streams_.emplace_back();
  stream.connection = id;
  stream.tie = Mix64(entropy);
  stream.copiers = copiers;
  stream.queue_pair = tcp_.Open({this, number}, source_gpu, destination_gpu, entropy);
  tcp_.ReadByHand(stream.queue_pair);
}

// --- Sending -------------------------------------------------------------------------------------

void SocketConnections::Post(FlowId id, const PostedMessage& message) {
  SocketConnection& of = connections_[id];
  const MessageSize& size = message.size;
  const uint64_t number = of.first_message + of.messages.size();
  of.messages.push_back({.unsent = 1, .unread = 1, .label = message.label});
  streams_[of.first_stream].unsent.push_back({number, {kSizeBytes, 0}, true});
  CopyIn(of.first_stream);
  const uint32_t sockets = settings_.data_sockets();
  if (sockets == 0) {
    Append(of.first_stream, number, size);
    return;
  }
  const uint64_t task_bytes = std::max(kTaskBytesMin, DivideUp(size.bytes, sockets));
  for (uint64_t begin = 0; begin < size.bytes; begin += task_bytes) {
    Append(StreamId{of.first_stream + 1 + of.next_socket}, number,
           size.Part(begin, std::min(begin + task_bytes, size.bytes)));
    of.next_socket = (of.next_socket + 1) % sockets;
  }
}

void SocketConnections::Append(StreamId id, uint64_t number, const MessageSize& size) {
  Stream& stream = streams_[id];
  Message& message = MessageOf(connections_[stream.connection], number);
  for (uint64_t begin = 0; begin < size.bytes; begin += piece_bytes_max_) {
    const uint64_t end = std::min(begin + piece_bytes_max_, size.bytes);
    stream.unsent.push_back({number, size.Part(begin, end), false});
    ++message.unsent;
    ++message.unread;
  }
  CopyIn(id);
}

void SocketConnections::StartCopy(StreamId id, Direction direction, uint32_t bytes) {
  const Stream& stream = streams_[id];
  const bool is_in = direction == Direction::kIn;
  const int64_t copied_ps =
      Occupy(is_in ? stream.copiers.sending : stream.copiers.receiving,
             TransferTimePs(bytes, is_in ? settings_.send_rate_bps : settings_.receive_rate_bps));
  const auto direction_bit = static_cast<uint32_t>(direction);
  // The remaining bits of the tie still order events; the target distinguishes equal ones.
  constexpr uint64_t kTieMask = (uint64_t{1} << kTieBits) - 1;
  const uint64_t tie =
      ((stream.tie << 1 | direction_bit) & kTieMask) >> (kTieBits - FabricSimulatorImpl::kIdBits);
  engine_.ScheduleFabric(copied_ps, event_order::kCopy, tie, id << 1 | direction_bit);
}

void SocketConnections::Close(FlowId id) {
  connections_[id].is_closed = true;
  for (uint32_t stream = connections_[id].first_stream;
       stream < streams_.size() && streams_[stream].connection == id; ++stream) {
    tcp_.Close(streams_[stream].queue_pair);
  }
}

void SocketConnections::HandleCopy(void* self, uint32_t target) {
  auto& sockets = *static_cast<SocketConnections*>(self);
  const StreamId stream{target >> 1};
  if (sockets.IsClosed(sockets.streams_[stream])) return;
  if (static_cast<Direction>(target & 1) == Direction::kIn) {
    sockets.OnCopiedIn(stream);
  } else {
    sockets.OnCopiedOut(stream);
  }
}

void SocketConnections::CopyIn(StreamId id) {
  Stream& stream = streams_[id];
  if (IsClosed(stream) || stream.copies_in || stream.unsent.empty()) return;
  const uint32_t bytes = static_cast<uint32_t>(stream.unsent.front().size.bytes);
  if (stream.buffered_bytes + bytes > kTcpSendBufferBytes) return;  // until some is acknowledged
  stream.copies_in = true;
  StartCopy(id, Direction::kIn, bytes);
}

void SocketConnections::OnCopiedIn(StreamId id) {
  Stream& stream = streams_[id];
  const Piece piece = stream.unsent.front();
  stream.copies_in = false;
  stream.unsent.pop_front();
  stream.sent.push_back(piece);
  stream.buffered.push_back(static_cast<uint32_t>(piece.size.bytes));
  stream.buffered_bytes += piece.size.bytes;
  tcp_.PostReceives(stream.queue_pair, 1);
  tcp_.Post(stream.queue_pair, {.size = piece.size});
  CopyIn(id);
  if (--MessageOf(connections_[stream.connection], piece.message).unsent > 0) return;
  ReportSent(stream.connection);
}

// The kernel's buffer has released the oldest piece, so there is room for others.
void SocketConnections::OnCompleted(uint32_t number) {
  const StreamId id{number};
  Stream& stream = streams_[id];
  stream.buffered_bytes -= stream.buffered.front();
  stream.buffered.pop_front();
  CopyIn(id);
}

// The proxy examines its requests in order.
void SocketConnections::ReportSent(FlowId id) {
  SocketConnection& of = connections_[id];
  while (of.completed < of.messages.size() && of.messages[of.completed].unsent == 0) {
    ++of.completed;
    of.user.sink->OnCompleted(of.user.number);
  }
}

// --- Receiving -----------------------------------------------------------------------------------

void SocketConnections::Grant(FlowId id, bool /*tells_sender*/) {
  ++connections_[id].receives;
  CopyOut(connections_[id].first_stream);
}

void SocketConnections::OnDelivered(uint32_t number) {
  const StreamId id{number};
  ++streams_[id].arrived;
  CopyOut(id);
}

bool SocketConnections::IsReadable(const Stream& stream) const {
  const SocketConnection& of = connections_[stream.connection];
  const Piece& piece = stream.sent.front();
  if (piece.is_size) return piece.message < of.receives;
  return of.messages[piece.message - of.first_message].size_is_read;
}

void SocketConnections::CopyOut(StreamId id) {
  Stream& stream = streams_[id];
  if (IsClosed(stream) || stream.copies_out || stream.arrived == 0 || !IsReadable(stream)) return;
  stream.copies_out = true;
  StartCopy(id, Direction::kOut, static_cast<uint32_t>(stream.sent.front().size.bytes));
}

void SocketConnections::OnCopiedOut(StreamId id) {
  Stream& stream = streams_[id];
  SocketConnection& of = connections_[stream.connection];
  const Piece piece = stream.sent.front();
  stream.copies_out = false;
  stream.sent.pop_front();
  --stream.arrived;
  tcp_.Read(stream.queue_pair, static_cast<uint32_t>(piece.size.bytes));
  Message& message = MessageOf(of, piece.message);
  if (piece.is_size) {
    message.size_is_read = true;
    for (uint32_t i = 1; i <= settings_.data_sockets(); ++i) CopyOut(StreamId{of.first_stream + i});
  }
  CopyOut(id);
  if (--message.unread == 0) ReportDelivered(stream.connection);
}

void SocketConnections::ReportDelivered(FlowId id) {
  SocketConnection& of = connections_[id];
  while (!of.messages.empty() && of.messages.front().unread == 0) {
    of.user.sink->OnDelivered(of.user.number);
    of.messages.pop_front();
    ++of.first_message;
    --of.completed;
  }
}

uint16_t SocketConnections::LabelOfDelivered(FlowId id) const {
  return connections_[id].messages.front().label;
}

// --- Callbacks of the transport ------------------------------------------------------------------

void SocketConnections::OnFailed(uint32_t number, bool at_sender, const FlowError& error) {
  const SinkRef user = UserOf(number);
  user.sink->OnFailed(user.number, at_sender, error);
}

// --- Queries -------------------------------------------------------------------------------------

std::vector<LinkId> SocketConnections::LinksOf(FlowId id) const {
  return tcp_.LinksOf(connections_[id].data_queue_pairs.front());
}

std::vector<LinkShare> SocketConnections::LinkSharesOf(FlowId id) const {
  return tcp_.EvenSharesOf(connections_[id].data_queue_pairs);
}

FlowStatus SocketConnections::StatusOf(FlowId id) const {
  const std::vector<FlowId>& sockets = connections_[id].data_queue_pairs;
  for (const FlowId socket : sockets) {
    FlowStatus status = tcp_.StatusOf(socket);
    if (status.is_under_way) return status;
  }
  return tcp_.StatusOf(sockets.front());
}

RecoveryTimes SocketConnections::RecoveryOf(FlowId id, bool of_data) const {
  if (!of_data) return {};
  RecoveryTimes times;
  const SocketConnection& of = connections_[id];
  const uint32_t streams = settings_.data_sockets() + 1;
  for (uint32_t i = 0; i < streams; ++i) {
    times += tcp_.RecoveryOf(streams_[of.first_stream + i].queue_pair, true);
  }
  return times;
}

bool SocketConnections::HasUnrepairedLoss(FlowId id) const {
  const uint32_t first = connections_[id].first_stream;
  return std::any_of(
      streams_.begin() + first, streams_.begin() + first + settings_.data_sockets() + 1,
      [this](const Stream& stream) { return tcp_.HasUnrepairedLoss(stream.queue_pair); });
}

// Snapshots do not contain the threads' times and the sockets' turns: no run over sockets is
// replayed.
void SocketConnections::Visit(StateArchive& archive) {
  for (const SocketConnection& of : connections_) archive.Require(of.is_closed);
}

}  // namespace railyard
