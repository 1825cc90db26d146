// SPDX-License-Identifier: GPL-2.0-only
// Finds the partitions of a job, the partition that a call uses, and the communicators that are
// equivalent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/replay/partitions/nvlink_partitions.h"
#include "simulator/replay/partitions/partition.h"
#include "simulator/replay/partitions/partition_host.h"
#include "simulator/replay/streams/call_table.h"
#include "simulator/replay/streams/plan_cache.h"
#include "simulator/units/job_ids.h"
#include "simulator/units/time_end.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

class PartitionMap {
 public:
  struct Settings {
    bool of_nvlinks = true;  // otherwise there are no partitions at all
    bool of_nics = true;
    // Faults may affect these links and GPUs.
    std::vector<LinkId> faulty_links{};
    std::vector<GpuIndex> faulty_gpus{};
  };
  // Rank r of the job is GPU r. All references must outlive this.
  PartitionMap(const FabricGraph& graph, const CallTable& calls, PlanCache& plans,
               const PartitionHost& host, Settings settings);

  // Finds all partitions anew, after ranks have moved to other GPUs.
  void Rebuild();

  uint32_t count() const { return static_cast<uint32_t>(partitions_.size()); }
  // Returns a partition; those of NVLinks come first.
  const Partition& partition(PartitionIndex number) const { return partitions_[number]; }
  Partition& partition(PartitionIndex number) { return partitions_[number]; }
  bool has_nics() const {
    return std::ranges::any_of(partitions_, [](const Partition& p) { return p.of_nics; });
  }
  // Returns the partition that a call uses, possibly among other resources; PartitionIndex::kNone
  // if it uses none. Precondition: the call is not computation.
  PartitionIndex PartitionOf(const Call& call) const;
  // Returns true if the partition contains all resources that the collective uses. Precondition:
  // its calls use the partition.
  bool IsOfPartitionAlone(PartitionIndex partition, CollectiveIndex collective) const;
  // These return true if a rank's operation uses NVLinks, or NICs; computation uses neither.
  bool UsesNvlinks(GlobalRank rank, const JobOperation& operation) const;
  bool UsesNics(GlobalRank rank, const JobOperation& operation) const;
  // Returns true if traffic over the GPU's NVLinks and NIC crosses resources of the partition.
  bool IsMetAt(const Partition& partition, GpuIndex gpu) const;
  // Returns a class per communicator: collectives of one kind and size on communicators of one
  // class differ only in the servers, or the rail, that they use.
  std::vector<uint32_t> ClassesOfCommunicators() const;
  // Returns the least time from a call's start to that of its channels.
  int64_t least_launch_ps() const { return least_launch_ps_; }

 private:
  void AddPartitionsOfNvlinks();
  void AddPartitionsOfNics();
  Partition PartitionOfNics(const std::vector<GpuIndex>& gpus) const;
  void FindNeighbours();
  bool MayFail(const std::vector<LinkId>& links, const std::vector<GpuIndex>& gpus) const;
  std::optional<DeviceId> NicOf(GpuIndex gpu) const { return graph_.NicOfGpu(graph_.gpus()[gpu]); }
  std::vector<uint32_t> MembersOfClass(CommunicatorIndex communicator) const;

  const FabricGraph& graph_;
  const CallTable& calls_;
  PlanCache& plans_;
  const PartitionHost& host_;
  Settings settings_;
  std::unique_ptr<NvlinkPartitions> nvlinks_;  // null if there are no partitions
  std::vector<Partition> partitions_;
  std::vector<PartitionIndex> of_nics_;  // by communicator: its partition of NICs; may be empty
  int64_t least_launch_ps_ = kNeverPs;
};

}  // namespace railyard
