// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/transport/connections/nic_detours.h"
#include "simulator/transport/connections/striped_connections.h"
#include "simulator/transport/contract/network_stack.h"
#include "simulator/transport/rdma/rdma_transport.h"

namespace railyard {

// Implements NCCL over InfiniBand or RoCE. A connection has one queue pair or is striped over
// several. Connections that leave a failed NIC take detours.
class RdmaStack final : public NetworkStack {
 public:
  RdmaStack(const NetworkStackParts& parts, const NetworkStackSettings& settings);

  Transport& Between(GpuIndex source_gpu, GpuIndex destination_gpu) override;
  Transport& Plain() override { return rdma_; }
  QueueTransport* queue_pairs() override { return &rdma_; }
  bool HasQueuePairConnections() const override { return true; }
  NicDetours* detours() override { return &detours_; }
  StackCounters counters() const override { return rdma_.counters(); }
  uint64_t counted_payload_bytes() const override { return rdma_.counted_payload_bytes(); }
  PortCounters port_counters() const override { return striped_.counters(); }
  void TakePackets(FabricNetwork& network) override;
  void OnRoutesChanged() override { rdma_.OnRoutesChanged(); }
  std::vector<std::pair<std::string, Transport*>> transports() override {
    return {{"RDMA", &rdma_}, {"striped connections", &striped_}, {"detours", &detours_}};
  }

 private:
  bool ports_are_devices_;
  RdmaTransport rdma_;
  StripedConnections striped_;
  NicDetours detours_;
};

}  // namespace railyard
