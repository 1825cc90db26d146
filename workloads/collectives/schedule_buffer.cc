// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/schedule_buffer.h"

namespace railyard {

bool IsPointToPoint(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kGather ||
         kind == CollectiveKind::kScatter || kind == CollectiveKind::kSend;
}

uint64_t BufferBytes(const ScheduleSubject& subject, uint32_t rank_count) {
  const bool blocks =
      subject.kind == CollectiveKind::kAllGather || subject.kind == CollectiveKind::kReduceScatter;
  return blocks ? rank_count * subject.block_bytes : subject.block_bytes;
}

}  // namespace railyard
