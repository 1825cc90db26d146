// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/state/state_archive.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Models the CPU threads, one per GPU, that post messages to the network and process their arrival
// (NCCL's proxies). A thread does one thing at a time, in the order of the requests.
class ProxyThreads {
 public:
  explicit ProxyThreads(size_t gpus) : free_ps_(gpus) {}

  // Occupies the thread for `duration_ps`, from `now_ps` or from the end of its earlier work.
  // Returns the end.
  int64_t Occupy(GpuIndex gpu, int64_t now_ps, int64_t duration_ps) {
    int64_t& free_ps = free_ps_[gpu];
    free_ps = std::max(free_ps, now_ps) + duration_ps;
    return free_ps;
  }

  void Visit(StateArchive& archive) {
    for (GpuIndex gpu{0}; gpu < free_ps_.size(); ++gpu) Visit(gpu, archive);
  }
  void Visit(GpuIndex gpu, StateArchive& archive) {
    if (archive.is_naming()) archive.BeginRecord("proxy thread", gpu);
    archive.Named("free_ps").Instant(free_ps_[gpu]);
  }

 private:
  std::vector<int64_t> free_ps_;  // by GPU
};

}  // namespace railyard
