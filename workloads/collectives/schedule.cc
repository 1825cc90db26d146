// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/schedule.h"

#include <algorithm>

#include "simulator/units/divide_up.h"

namespace railyard {

// The slice loop of NCCL's Primitives::genericOp (src/device/prims_simple.h): equal slices, at
// least a thirty-second of a full one, the rest in the last; slices past the end are posted empty.
Slice SliceOf(const MessageRule& rule, uint64_t chunk_bytes, uint32_t index) {
  if (rule.slices_per_chunk == 1) return {0, chunk_bytes};
  const uint64_t even_bytes = DivideUp(chunk_bytes, rule.slices_per_chunk);
  const uint64_t grain_bytes = rule.slice_grain_bytes;
  const uint64_t slice_bytes =
      std::max(DivideUp(even_bytes, grain_bytes) * grain_bytes, rule.slice_bytes_min);
  const uint64_t begin = std::min(chunk_bytes, index * slice_bytes);
  return {begin, std::min(slice_bytes, chunk_bytes - begin)};
}

OwnedPiece OwnedPieceOf(const Step& step, const std::vector<LanePeer>& listed, RankIndex rank) {
  const auto place_of = [&](uint32_t wanted) {
    return std::ranges::find(listed, wanted, &LanePeer::rank) - listed.begin();
  };
  const std::ptrdiff_t behind = place_of(rank) - place_of(static_cast<uint32_t>(step.owner));
  if (behind < 0 || behind >= static_cast<std::ptrdiff_t>(step.pieces)) return {};
  return {step.offset_bytes + static_cast<uint64_t>(behind) * step.stride_bytes,
          step.bytes / step.pieces};
}

}  // namespace railyard
