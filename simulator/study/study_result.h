// SPDX-License-Identifier: GPL-2.0-only
// Reads the results of a study's runs back from their directories.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/study/study.h"

namespace railyard {

struct StudyRunResult {
  int exit = -1;                               // status of `railyard run`; -1: it has not ended
  std::string status;                          // "COMPLETED", …; empty if it left no result
  std::vector<std::optional<double>> figures;  // as Study::figures; nullopt: null, or none there
};

// Returns true if a run's directory has the result of a run that ended, in whatever way.
bool HasResult(const std::string& directory);

// The figures of the result in `directory`. `exit` is the status with which the run ended; without
// it, it is the one that belongs to the result's status.
StudyRunResult ReadRunResult(const Study& study, const std::string& directory,
                             std::optional<int> exit = std::nullopt);

}  // namespace railyard
