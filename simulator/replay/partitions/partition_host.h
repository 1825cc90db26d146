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
  // What decides what comes in the partition, and what is counted there alone.
  virtual void Visit(const Partition& partition, StateArchive& archive) = 0;
  // What the network counts as a whole, and the partition has a part in.
  virtual void VisitCounters(const Partition& partition, StateArchive& archive) = 0;
  // What the partition is: partitions of one kind and shape with equal identities and states do
  // the same.
  virtual uint64_t IdentityOf(const Partition& partition) const = 0;

  // --- Replay ------------------------------------------------------------------------------------
  // What goes on at the partition's switch must do without its share of the buffer, or
  // FabricNetwork::NotApart is thrown, until EndApart(). False: it does not even now.
  virtual bool BeginApart(const Partition& partition) = 0;
  virtual void EndApart(const Partition& partition) = 0;
  // What follows is simulated ahead and taken back, until EndAhead(). False: it cannot be.
  virtual bool BeginAhead(const Partition& partition) = 0;
  virtual void EndAhead(const Partition& partition) = 0;
};

}  // namespace railyard
