// SPDX-License-Identifier: GPL-2.0-only
// Defines the interface of the network and its connections for the replay of partitions.
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/replay/partitions/partition.h"
#include "simulator/state/state_archive.h"
#include "simulator/units/job_ids.h"
#include "simulator/units/rank_index.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

class PartitionHost {
 public:
  virtual ~PartitionHost() = default;

  // Returns the communicator's number among those of its rank's GPU, which orders events there.
  virtual uint32_t LocalNumberOf(CommunicatorIndex communicator, RankIndex rank) const = 0;
  // Returns true if the GPU is halted.
  virtual bool StandsStill(GpuIndex gpu) const = 0;
  // Returns true if all connections that the collective uses on the communicator are open.
  virtual bool AreAllOpen(CommunicatorIndex communicator,
                          const CollectiveSchedule& schedule) const = 0;
  // Returns true if connections may soon move to other NICs.
  virtual bool MayMoveConnections() = 0;

  // --- State -------------------------------------------------------------------------------------
  // Updates the partition's list of connections.
  virtual void Renew(Partition& partition) = 0;
  // Visits the values that affect the partition's future, and the counters that belong to it only.
  virtual void Visit(const Partition& partition, StateArchive& archive) = 0;
  // Visits the counters of the whole network to which the partition contributes.
  virtual void VisitCounters(const Partition& partition, StateArchive& archive) = 0;
  // Returns true if nothing is under way at the NIC and on the connections of the partition's GPU
  // at that place. Precondition: a partition of NICs.
  virtual bool IsAtRest(const Partition& partition, EpisodePlace place) = 0;
  // Returns the places of the GPUs with which that GPU has connections in the partition of NICs.
  virtual std::vector<EpisodePlace> PeersOf(const Partition& partition,
                                            EpisodePlace place) const = 0;
  // Returns true if nothing is under way between two GPUs on the connections of a communicator, and
  // `gpu` sends nothing to `other` over them before the other does to it.
  virtual bool WaitsFor(CommunicatorIndex communicator, GpuIndex gpu, GpuIndex other) = 0;
  // Returns the partition's identity: partitions of one kind and shape with equal identities and
  // states have equal outcomes.
  virtual uint64_t IdentityOf(const Partition& partition) const = 0;

  // --- Replay ------------------------------------------------------------------------------------
  // Reserves the partition's share of the buffer at its switch until EndIndependent(). If the rest
  // of the network needs that share meanwhile, SharedBuffers::NotIndependent is thrown. Returns
  // false if the rest needs it already.
  virtual bool BeginIndependent(const Partition& partition) = 0;
  virtual void EndIndependent(const Partition& partition) = 0;
  // Begins a simulation ahead of time, which ends with EndAhead(); the caller then restores the
  // partition. Returns false if that is not possible.
  virtual bool BeginAhead(const Partition& partition) = 0;
  virtual void EndAhead(const Partition& partition) = 0;
};

}  // namespace railyard
