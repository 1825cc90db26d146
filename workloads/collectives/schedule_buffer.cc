// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/schedule_buffer.h"

namespace railyard {

bool IsPointToPoint(const ScheduleSubject& subject) {
  switch (subject.kind) {
    case CollectiveKind::kAllToAll:
      return !subject.is_whole;
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kSend:
      return true;
    default:
      return false;
  }
}

uint64_t BufferBytes(const ScheduleSubject& subject, uint32_t rank_count) {
  switch (subject.kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      return rank_count * subject.block_bytes;
    case CollectiveKind::kAllToAll:
      return uint64_t{rank_count} * rank_count * subject.block_bytes;
    default:
      return subject.block_bytes;
  }
}

}  // namespace railyard
