// SPDX-License-Identifier: GPL-2.0-only
// Describes the buffer on which a collective's schedule works (workloads/collectives/schedule.h),
// and the position of a step's chunk in it.
#pragma once

#include <cstdint>

#include "traces/trace/trace.h"
#include "workloads/collectives/schedule.h"
#include "workloads/collectives/schedule_check.h"

namespace railyard {

// Returns true if a step's offset is an offset within its message.
bool IsPointToPoint(const ScheduleSubject& subject);

uint64_t BufferBytes(const ScheduleSubject& subject, uint32_t rank_count);

// Calls visit(offset, bytes) for each piece of a step's chunk. Precondition: the step has pieces.
template <typename Visit>
void ForEachPiece(const Step& step, uint64_t buffer_bytes, const Visit& visit) {
  const uint64_t bytes = step.bytes / step.pieces;
  uint64_t offset = step.offset_bytes;
  for (uint32_t piece = 0; piece < step.pieces; ++piece) {
    visit(offset, bytes);
    offset += step.stride_bytes;
    if (step.pieces > 1 && bytes > 0) offset %= buffer_bytes;
  }
}

}  // namespace railyard
