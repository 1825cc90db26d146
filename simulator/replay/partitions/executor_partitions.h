// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/execution/executor/lane_executor.h"
#include "simulator/execution/paths/path_tracer.h"
#include "simulator/fabric/fabric_network.h"
#include "simulator/replay/partitions/partition_host.h"
#include "simulator/units/job_ids.h"

namespace railyard {

// Implements PartitionHost for a network and the executor that has its connections.
class ExecutorPartitions final : public PartitionHost {
 public:
  // Both must outlive this. With `keep_paths` the executor keeps critical paths.
  ExecutorPartitions(FabricNetwork& network, LaneExecutor& executor, bool keep_paths)
      : network_(network), executor_(executor), keep_paths_(keep_paths) {}

  uint32_t LocalNumberOf(CommunicatorIndex communicator, RankIndex rank) const override;
  bool StandsStill(GpuIndex gpu) const override;
  bool AreAllOpen(CommunicatorIndex communicator,
                  const CollectiveSchedule& schedule) const override;
  bool MayMoveConnections() override;
  void Renew(Partition& partition) override;
  void Visit(const Partition& partition, StateArchive& archive) override;
  void VisitCounters(const Partition& partition, StateArchive& archive) override;
  bool IsAtRest(const Partition& partition, EpisodePlace place) override;
  std::vector<EpisodePlace> PeersOf(const Partition& partition, EpisodePlace place) const override;
  bool WaitsFor(CommunicatorIndex communicator, GpuIndex gpu, GpuIndex other) override;
  uint64_t IdentityOf(const Partition& partition) const override;
  bool BeginIndependent(const Partition& partition) override;
  void EndIndependent(const Partition& partition) override;
  bool BeginAhead(const Partition& partition) override;
  void EndAhead(const Partition& partition) override;

 private:
  FabricNetwork& network_;
  LaneExecutor& executor_;
  bool keep_paths_;
  // These are used while a partition is simulated ahead.
  std::vector<uint8_t> timers_;
  std::vector<PathTracer::Kept> paths_;
};

}  // namespace railyard
