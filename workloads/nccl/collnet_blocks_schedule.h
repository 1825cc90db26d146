// SPDX-License-Identifier: GPL-2.0-only
// Describes NCCL's CollNetDirect AllGather and ReduceScatter as CollectiveSchedules
// (src/device/all_gather.h, reduce_scatter.h). The head of a slice handles the blocks of all ranks
// at its position in their servers (its rail). For an AllGather it sends its own block to the
// network, receives the rail's blocks from it and passes them on to the server's GPUs, from which
// it receives the blocks of the other rails. For a ReduceScatter GPUs send the heads the blocks of
// their rails; the network adds up the servers' parts of each block and delivers the sum to the
// block's rank only.
//
// NCCL cuts a rail into chunks across the borders of blocks; here a chunk consists of whole blocks
// or lies within one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "traces/trace/trace.h"
#include "workloads/collectives/head_table.h"
#include "workloads/collectives/shaped_schedule.h"

namespace railyard {

struct CollnetBlocksParameters {
  CollectiveKind kind = CollectiveKind::kAllGather;  // or ReduceScatter
  uint64_t block_bytes = 0;                          // of one rank
  uint64_t chunk_bytes = 0;                          // of one head
  uint32_t channel_count = 0;
  MessageRule message_rule;
};

class CollnetBlocksSchedule final : public ShapedSchedule {
 public:
  // Precondition: there are at least two servers.
  CollnetBlocksSchedule(std::shared_ptr<const HeadTable> table, CollnetBlocksParameters parameters);

  uint32_t BatchCount(RankIndex rank, uint32_t channel) const override;
  uint32_t LaneCount(RankIndex rank, uint32_t channel, uint32_t batch) const override;
  LanePeers PeersOf(const LaneId& lane) const override;
  uint64_t StepCount(const LaneId& lane) const override;
  Step StepAt(const LaneId& lane, uint64_t step) const override;

 private:
  // Names the role of a lane, in the order of lane numbers. The only GPU of a server has no lane
  // kOthers.
  enum class Part : uint8_t { kToNetwork, kFromNetwork, kOthers };

  bool Gathers() const { return parameters_.kind == CollectiveKind::kAllGather; }
  // Returns the number of chunks of each rail, and how many of them a channel has.
  uint64_t ChunkCount() const;
  uint64_t ChunkCount(uint32_t channel) const;
  // Returns a step with the position of a chunk of a head's rail; its action is not set.
  Step ChunkAt(uint32_t head, uint64_t chunk) const;

  std::shared_ptr<const HeadTable> table_;
  CollnetBlocksParameters parameters_;
  uint64_t blocks_of_chunk_ = 1;        // whole blocks
  uint64_t chunks_of_block_ = 1;        // if a block has several
  uint32_t ranks_between_servers_ = 0;  // from a rank to its counterpart in the next server
};

}  // namespace railyard
