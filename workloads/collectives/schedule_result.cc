// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/collectives/schedule_result.h"

#include <algorithm>

#include <fmt/format.h>

#include "workloads/collectives/schedule_buffer.h"

namespace railyard {

ScheduleResult::ScheduleResult(const ScheduleSubject& subject, uint32_t rank_count)
    : subject_(subject),
      rank_count_(rank_count),
      is_point_to_point_(IsPointToPoint(subject)),
      all_(rank_count),
      stored_(rank_count) {
  for (RankIndex rank{0}; rank < rank_count; ++rank) all_.Add(rank);
}

void ScheduleResult::Store(RankIndex rank, int32_t received_from, uint64_t begin, uint64_t bytes) {
  RankIndex peer{0};
  if (is_point_to_point_) peer = received_from < 0 ? rank : RankIndex{received_from};
  const uint64_t end = begin + bytes;
  auto& ranges = stored_[rank];
  // Rings walk downwards through the vector: most ranges continue the last one.
  if (!ranges.empty() && ranges.back().peer == peer) {
    if (ranges.back().begin == end) {
      ranges.back().begin = begin;
      return;
    }
    if (ranges.back().end == begin) {
      ranges.back().end = end;
      return;
    }
  }
  ranges.push_back({peer, begin, end});
}

std::string ScheduleResult::CheckValue(uint64_t offset, uint64_t bytes,
                                       const Contributors& contributors) const {
  switch (subject_.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
    case CollectiveKind::kReduceScatter:
      if (contributors == all_) return {};
      for (RankIndex rank{0}; rank < rank_count_; ++rank) {
        if (contributors.Has(rank)) continue;
        return fmt::format("stores {} B at offset {} without the contribution of rank {}", bytes,
                           offset, rank);
      }
      return {};
    case CollectiveKind::kAllGather: {
      const uint64_t block = offset / subject_.block_bytes;
      if (offset + bytes > (block + 1) * subject_.block_bytes) {
        return "stores a chunk that lies in two blocks";
      }
      if (contributors != Contributors(rank_count_, RankIndex{block})) {
        return fmt::format("stores at offset {} what is not of rank {}", offset, block);
      }
      return {};
    }
    case CollectiveKind::kAllToAll: {
      if (is_point_to_point_) return {};  // a message comes from its sender only
      const RankIndex sender{offset / subject_.block_bytes % rank_count_};
      if (contributors != Contributors(rank_count_, sender)) {
        return fmt::format("stores at offset {} what is not of rank {}", offset, sender);
      }
      return {};
    }
    case CollectiveKind::kBroadcast:
      if (contributors != Contributors(rank_count_, subject_.root)) {
        return fmt::format("stores what is not of the root {}", subject_.root);
      }
      return {};
    default:
      return {};  // a message comes from its sender only
  }
}

std::string ScheduleResult::Check(RankIndex rank) {
  const uint64_t block = subject_.block_bytes;
  auto& ranges = stored_[rank];
  if (subject_.is_whole && subject_.in_place) {
    const uint64_t own = (uint64_t{rank} * rank_count_ + rank) * block;  // it is there already
    ranges.push_back({.peer = RankIndex{0}, .begin = own, .end = own + block});
  }
  std::sort(ranges.begin(), ranges.end(), [](const StoredRange& a, const StoredRange& b) {
    return a.peer != b.peer ? a.peer < b.peer : a.begin < b.begin;
  });
  if (subject_.kind == CollectiveKind::kSend || rank_count_ == 1) return {};
  size_t next = 0;
  std::string error;
  if (!is_point_to_point_) {
    uint64_t begin = 0;
    uint64_t end = BufferBytes(subject_, rank_count_);
    if (subject_.kind == CollectiveKind::kReduceScatter) {
      begin = rank * block;
      end = begin + block;
    } else if (subject_.kind == CollectiveKind::kAllToAll) {
      begin = uint64_t{rank} * rank_count_ * block;
      end = begin + rank_count_ * block;
    } else if (subject_.kind == CollectiveKind::kReduce && rank != subject_.root) {
      end = 0;
    }
    error = CheckCoverage(rank, RankIndex{0}, begin, end, next);
  } else {
    for (RankIndex peer{0}; error.empty() && peer < rank_count_; ++peer) {
      error = CheckCoverage(rank, peer, 0, ReceivesFrom(rank, peer) ? block : 0, next);
    }
  }
  if (error.empty() && next < ranges.size()) {
    error = fmt::format("rank {} stores bytes {} to {} that are not in its result", rank,
                        ranges[next].begin, ranges[next].end);
  }
  return error;
}

bool ScheduleResult::ReceivesFrom(RankIndex rank, RankIndex peer) const {
  if (rank == peer && subject_.in_place) return false;
  if (subject_.kind == CollectiveKind::kGather) return rank == subject_.root;
  if (subject_.kind == CollectiveKind::kScatter) return peer == subject_.root;
  return true;
}

std::string ScheduleResult::CheckCoverage(RankIndex rank, RankIndex peer, uint64_t begin,
                                          uint64_t end, size_t& next) const {
  const auto& ranges = stored_[rank];
  const std::string source = is_point_to_point_ ? fmt::format(" of rank {}", peer) : "";
  for (; next < ranges.size() && ranges[next].peer == peer; ++next) {
    if (ranges[next].end > end || ranges[next].begin < begin) {
      return ranges[next].begin < begin && next > 0 && ranges[next - 1].peer == peer
                 ? fmt::format("rank {} stores bytes{} from {} on twice", rank, source,
                               ranges[next].begin)
                 : fmt::format("rank {} stores bytes{} {} to {} that are not in its result", rank,
                               source, ranges[next].begin, ranges[next].end);
    }
    if (ranges[next].begin > begin) break;
    begin = ranges[next].end;
  }
  if (begin < end) {
    return fmt::format("rank {} never stores the bytes{} from {} on", rank, source, begin);
  }
  return {};
}

}  // namespace railyard
