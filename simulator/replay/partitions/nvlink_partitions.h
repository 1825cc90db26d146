// SPDX-License-Identifier: GPL-2.0-only
// Finds the independent parts of a job's NVLinks: the calls of a job in one of them neither depend
// on anything outside it nor affect it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulator/replay/partitions/partition.h"
#include "topologies/graph/fabric_graph.h"
#include "traces/trace/trace.h"

namespace railyard {

// Describes GPUs of one server that a job's communicators join, with those that relay for them, and
// all their NVLinks.
struct NvlinkPartition {
  std::vector<GpuIndex> gpus;  // by number, ascending
  std::vector<LinkId> links;
  // Is equal for partitions whose GPUs and links are equal, in this order.
  uint32_t shape = 0;
};

// Classifies the links that the calls of a communicator use.
enum class NvlinkUse : uint8_t {
  kNone,   // no NVLinks
  kMixed,  // NVLinks and other links
  kOnly,   // NVLinks of one partition
};

class NvlinkPartitions {
 public:
  // Global rank r is GPU r.
  NvlinkPartitions(const FabricGraph& graph, std::span<const TraceCommunicator> communicators);

  // Must be called for a communicator within a server that uses NICs too.
  void UseNics(CommunicatorIndex communicator) {
    if (uses_[communicator] == NvlinkUse::kOnly) uses_[communicator] = NvlinkUse::kMixed;
  }

  const std::vector<NvlinkPartition>& partitions() const { return partitions_; }
  NvlinkUse UseOf(CommunicatorIndex communicator) const { return uses_[communicator]; }
  // Returns a GPU's partition, an index into partitions(); PartitionIndex::kNone if no communicator
  // uses its NVLinks.
  PartitionIndex OfGpu(GpuIndex gpu) const { return of_gpu_[gpu]; }
  // Returns a GPU's place among the GPUs of its partition.
  uint32_t PlaceOf(GpuIndex gpu) const { return place_of_gpu_[gpu]; }

 private:
  NvlinkUse Join(const FabricGraph& graph, const std::vector<GpuIndex>& gpus);
  void JoinServer(const FabricGraph& graph, const std::vector<GpuIndex>& gpus);
  void JoinGpus(GpuIndex a, GpuIndex b);
  GpuIndex RootOf(GpuIndex gpu);

  std::vector<GpuIndex> parents_;  // by GPU: parent in a forest with one tree per partition
  std::vector<bool> is_joined_;    // by GPU
  std::vector<NvlinkUse> uses_;    // by communicator
  std::vector<PartitionIndex> of_gpu_;
  std::vector<uint32_t> place_of_gpu_;
  std::vector<NvlinkPartition> partitions_;
};

}  // namespace railyard
