// SPDX-License-Identifier: GPL-2.0-only
// What kind of traffic a run had, as plain numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace railyard {

// A part of the calls' sizes: what one call of a collective, or one Send, is of.
struct MessageSizeResult {
  uint64_t bytes = 0;  // nccl-tests' size; of a Send what it sends
  uint64_t count = 0;  // collectives, or Sends
};

// An iteration of a job but the first (workloads/job_iterations.h).
struct DriftResult {
  uint32_t job = 0;        // into RunResult::jobs
  uint64_t iteration = 0;  // from 1
  double drift = 0;        // of its pair matrix from the iteration before, 0 to 1
};

struct TrafficResult {
  std::vector<MessageSizeResult> message_sizes;  // ascending
  std::vector<DriftResult> drifts;
};

}  // namespace railyard
