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
  std::string status{};  // "COMPLETED", …; without a result the reason, if known
  std::vector<std::optional<double>> figures{};  // by Study::figures; nullopt if absent or null
  // The real time, and the largest resident memory of the process; nullopt without a result.
  std::optional<double> seconds{};
  std::optional<int64_t> peak_memory_bytes{};
};

// Returns true if a run's directory has the result of a run that ended and was not interrupted.
bool HasResult(const std::string& directory);

// These are the statuses of runs without a result that the study ended, or lost.
inline constexpr const char* kTimeLimit = "TIME_LIMIT";
inline constexpr const char* kLost = "LOST";
inline constexpr int kTimeLimitExit = 124;  // as timeout(1) exits

// Describes how a run ended.
struct RunEnd {
  int exit = 0;                  // status of `railyard run`
  const char* status = nullptr;  // why its files are not a result; null if they may be one
};

// Reads the figures of the result in `directory`. Without `end`, the exit status follows from the
// status of the result.
StudyRunResult ReadRunResult(const Study& study, const std::string& directory,
                             std::optional<RunEnd> end = std::nullopt);

}  // namespace railyard
