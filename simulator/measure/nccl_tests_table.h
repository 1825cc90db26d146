// SPDX-License-Identifier: GPL-2.0-only
// Formats simulated times as nccl-tests does: its table for people and its JSON for scripts
// (src/util.cu of nccl-tests 2.19).
#pragma once

#include <string>
#include <vector>

#include "simulator/measure/perf_point.h"

namespace railyard {

struct PerfRow {
  uint64_t bytes = 0;
  TimedRun out_of_place;
  TimedRun in_place;  // the same where !CopiesWithinRank(KindOf(collective))

  bool ran() const { return out_of_place.error.empty() && in_place.error.empty(); }
  const std::string& error() const {
    return out_of_place.error.empty() ? in_place.error : out_of_place.error;
  }
};

struct PerfReport {
  PerfCollective collective = PerfCollective::kAllReduce;
  std::string fabric;
  uint32_t ranks = 0;
  uint64_t bytes_min = 0;
  uint64_t bytes_max = 0;
  uint64_t factor = 2;
  std::vector<PerfRow> rows;
};

// These return the parts of the table for people, and the JSON.
std::string PerfHeader(const PerfReport& report);
std::string PerfLine(const PerfReport& report, const PerfRow& row);
std::string PerfFooter(const PerfReport& report);
std::string PerfJson(const PerfReport& report);

}  // namespace railyard
