// SPDX-License-Identifier: GPL-2.0-only
// Runs a study's runs and gathers their figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/study/study.h"

namespace railyard {

struct StudyRunResult {
  int exit = -1;                               // of `railyard run`
  std::string status;                          // "COMPLETED", …; empty if it left no result
  std::vector<std::optional<double>> figures;  // as Study::figures; nullopt: null, or none there
};

// Each run's results go to DIRECTORY/runs/NUMBER, what it printed to DIRECTORY/runs/NUMBER.log.
// Stops starting runs when one ends otherwise than with a result; the first such is named by
// `failed`. Throws EnvironmentError where the environment fails.
struct StudyResult {
  std::vector<StudyRunResult> runs;  // as RunsOf()
  std::optional<size_t> failed;
};
StudyResult RunStudy(const Study& study, const std::string& directory, uint32_t jobs);

// DIRECTORY/points.csv: a row per run. DIRECTORY/statistics.csv: a row per point and figure, over
// the seeds.
void WriteStudy(const Study& study, const StudyResult& result, const std::string& directory);

}  // namespace railyard
