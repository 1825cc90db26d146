// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/report/figures.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulator/diagnostics/csv_line.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/utf8.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/child_process.h"
#include "simulator/processes/temporary_directory.h"

namespace railyard {
namespace {

namespace fs = std::filesystem;

void AppendCell(const StoredValue& value, std::string& line) {
  if (const auto* integer = std::get_if<int64_t>(&value)) line += fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&value)) line += fmt::format("{}", *real);
  const auto* text = std::get_if<std::string>(&value);
  if (text != nullptr) AppendCsvField(ToValidUtf8(*text), line);
}

// Removes the directories that it has made on the way to one, unless they are kept or hold files.
class MadeDirectories {
 public:
  explicit MadeDirectories(const fs::path& directory) {
    std::error_code error;
    for (fs::path made = fs::absolute(directory); !fs::exists(made, error);
         made = made.parent_path()) {
      made_.push_back(made);
    }
    fs::create_directories(directory, error);
    if (error) {
      RemoveAll();
      throw EnvironmentError(
          fmt::format("cannot create {}: {}", directory.string(), error.message()));
    }
  }
  ~MadeDirectories() { RemoveAll(); }
  MadeDirectories(const MadeDirectories&) = delete;
  MadeDirectories& operator=(const MadeDirectories&) = delete;

  void Keep() { made_.clear(); }

 private:
  void RemoveAll() {
    std::error_code ignored;
    for (const fs::path& made : made_) fs::remove(made, ignored);
  }

  std::vector<fs::path> made_;  // the innermost first
};

// gnuplot ends with status 0 after a write that failed.
bool EndsWith(const fs::path& path, std::string_view end) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto bytes = static_cast<std::streamoff>(file.tellg());
  const auto tail_bytes =
      std::min<std::streamoff>(bytes, static_cast<std::streamoff>(end.size()) + 2);
  if (tail_bytes <= 0) return false;
  std::string tail(static_cast<size_t>(tail_bytes), '\0');
  file.seekg(bytes - tail_bytes);
  file.read(tail.data(), tail_bytes);
  return tail.find(end) != std::string::npos;
}

// Draws a chart from its tables, all in `directory`; `shown` is the directory in messages.
void Draw(const Chart& chart, const fs::path& directory, const std::string& shown) {
  for (const ChartTable& table : chart.tables) {
    WriteOutput((directory / (table.name + ".csv")).string(), CsvOf(table));
  }
  const std::string script = chart.id + ".gp";
  WriteOutput((directory / script).string(), GnuplotScript(chart));
  const ProgramEnd gnuplot = OutputOf({"gnuplot", script}, directory.string());
  if (gnuplot.status == kNotStarted) {
    throw EnvironmentError(
        fmt::format("gnuplot {} (it is in the Debian package gnuplot-nox)", gnuplot.OneLine()));
  }
  if (gnuplot.status != 0) {
    throw EnvironmentError(fmt::format("gnuplot ended with status {} at {}/{}: {}", gnuplot.status,
                                       shown, script, gnuplot.OneLine()));
  }
  for (const auto& [suffix, end] : {std::pair{".svg", "</svg>"}, {".pdf", "%%EOF"}}) {
    const std::string name = chart.id + suffix;
    if (EndsWith(directory / name, end)) continue;
    throw EnvironmentError(
        fmt::format("cannot write {}/{}: gnuplot has not finished it; is the "
                    "disk full?",
                    shown, name));
  }
}

}  // namespace

std::string CsvOf(const ChartTable& table) {
  std::string csv;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    csv += (i == 0 ? "" : ",") + table.columns[i];
  }
  csv += '\n';
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) csv += ',';
      AppendCell(row[i], csv);
    }
    csv += '\n';
  }
  return csv;
}

void WriteFigures(const ResultStore& store, const std::string& directory) {
  MadeDirectories made(directory);
  {
    const TemporaryDirectory unfinished(directory);
    for (const Chart& chart : ChartsOf(store)) Draw(chart, unfinished.path(), directory);
    for (const fs::directory_entry& file : fs::directory_iterator(unfinished.path())) {
      std::error_code error;
      fs::rename(file.path(), fs::path(directory) / file.path().filename(), error);
      if (error) {
        throw EnvironmentError(fmt::format("cannot create {}/{}: {}", directory,
                                           file.path().filename().string(), error.message()));
      }
    }
  }
  made.Keep();
}

}  // namespace railyard
