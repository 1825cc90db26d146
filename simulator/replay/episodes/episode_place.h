// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "simulator/units/identifier.h"

namespace railyard {

// Numbers the partitions of a PartitionMap (partitions/partition_map.h). Those of its NVLinks come
// first, in the order and with the numbers that NvlinkPartitions gives them.
using PartitionIndex = Identifier<struct PartitionTag>;

// Says whose operation an episode has: it is the rank of the job or, in an episode of a partition,
// the place of the rank's GPU in Partition::gpus, because episodes serve partitions of other GPUs.
using EpisodePlace = Identifier<struct EpisodePlaceTag>;

}  // namespace railyard
