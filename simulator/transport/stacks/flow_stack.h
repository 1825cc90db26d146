// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/transport/contract/network_stack.h"
#include "simulator/transport/flow/flow_transport.h"

namespace railyard {

// Implements NCCL over InfiniBand or RoCE in flow mode.
class FlowStack final : public NetworkStack {
 public:
  // Precondition: parts.flows is set.
  FlowStack(const NetworkStackParts& parts, const NetworkStackSettings& settings);

  Transport& Between(GpuIndex /*source_gpu*/, GpuIndex /*destination_gpu*/) override {
    return transport_;
  }
  Transport& Plain() override { return transport_; }
  uint64_t counted_payload_bytes() const override { return transport_.counted_payload_bytes(); }
  void OnRoutesChanged() override { transport_.OnRoutesChanged(); }
  std::vector<std::pair<std::string, Transport*>> transports() override {
    return {{"flows", &transport_}};
  }

 private:
  FlowTransport transport_;
};

}  // namespace railyard
