// SPDX-License-Identifier: GPL-2.0-only
// Implements connections over TCP sockets, as in NCCL's built-in network
// (src/transport/net_socket.cc). A connection has a control socket and SOCKET_NTHREADS x
// NSOCKS_PERTHREAD data sockets, each of which is a stream of the transport.
//
// A send first writes its size, 4 bytes, to the control socket. Its data is then divided into
// tasks, which use the data sockets in turn. A task has the size divided by data_sockets(), but at
// least 64 KiB. Without data sockets the control socket also carries the data. A receive reads the
// size, then the tasks. A socket's helper thread copies data into the kernel as far as the send
// buffer has room, and copies received data out of it. A send is complete when the kernel has all
// its data. The proxy of a GPU is the thread of its control sockets, for both directions.
//
// A thread copies one piece at a time, in the order in which the pieces became ready. A piece is
// the unit that segmentation offload passes to a NIC: whole segments of at most 64 KiB.
//
// Host memory is not a separate device: the GPU's write to it and the NIC's read from it are
// together one crossing of the link between the two (docs/adr/0087).
#pragma once

#include <cstdint>
#include <deque>
#include <variant>
#include <vector>

#include "simulator/transport/contract/composite_transport.h"
#include "simulator/transport/contract/message_size.h"
#include "simulator/transport/contract/proxy_threads.h"
#include "simulator/transport/tcp/net_socket_settings.h"
#include "simulator/transport/tcp/tcp_transport.h"

namespace railyard {

class SocketConnections final : public CompositeTransport, public StateOwner {
 public:
  // `proxies` contains the threads of control sockets. All references but `settings` must outlive
  // this object.
  SocketConnections(TcpTransport& tcp, FabricSimulatorImpl& engine, uint32_t mtu_payload_bytes,
                    const NetSocketSettings& settings, ProxyThreads& proxies);

  // These functions implement Transport. `entropy` also orders events. Grants are not sent, since
  // the sender waits for room in the kernels' buffers instead.
  FlowId Open(const SinkRef& sink, GpuIndex source_gpu, GpuIndex destination_gpu,
              uint64_t entropy) override;
  void Post(FlowId socket_connection, const PostedMessage& message) override;
  void Grant(FlowId socket_connection, bool tells_sender) override;
  void Close(FlowId socket_connection) override;
  bool BuffersMessages() const override { return true; }
  uint16_t LabelOfDelivered(FlowId socket_connection) const override;
  // These functions return the links of the sockets that carry data.
  std::vector<LinkId> LinksOf(FlowId socket_connection) const override;
  std::vector<LinkShare> LinkSharesOf(FlowId socket_connection) const override;
  // Returns the sum over all sockets.
  RecoveryTimes RecoveryOf(FlowId socket_connection, bool of_data) const override;
  bool HasUnrepairedLoss(FlowId socket_connection) const override;
  // Returns the status of the first data socket with unacknowledged data.
  FlowStatus StatusOf(FlowId socket_connection) const override;
  StateOwner* state() override { return this; }
  std::string state_name() const override { return "the threads of sockets"; }
  std::string WhyNeverReplayed() const override {
    return "snapshots do not cover the threads' schedules or the sockets' contents";
  }
  void Visit(StateArchive& archive) override;

  // These functions implement MessageSink for the streams.
  void OnDelivered(uint32_t number) override;
  void OnCompleted(uint32_t number) override;
  void OnFailed(uint32_t number, bool at_sender, const FlowError& error) override;

 private:
  // Describes the unit that a thread copies at once.
  struct Piece {
    uint64_t message = 0;
    MessageSize size;
    bool is_size = false;
  };
  using HelperThreadId = Identifier<struct HelperThreadIdTag>;
  // Names a helper thread, or the GPU whose proxy is meant.
  using Thread = std::variant<HelperThreadId, GpuIndex>;
  // Names the threads that copy a stream's data into and out of the kernel.
  struct Copiers {
    Thread sending;
    Thread receiving;
  };
  using StreamId = Identifier<struct SocketStreamTag>;
  struct Stream {
    FlowId connection;  // socket connection
    FlowId queue_pair;  // of the transport
    uint64_t tie = 0;
    Copiers copiers;
    std::deque<Piece> unsent;
    std::deque<Piece> sent;         // pieces that the receiver has not read
    std::deque<uint32_t> buffered;  // bytes of pieces in the send buffer, not acknowledged
    uint64_t buffered_bytes = 0;
    uint32_t arrived = 0;  // number of pieces of `sent`, from the first, that have arrived
    bool copies_in = false;
    bool copies_out = false;
  };
  struct Message {
    uint32_t unsent = 0;  // pieces
    uint32_t unread = 0;  // pieces
    uint16_t label = 0;
    bool size_is_read = false;
  };
  struct SocketConnection {
    SinkRef user;
    StreamId first_stream;     // the control socket; the data sockets follow
    uint32_t next_socket = 0;  // data socket of the next task
    uint64_t receives = 0;     // posted so far
    std::deque<Message> messages;
    uint64_t first_message = 0;  // number of the first
    uint32_t completed = 0;      // of `messages`
    bool is_closed = false;
    std::vector<FlowId> data_queue_pairs;
  };
  enum class Direction : uint32_t { kIn, kOut };

  static void HandleCopy(void* self, uint32_t target);
  HelperThreadId AddThread();
  // Occupies a thread for `duration_ps`. Returns when it is done.
  int64_t Occupy(const Thread& thread, int64_t duration_ps);
  void AddStream(FlowId socket_connection, uint64_t entropy, const Copiers& copiers,
                 GpuIndex source_gpu, GpuIndex destination_gpu);
  void Append(StreamId stream, uint64_t message, const MessageSize& size);
  void StartCopy(StreamId stream, Direction direction, uint32_t bytes);
  void CopyIn(StreamId stream);
  void OnCopiedIn(StreamId stream);
  bool IsReadable(const Stream& stream) const;
  bool IsClosed(const Stream& stream) const { return connections_[stream.connection].is_closed; }
  void CopyOut(StreamId stream);
  void OnCopiedOut(StreamId stream);
  Message& MessageOf(SocketConnection& of, uint64_t number) {
    return of.messages[number - of.first_message];
  }
  FlowId FlowOf(uint32_t stream) const override { return streams_[stream].connection; }
  SinkRef UserOf(uint32_t stream) const override {
    return connections_[streams_[stream].connection].user;
  }
  void ReportSent(FlowId socket_connection);
  void ReportDelivered(FlowId socket_connection);

  TcpTransport& tcp_;
  FabricSimulatorImpl& engine_;
  NetSocketSettings settings_;
  uint32_t piece_bytes_max_;
  ProxyThreads& proxies_;
  // Both are deques, because their elements must not move when others are added.
  std::deque<SocketConnection> connections_;
  std::deque<Stream> streams_;
  std::vector<int64_t> thread_free_ps_;  // by HelperThreadId
};

}  // namespace railyard
