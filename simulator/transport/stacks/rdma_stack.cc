// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/transport/stacks/rdma_stack.h"

#include "simulator/transport/stacks/network_stack_settings.h"
namespace railyard {

RdmaStack::RdmaStack(const NetworkStackParts& parts, const NetworkStackSettings& settings)
    : ports_are_devices_(!settings.nic.link_aggregation),
      rdma_(parts.graph, parts.network, parts.routing, settings.nic, settings.nic_variants,
            settings.nics),
      striped_(parts.graph, rdma_, parts.network.engine(), settings.nic, settings.ib),
      detours_(parts.graph, parts.load_store, rdma_) {}

Transport& RdmaStack::Between(GpuIndex source_gpu, GpuIndex destination_gpu) {
  if (striped_.AreSeveral(source_gpu, destination_gpu)) return striped_;
  return rdma_;
}

void RdmaStack::TakePackets(FabricNetwork& network) {
  if (ports_are_devices_) network.GivePortsAddresses();
  network.SetSinkOf({PacketKind::kNetworkData, PacketKind::kClearToSend, PacketKind::kAck,
                     PacketKind::kNack, PacketKind::kCnp, PacketKind::kUnreliableSend},
                    rdma_);
}

}  // namespace railyard
