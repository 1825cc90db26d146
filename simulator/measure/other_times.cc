// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/other_times.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/diagnostics/csv_line.h"
#include "simulator/diagnostics/names.h"
#include "traces/nccl_tests/nccl_tests_line.h"

namespace railyard {
namespace {

constexpr std::array<std::string_view, 7> kTimeColumns = {
    "simulator", "source_id", "collective", "nodes", "gpus_per_node", "bytes", "time_us"};
enum TimeColumn : size_t {
  kSimulatorOf,
  kSourceOf,
  kCollectiveOf,
  kNodesOf,
  kGpusOf,
  kBytesOf,
  kTimeOf
};
constexpr int kTimeFindingsMax = 20;

// Source, collective, nodes, GPUs per node, bytes.
using RowKey = std::tuple<std::string, std::string, uint64_t, uint64_t, uint64_t>;

class TimesReader {
 public:
  TimesReader(const std::string& path, const std::vector<MeasuredRow>& measured,
              Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics) {
    for (size_t i = 0; i < measured.size(); ++i) {
      const MeasuredRow& row = measured[i];
      rows_[{row.source_id, row.collective, row.nodes, row.gpus_per_node, row.bytes}].push_back(i);
    }
  }

  std::vector<OtherTime> Read(std::istream& stream) {
    std::string line;
    while (findings_ < kTimeFindingsMax && std::getline(stream, line)) {
      ++line_;
      if (line_ == 1) {
        if (!ReadHeader(line)) return {};
      } else if (!line.empty() && line != "\r") {
        ReadLine(line);
      }
    }
    if (line_ == 0) Error(1, "the file is empty (expected a line of column names)");
    return std::move(times_);
  }

 private:
  bool ReadHeader(const std::string& line) {
    const auto cells = SplitCsvLine(line);
    bool is_right = cells && cells->size() == kTimeColumns.size();
    for (size_t i = 0; is_right && i < kTimeColumns.size(); ++i) {
      is_right = (*cells)[i].text == kTimeColumns[i];
    }
    if (!is_right) {
      Error(1, fmt::format("not the column names of a table of times (expected \"{}\")",
                           fmt::join(kTimeColumns, ",")));
    }
    return is_right;
  }

  void ReadLine(const std::string& line) {
    const auto cells = SplitCsvLine(line);
    if (!cells) {
      Error(1, "a quote is not closed");
      return;
    }
    if (cells->size() != kTimeColumns.size()) {
      Error(1, fmt::format("{} fields (expected {})", cells->size(), kTimeColumns.size()));
      return;
    }
    const int errors_before = findings_;
    const CsvCell& simulator = (*cells)[kSimulatorOf];
    if (simulator.text.empty() || simulator.text == "railyard") {
      Wrong(simulator, kSimulatorOf, "expected the name of another simulator");
    }
    const RowKey key = {(*cells)[kSourceOf].text, (*cells)[kCollectiveOf].text,
                        Whole((*cells)[kNodesOf], kNodesOf), Whole((*cells)[kGpusOf], kGpusOf),
                        Whole((*cells)[kBytesOf], kBytesOf)};
    const double time_us = TimeUs((*cells)[kTimeOf]);
    if (findings_ > errors_before) return;
    const auto rows = rows_.find(key);
    if (rows == rows_.end()) {
      Error(
          (*cells)[kSourceOf].column,
          fmt::format("source_id: nothing was measured of {} {}, {} x {} GPUs, {} bytes (expected "
                      "a row of MEASURED)",
                      Quote(std::get<0>(key)), std::get<1>(key), std::get<2>(key), std::get<3>(key),
                      std::get<4>(key)));
      return;
    }
    if (!seen_.emplace(simulator.text, key).second) {
      Error(simulator.column,
            fmt::format("simulator: {} has a time for this row already (expected one)",
                        Quote(simulator.text)));
      return;
    }
    for (const size_t row : rows->second) times_.push_back({simulator.text, row, time_us});
  }

  uint64_t Whole(const CsvCell& cell, TimeColumn column) {
    uint64_t value = 0;
    const char* const end = cell.text.data() + cell.text.size();
    const auto [stop, error] = std::from_chars(cell.text.data(), end, value);
    if (error != std::errc() || stop != end) Wrong(cell, column, "expected a whole number");
    return value;
  }
  double TimeUs(const CsvCell& cell) {
    double value = 0;
    const char* const end = cell.text.data() + cell.text.size();
    const auto [stop, error] = std::from_chars(cell.text.data(), end, value);
    if (error != std::errc() || stop != end || !(value >= kMeasuredUsMin) ||
        value > kMeasuredUsMax) {
      Wrong(cell, kTimeOf, "expected microseconds, 0.001 to 1e12");
    }
    return value;
  }

  void Wrong(const CsvCell& cell, TimeColumn column, const std::string& expected) {
    Error(cell.column,
          fmt::format("{}: {} ({})", kTimeColumns[column], Quote(cell.text), expected));
  }
  void Error(int column, const std::string& what) {
    ++findings_;
    diagnostics_.Error({path_, line_ == 0 ? 1 : line_, column}, "", what);
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  std::map<RowKey, std::vector<size_t>> rows_;  // several: in place and out of place
  std::set<std::pair<std::string, RowKey>> seen_;
  std::vector<OtherTime> times_;
  int line_ = 0;
  int findings_ = 0;
};

}  // namespace

std::vector<OtherTime> ReadOtherTimes(const std::string& path,
                                      const std::vector<MeasuredRow>& measured,
                                      Diagnostics& diagnostics) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    diagnostics.Error({path}, "", "not a file that can be read (expected a table of times)");
    return {};
  }
  if (std::filesystem::file_size(path, error) > kMeasuredFileBytesMax) {
    diagnostics.Error({path}, "", "larger than a table of times can be (expected at most 256 MiB)");
    return {};
  }
  std::ifstream stream(path, std::ios::binary);
  return TimesReader(path, measured, diagnostics).Read(stream);
}

}  // namespace railyard
