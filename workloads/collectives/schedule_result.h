// SPDX-License-Identifier: GPL-2.0-only
// Checks the data that ranks store in a collective against its expected result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/collectives/contributions.h"
#include "workloads/collectives/schedule_check.h"

namespace railyard {

class ScheduleResult {
 public:
  // `subject` must outlive this.
  ScheduleResult(const ScheduleSubject& subject, uint32_t rank_count);

  // Stores bytes of the rank's result. In a point-to-point schedule, bytes received from another
  // rank are that rank's part of the result.
  void Store(RankIndex rank, int32_t received_from, uint64_t begin, uint64_t bytes);
  // Checks that the stored value is the final value of its place. Returns an empty string if it is,
  // else the error.
  std::string CheckValue(uint64_t offset, uint64_t bytes, const Contributors& contributors) const;
  // Checks, after all stores, that they are the whole result of the rank, each byte once. Returns
  // an empty string if so, else the error.
  std::string Check(RankIndex rank);

 private:
  // Describes a part of a result that a step stored; its peer is 0 unless it is point-to-point.
  struct StoredRange {
    RankIndex peer{};
    uint64_t begin = 0;
    uint64_t end = 0;
  };

  bool ReceivesFrom(RankIndex rank, RankIndex peer) const;
  // Checks the ranges of `peer` from `next` on and advances `next` past them.
  std::string CheckCoverage(RankIndex rank, RankIndex peer, uint64_t begin, uint64_t end,
                            size_t& next) const;

  const ScheduleSubject& subject_;
  uint32_t rank_count_;
  bool is_point_to_point_;
  Contributors all_;
  std::vector<std::vector<StoredRange>> stored_;  // by rank
};

}  // namespace railyard
