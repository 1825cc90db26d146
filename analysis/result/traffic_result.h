// SPDX-License-Identifier: GPL-2.0-only
// Characterizes the traffic of a run as plain numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace railyard {

// Counts the calls of one message size: bytes of one call of a collective, or of one Send.
struct MessageSizeResult {
  uint64_t bytes = 0;  // nccl-tests' size; for a Send, the bytes sent
  uint64_t count = 0;  // collectives, or Sends
};

// Describes an iteration of a job (workloads/job/job_iterations.h) that ended. docs/results.md
// defines the figures.
struct IterationResult {
  uint32_t job = 0;        // into RunResult::jobs
  uint64_t iteration = 0;  // from 1, the first
  // The distance of its traffic matrix from that of the previous iteration, 0 to 1; absent in the
  // first.
  std::optional<double> drift{};
  // The traffic of AllToAlls only, by layer; absent if there are none.
  std::optional<double> all_to_all_drift{};
  std::optional<double> all_to_all_imbalance{};  // busiest rank over mean, 1 or more
};

// Counts the bytes from one GPU to another within an iteration, in collectives of one kind and
// layer.
struct IterationPairResult {
  static constexpr uint32_t kNoLayer = UINT32_MAX;

  uint32_t job = 0;
  uint64_t iteration = 0;
  std::string kind;           // as in CollectiveResult
  uint32_t layer = kNoLayer;  // of the plan's model, from 0; AllToAllvs of experts have one
  uint32_t source_gpu = 0;
  uint32_t destination_gpu = 0;
  uint64_t payload_bytes = 0;
};

struct TrafficResult {
  std::vector<MessageSizeResult> message_sizes;  // ascending
  std::vector<IterationResult> iterations;
  std::vector<IterationPairResult> iteration_pairs;  // incomplete if a note says so
};

}  // namespace railyard
