// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/replay/streams/bound.h"

#include <algorithm>

namespace railyard {

BoundModel::BoundModel(const FabricGraph& graph, const NicSettings& nic)
    : graph_(graph),
      mtu_bytes_(nic.mtu_bytes),
      header_bytes_(nic.HeaderBytes()),
      ends_(graph.gpus().size()),
      local_load_(graph.gpus().size()),
      nic_load_(graph.device_count()),
      nic_bps_(graph.device_count()) {
  for (GpuIndex gpu{0}; gpu < ends_.size(); ++gpu) {
    Ends& ends = ends_[gpu];
    AddLocalLinks(Tier::kNvlink, gpu);
    ends.efficiency_per_mille = graph.nvlink.efficiency_per_mille;
    if (ends.local_bps == 0) {
      AddLocalLinks(Tier::kHost, gpu);
      ends.efficiency_per_mille = 1000;
    }
    const auto nic_device = graph.NicOfGpu(graph.gpus()[gpu]);
    if (!nic_device) continue;
    ends.nic = *nic_device;
    nic_bps_[ends.nic] = 0;
    int64_t host_ps = 0;
    int64_t wire_ps = kNeverPs;
    for (const auto edge :
         boost::make_iterator_range(boost::out_edges(*nic_device, graph.graph()))) {
      const LinkProperties& link = graph.graph()[edge];
      if (link.tier == Tier::kHost) {
        host_ps = host_ps == 0 ? link.propagation_ps : std::min(host_ps, link.propagation_ps);
      } else {
        nic_bps_[ends.nic] += link.rate_bps;
        wire_ps = std::min(wire_ps, link.propagation_ps);
      }
    }
    ends.network_latency_ps = host_ps + (wire_ps == kNeverPs ? 0 : wire_ps);
  }
}

void BoundModel::AddLocalLinks(Tier tier, GpuIndex gpu) {
  Ends& ends = ends_[gpu];
  ends.local_latency_ps = kNeverPs;
  for (const auto edge :
       boost::make_iterator_range(boost::out_edges(graph_.gpus()[gpu], graph_.graph()))) {
    const LinkProperties& link = graph_.graph()[edge];
    if (link.tier != tier) continue;
    ends.local_bps += link.rate_bps;
    ends.local_latency_ps = std::min(ends.local_latency_ps, link.propagation_ps);
  }
}

void BoundModel::AddLocal(GpuIndex from_gpu, GpuIndex to_gpu, uint64_t bytes) {
  local_load_[from_gpu].out_bytes += bytes;
  local_load_[to_gpu].in_bytes += bytes;
  touched_gpus_.push_back(from_gpu);
  touched_gpus_.push_back(to_gpu);
}

void BoundModel::Add(bool network, GpuIndex from_gpu, GpuIndex to_gpu, GpuIndex injecting_gpu,
                     uint64_t bytes) {
  if (bytes == 0 || (!network && from_gpu == to_gpu)) return;
  const auto local_latency_ps = [this](GpuIndex a, GpuIndex b) {
    return ends_[a].local_latency_ps + ends_[b].local_latency_ps;
  };
  if (!network) {
    AddLocal(from_gpu, to_gpu, bytes);
    latency_ps_ = std::min(latency_ps_, local_latency_ps(from_gpu, to_gpu));
    return;
  }
  int64_t latency_ps = ends_[injecting_gpu].network_latency_ps + ends_[to_gpu].network_latency_ps;
  if (from_gpu != injecting_gpu) {
    AddLocal(from_gpu, injecting_gpu, bytes);
    latency_ps += local_latency_ps(from_gpu, injecting_gpu);
  }
  latency_ps_ = std::min(latency_ps_, latency_ps);
  nic_load_[ends_[injecting_gpu].nic].out_bytes += bytes;
  nic_load_[ends_[to_gpu].nic].in_bytes += bytes;
  touched_nics_.push_back(ends_[injecting_gpu].nic);
  touched_nics_.push_back(ends_[to_gpu].nic);
}

int64_t BoundModel::Take() {
  int64_t bound_ps = 0;
  for (const GpuIndex gpu : touched_gpus_) {
    Load& load = local_load_[gpu];
    const uint64_t payload = std::max(load.out_bytes, load.in_bytes);
    if (payload == 0) continue;
    const uint64_t wire = payload * 1000 / ends_[gpu].efficiency_per_mille;
    bound_ps = std::max(bound_ps, TransferTimePs(wire, ends_[gpu].local_bps));
    load = {};
  }
  for (const DeviceId nic : touched_nics_) {
    Load& load = nic_load_[nic];
    const uint64_t payload = std::max(load.out_bytes, load.in_bytes);
    if (payload == 0) continue;
    const uint64_t wire = payload + payload / mtu_bytes_ * header_bytes_;
    bound_ps = std::max(bound_ps, TransferTimePs(wire, nic_bps_[nic]));
    load = {};
  }
  touched_gpus_.clear();
  touched_nics_.clear();
  if (latency_ps_ != kNeverPs) bound_ps += latency_ps_;
  latency_ps_ = kNeverPs;
  return bound_ps;
}

}  // namespace railyard
