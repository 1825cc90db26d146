// SPDX-License-Identifier: GPL-2.0-only
// The result directory: summary.json, collectives.csv, pairs.csv, links.csv,
// traffic.csv and results.sqlite.
// It appears complete or not at all, at whatever instant the program is killed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/result/run_result.h"
#include "simulator/files/sync.h"

namespace railyard {

// An additional file of a result, written verbatim.
struct ExtraFile {
  std::string name;  // "….pcapng", or one of those result_files.cc knows, e.g. "import_report.txt"
  std::string content{};
  // Makes the content instead, from the files of the result, which lie in `directory` by then.
  std::function<std::string(const std::string& directory)> make{};
  std::string copied_from{};  // a file with the content instead; empty: none
};

// Checks that a result may be written to `directory`: it is absent, empty, or holds only an earlier
// result of Railyard, which WriteResults will replace. Returns nullopt if so, else "refusing to …",
// which is the user's mistake. Nothing is left behind. Throws EnvironmentError if the directory
// cannot be read or, as a trial shows, created.
std::optional<std::string> PrepareResultDirectory(const std::string& directory);

// Writes the result, creating parent directories. Throws EnvironmentError with path and reason if
// it cannot be written completely, or if the directory has meanwhile become one to refuse; then
// nothing of the attempt remains and an earlier result is kept. With Sync::kLater a power cut can
// leave it incomplete until the caller has forced it to disk.
void WriteResults(const std::string& directory, const RunResult& result,
                  const std::vector<ExtraFile>& extra_files = {}, Sync sync = Sync::kAtOnce);

// Removes what runs that were killed have left beside `directory`: hidden directories of this user
// that no process holds. Returns why some could not be removed.
std::vector<std::string> RemoveLeftovers(const std::string& directory);

// Removes a result that WriteResults() would replace. Does nothing where there is none, or another
// directory. Throws EnvironmentError if it cannot be removed.
void RemoveResults(const std::string& directory);

}  // namespace railyard
