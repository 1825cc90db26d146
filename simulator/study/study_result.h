// SPDX-License-Identifier: GPL-2.0-only
// Reads the results of a study's runs back from their directories.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/study/study.h"

namespace railyard {

struct StudyRunResult {
  int exit = -1;  // status of `railyard run`; -1: it has not ended
  bool has_result = false;
  std::string status{};  // "COMPLETED", …; without a result empty, or why there is none
  std::vector<std::optional<double>> figures{};  // as Study::figures; nullopt: null, or none there
  // Real time, and the largest resident memory of its process; nullopt without a result.
  std::optional<double> seconds{};
  std::optional<int64_t> peak_memory_bytes{};
};

// Returns true if a run's directory has the result of a run that ended, in whatever way.
bool HasResult(const std::string& directory);

// Statuses of runs without a result that the study ended, or lost.
inline constexpr const char* kTimeLimit = "TIME_LIMIT";
inline constexpr const char* kLost = "LOST";
inline constexpr int kTimeLimitExit = 124;  // as timeout(1) says it

// How a run ended.
struct RunEnd {
  int exit = 0;                  // status of `railyard run`
  const char* status = nullptr;  // why whatever it left is no result; null: it is one
};

// Reads the figures of the result in `directory`. Without `end` the exit status is the one that
// belongs to the result's status.
StudyRunResult ReadRunResult(const Study& study, const std::string& directory,
                             std::optional<RunEnd> end = std::nullopt);

}  // namespace railyard
