// SPDX-License-Identifier: GPL-2.0-only
// Reads back the figures of a result directory that comparisons need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

struct StoredCollective {
  uint64_t index = 0;  // position in its run's list of collectives
  std::string kind;    // "AllReduce"
  uint32_t ranks = 0;
  uint64_t bytes = 0;
  std::optional<int64_t> duration_ps;  // absent if the run ended before the collective
};

struct StoredTier {
  std::string tier;  // "NVLINK"
  uint64_t payload_bytes = 0;
};

struct StoredResult {
  std::string directory;
  std::string scenario;
  std::string fabric;
  std::string status;  // "COMPLETED"
  std::string fingerprint;
  int64_t simulated_time_ps = 0;
  std::vector<StoredCollective> collectives;  // ascending by index
  std::vector<StoredTier> tiers;              // in the order of results.sqlite's table of links
};

// Reads `directory`/results.sqlite. Returns nullopt, with an error in `diagnostics`, for a
// directory that is not a complete result of Railyard.
std::optional<StoredResult> ReadStoredResult(const std::string& directory,
                                             Diagnostics& diagnostics);

}  // namespace railyard
