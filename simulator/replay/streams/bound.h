// SPDX-License-Identifier: GPL-2.0-only
// Computes a time that no schedule of the same bytes over the same links can beat: the largest,
// over the links that end at GPUs and NICs, of the payload and least headers on the link over its
// rate, plus the shortest latency of any of its paths. Links between switches are left out, because
// their load depends on routes.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/fabric/fabric_network.h"
#include "simulator/transport/nic/nic_settings.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

class BoundModel {
 public:
  BoundModel(const FabricGraph& graph, const NicSettings& nic);

  // Adds `bytes` from one GPU to another; over the network they are sent by the NIC of
  // `injecting_gpu`.
  void Add(bool network, GpuIndex from_gpu, GpuIndex to_gpu, GpuIndex injecting_gpu,
           uint64_t bytes);
  // Returns the bound in ps of the bytes added since the last call.
  int64_t Take();

 private:
  // Holds the rates and latencies of one GPU's links, each way.
  struct Ends {
    uint64_t local_bps = 0;  // to GPUs of its server: NVLink, else PCIe
    uint32_t efficiency_per_mille = 1000;
    int64_t local_latency_ps = 0;    // of one link, of which a path has two
    int64_t network_latency_ps = 0;  // the NIC's HOST link and its wire
    DeviceId nic = DeviceId::kNone;  // shared by GPUs
  };
  struct Load {
    uint64_t out_bytes = 0;
    uint64_t in_bytes = 0;
  };
  void AddLocalLinks(Tier tier, GpuIndex gpu);
  void AddLocal(GpuIndex from_gpu, GpuIndex to_gpu, uint64_t bytes);

  const FabricGraph& graph_;
  uint32_t mtu_bytes_;
  uint32_t header_bytes_;
  std::vector<Ends> ends_;         // by GPU
  std::vector<Load> local_load_;   // by GPU
  std::vector<Load> nic_load_;     // by device
  std::vector<uint64_t> nic_bps_;  // by device
  std::vector<GpuIndex> touched_gpus_;
  std::vector<DeviceId> touched_nics_;
  int64_t latency_ps_ = kNeverPs;
};

}  // namespace railyard
