// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/transport/connections/socket_connections.h"
#include "simulator/transport/contract/network_stack.h"
#include "simulator/transport/tcp/tcp_transport.h"

namespace railyard {

// Implements NCCL over TCP sockets. Traffic that belongs to no collective uses streams without
// NCCL's threads.
class SocketStack final : public NetworkStack {
 public:
  SocketStack(const NetworkStackParts& parts, const NetworkStackSettings& settings);

  Transport& Between(GpuIndex /*source_gpu*/, GpuIndex /*destination_gpu*/) override {
    return sockets_;
  }
  Transport& Plain() override { return tcp_; }
  QueueTransport* queue_pairs() override { return &tcp_; }
  StackCounters counters() const override { return tcp_.counters(); }
  uint64_t counted_payload_bytes() const override { return tcp_.counted_payload_bytes(); }
  void TakePackets(FabricNetwork& network) override;
  void OnRoutesChanged() override { tcp_.OnRoutesChanged(); }
  std::vector<std::pair<std::string, Transport*>> transports() override {
    return {{"TCP", &tcp_}, {"sockets", &sockets_}};
  }

 private:
  TcpTransport tcp_;
  SocketConnections sockets_;
};

}  // namespace railyard
