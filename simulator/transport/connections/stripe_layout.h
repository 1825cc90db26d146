// SPDX-License-Identifier: GPL-2.0-only
// Determines the queue pairs of which NCCL's network plug-in makes a connection: if the ports of a
// NIC are separate devices, it merges them and opens IB_QPS_PER_CONNECTION queue pairs on each.
// Their places in a connection take the devices in turn.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/transport/connections/net_ib_settings.h"
#include "simulator/transport/nic/nic_settings.h"
#include "simulator/transport/nic/queue_paths.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/routing/routing.h"

namespace railyard {

class StripeLayout {
 public:
  // `graph` must outlive this object.
  StripeLayout(const FabricGraph& graph, const NicSettings& nic, const NetIbSettings& settings)
      : graph_(graph),
        link_aggregation_(nic.link_aggregation),
        per_device_(settings.ib_qps_per_connection) {}

  // Returns the devices of a connection between two GPUs: one of a NIC with bonded ports, else as
  // many as the NIC with more ports has.
  uint32_t DeviceCount(GpuIndex source_gpu, GpuIndex destination_gpu) const;
  uint32_t QueuePairCount(GpuIndex source_gpu, GpuIndex destination_gpu) const {
    return per_device_ * DeviceCount(source_gpu, destination_gpu);
  }
  // Returns the ports to which a queue pair of a device is bound, unless the ports are bonded. The
  // NIC with fewer ports uses them for several devices.
  std::optional<PortPins> PinsOf(GpuIndex source_gpu, GpuIndex destination_gpu,
                                 uint32_t device) const;
  // Returns the input of hashes for the queue pair at a place of a connection.
  static uint64_t EntropyOf(uint64_t connection_entropy, uint32_t place);
  // Returns the ends of a connection's queue pairs, by place. A single one is bound to no port.
  std::vector<PairEnds> EndsOf(GpuIndex source_gpu, GpuIndex destination_gpu,
                               uint64_t entropy) const;

 private:
  std::vector<LinkId> PortsOfNic(GpuIndex gpu) const;

  const FabricGraph& graph_;
  bool link_aggregation_;
  uint32_t per_device_;  // queue pairs
};

}  // namespace railyard
