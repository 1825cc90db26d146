// SPDX-License-Identifier: GPL-2.0-only
// Numbers the chunks that the buffers of MSCCL's and MSCCL++'s programs hold as an
// ExplicitAlgorithm does.
#pragma once

#include <cstdint>

#include "simulator/units/rank_index.h"
#include "traces/trace/trace.h"

namespace railyard {

class BufferChunks {
 public:
  // `chunk_count`: of the vector, or of each block.
  BufferChunks(CollectiveKind kind, uint32_t gpu_count, uint32_t chunk_count)
      : kind_(kind), gpu_count_(gpu_count), chunk_count_(chunk_count) {}

  // Returns the number of chunks of a GPU's own contribution, or of its result.
  uint32_t InputCount() const {
    const bool has_all =
        kind_ == CollectiveKind::kReduceScatter || kind_ == CollectiveKind::kAllToAll;
    return has_all ? gpu_count_ * chunk_count_ : chunk_count_;
  }
  uint32_t OutputCount() const {
    const bool has_all = kind_ == CollectiveKind::kAllGather || kind_ == CollectiveKind::kAllToAll;
    return has_all ? gpu_count_ * chunk_count_ : chunk_count_;
  }
  // Returns the chunk at a place of a GPU's contribution, or of its result.
  uint32_t OfInput(RankIndex gpu, uint32_t index) const {
    switch (kind_) {
      case CollectiveKind::kAllGather:
        return gpu * chunk_count_ + index;
      case CollectiveKind::kAllToAll:
        return (index / chunk_count_ * gpu_count_ + gpu) * chunk_count_ + index % chunk_count_;
      default:
        return index;
    }
  }
  uint32_t OfOutput(RankIndex gpu, uint32_t index) const {
    switch (kind_) {
      case CollectiveKind::kReduceScatter:
        return gpu * chunk_count_ + index;
      case CollectiveKind::kAllToAll:
        return gpu * gpu_count_ * chunk_count_ + index;
      default:
        return index;
    }
  }

 private:
  CollectiveKind kind_;
  uint32_t gpu_count_;
  uint32_t chunk_count_;
};

}  // namespace railyard
