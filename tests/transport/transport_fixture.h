// SPDX-License-Identifier: GPL-2.0-only
// Transports driven by hand over a small fabric: the test plays what the replay engine is to them
// and records all they say.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/transport/contract/message_sink.h"
#include "simulator/transport/load_store/load_store_transport.h"
#include "simulator/transport/rdma/rdma_transport.h"
#include "simulator/transport/tcp/tcp_transport.h"
#include "tests/fabric/network_fixture.h"
#include "topologies/routing/routing.h"

namespace railyard::testing {

class TransportFixture : public NetworkFixture, public MessageSink {
 protected:
  struct Reported {
    int64_t time_ps;
    uint32_t connection;
    bool operator==(const Reported&) const = default;
  };
  struct ReportedLoss {
    int64_t time_ps;
    uint32_t connection;
    LinkId link;
    bool operator==(const ReportedLoss&) const = default;
  };
  struct ReportedError {
    int64_t time_ps;
    uint32_t connection;
    std::string why;
    bool operator==(const ReportedError&) const = default;
  };

  // The fabric is complete.
  void BuildTransports(const NicSettings& nic = {}, const std::vector<NicVariant>& variants = {}) {
    BuildNetwork();
    routing_.emplace(graph_, 1);
    load_store_.emplace(graph_, network());
    if (nic.is_tcp) {
      queues_ = &tcp_.emplace(graph_, network(), *routing_, nic);
    } else {
      queues_ = &rdma_.emplace(graph_, network(), *routing_, nic, variants);
    }
  }

  // This, as the user of a flow that it calls `number`.
  SinkRef Me(uint32_t number) { return {this, number}; }

  void PostNvlink(FlowId flow, uint64_t bytes) {
    load_store_->Post(flow, MessageSize::OfData(bytes));
    load_store_->ServeDue();
  }

  // A queue pair whose receiver has posted receives for whatever will come.
  FlowId Open(uint32_t connection, GpuIndex source_gpu, GpuIndex destination_gpu,
              uint64_t entropy) {
    const FlowId queue_pair = queues_->Open(Me(connection), source_gpu, destination_gpu, entropy);
    queues_->PostReceives(queue_pair, 1u << 30);
    return queue_pair;
  }

  uint64_t Drops(DropReason reason) {
    return network().counters().dropped_packets[static_cast<size_t>(reason)];
  }

  void OnPacketAtNic(PacketId packet) override { queues_->OnPacketAtNic(packet); }
  void OnPacketInMemory(PacketId packet) override {
    if (IsInServer(network().packet(packet).kind)) {
      load_store_->OnPacketInMemory(packet);
    } else {
      queues_->OnPacketInMemory(packet);
    }
  }
  void OnLinkReleased(LinkId link) override { queues_->OnLinkReleased(link); }
  void OnPacketDropped(PacketId index, DropReason reason, LinkId link) override {
    NetworkFixture::OnPacketDropped(index, reason, link);
    if (IsInServer(network().packet(index).kind)) {
      load_store_->OnPacketDropped(index, reason, link);
    } else {
      queues_->OnPacketDropped(index, reason, link);
    }
  }

  void OnDelivered(uint32_t connection) override {
    delivered_.push_back({engine().NowPs(), connection});
    if (on_delivered_) on_delivered_(connection);
  }
  void OnCompleted(uint32_t connection) override {
    completed_.push_back({engine().NowPs(), connection});
    if (on_completed_) on_completed_(connection);
  }
  void OnGranted(uint32_t connection) override {
    clear_to_send_.push_back({engine().NowPs(), connection});
  }
  void OnPacketLost(uint32_t connection, const FlowLoss& loss) override {
    lost_.push_back({engine().NowPs(), connection, loss.link});
  }
  void OnRetransmission(uint32_t connection) override {
    retransmitted_.push_back({engine().NowPs(), connection});
  }
  void OnLossRecovered(uint32_t connection) override {
    recovered_.push_back({engine().NowPs(), connection});
  }
  void OnFailed(uint32_t connection, bool /*at_sender*/, const FlowError& error) override {
    errors_.push_back({engine().NowPs(), connection, error.why});
  }

  std::optional<EcmpRouting> routing_;
  std::optional<LoadStoreTransport> load_store_;
  std::optional<RdmaTransport> rdma_;
  std::optional<TcpTransport> tcp_;
  QueueTransport* queues_ = nullptr;  // whichever of them there is
  std::function<void(uint32_t connection)> on_delivered_;
  std::function<void(uint32_t connection)> on_completed_;
  std::vector<Reported> delivered_;
  std::vector<Reported> completed_;
  std::vector<Reported> clear_to_send_;
  std::vector<Reported> retransmitted_;
  std::vector<Reported> recovered_;
  std::vector<ReportedLoss> lost_;
  std::vector<ReportedError> errors_;
};

}  // namespace railyard::testing
