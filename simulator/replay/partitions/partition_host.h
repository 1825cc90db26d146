// SPDX-License-Identifier: GPL-2.0-only
// The network and its connections, as far as the replay of partitions has to do with them.
#pragma once

#include <cstdint>

#include "simulator/replay/partitions/partition.h"
#include "simulator/state/state_archive.h"

namespace railyard {

class PartitionHost {
 public:
  virtual ~PartitionHost() = default;

  // The communicator's number among those that its rank's GPU is in: it orders events there.
  virtual uint32_t LocalNumberOf(uint32_t communicator, uint32_t rank) const = 0;
  virtual bool StandsStill(uint32_t gpu) const = 0;
  // Connections may move to other NICs before long.
  virtual bool MayMoveConnections() = 0;

  // --- State -------------------------------------------------------------------------------------
  // Looks at which connections the partition has now.
  virtual void Renew(Partition& partition) = 0;
  // Walks the values that decide what comes in the partition, and the counters of it alone.
  virtual void Visit(const Partition& partition, StateArchive& archive) = 0;
  // Walks the counters of the network as a whole that the partition has a part in.
  virtual void VisitCounters(const Partition& partition, StateArchive& archive) = 0;
  // The partition's identity: partitions of one kind and shape with equal identities and states do
  // the same.
  virtual uint64_t IdentityOf(const Partition& partition) const = 0;

  // --- Replay ------------------------------------------------------------------------------------
  // Everything else at the partition's switch must do without its share of the buffer, or
  // FabricNetwork::NotApart is thrown, until EndApart(). False: it does not even now.
  virtual bool BeginApart(const Partition& partition) = 0;
  virtual void EndApart(const Partition& partition) = 0;
  // From now until EndAhead() is simulated ahead, and taken back. False: it cannot be.
  virtual bool BeginAhead(const Partition& partition) = 0;
  virtual void EndAhead(const Partition& partition) = 0;
};

}  // namespace railyard
