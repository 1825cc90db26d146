// SPDX-License-Identifier: GPL-2.0-only
// The result directory: summary.json, collectives.csv, pairs.csv, links.csv,
// traffic.csv and results.sqlite.
// It appears complete or not at all, at whatever instant the program is killed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/result/run_result.h"

namespace railyard {

// A further file of a result, written as it is.
struct ExtraFile {
  std::string name;  // one of those result_files.cc knows, e.g. "import_report.txt"
  std::string content;
};

// Whether a result may be written to `directory`: it is absent, empty, or holds an earlier result
// of Railyard and nothing else, which WriteResults will replace. Returns nullopt if so, else
// "refusing to …", a mistake of the user's. Leaves nothing behind. EnvironmentError where the
// directory cannot be created, which is tried, or read.
std::optional<std::string> PrepareResultDirectory(const std::string& directory);

// Writes the result, creating parent directories. EnvironmentError with path and reason if it
// cannot be written completely, or if the directory has meanwhile become one to refuse; nothing is
// left of the attempt then, and an earlier result stays.
void WriteResults(const std::string& directory, const RunResult& result,
                  const std::vector<ExtraFile>& extra_files = {});

}  // namespace railyard
