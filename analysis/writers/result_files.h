// SPDX-License-Identifier: GPL-2.0-only
// Writes the result directory: summary.json, collectives.csv, pairs.csv, links.csv, traffic.csv and
// results.sqlite. It appears complete or not at all, whenever the program is killed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/result/run_result.h"
#include "simulator/files/sync.h"

namespace railyard {

// Describes an additional file of a result, which is written verbatim.
struct ExtraFile {
  std::string name;  // "….pcapng", or a name in result_files.cc, e.g. "import_report.txt"
  std::string content{};
  // If set, makes the content from the files of the result, which are in `directory` by then.
  std::function<std::string(const std::string& directory)> make{};
  std::string copied_from{};  // if not empty, the file with the content
};

// Returns whether a file of this name in a result's directory is a part of the result.
bool IsResultFileName(std::string_view name);

// Checks that a result may be written to `directory`: it is absent or empty, or holds only an
// earlier result of Railyard, which WriteResults will replace. Returns nullopt if so, else the
// user's mistake: "refusing to …". Tries to create the directory, but leaves nothing behind. Throws
// EnvironmentError if the directory cannot be read or created.
std::optional<std::string> PrepareResultDirectory(const std::string& directory);

// Writes the result, creating parent directories. Throws EnvironmentError with path and reason if
// it cannot be written completely, or if PrepareResultDirectory() would by now refuse the
// directory; then nothing of the attempt remains and an earlier result is kept. With Sync::kLater,
// a power cut can leave the result incomplete until the caller has forced it to disk.
void WriteResults(const std::string& directory, const RunResult& result,
                  const std::vector<ExtraFile>& extra_files = {}, Sync sync = Sync::kAtOnce);

// Removes what runs that were killed have left beside `directory`: hidden directories of this user
// that no process holds. Returns why some could not be removed.
std::vector<std::string> RemoveLeftovers(const std::string& directory);

// Removes a result that WriteResults() would replace. Does nothing if there is no such result.
// Throws EnvironmentError if it cannot be removed.
void RemoveResults(const std::string& directory);

}  // namespace railyard
