// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/measured_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "simulator/diagnostics/csv_line.h"
#include "traces/nccl_tests/nccl_tests_line.h"

namespace railyard {
namespace {

constexpr std::array<std::string_view, 13> kColumns = {
    "source_id", "collective", "nodes",   "gpus_per_node", "gpu",        "nic_gbps", "nccl_version",
    "algo_hint", "bytes",      "time_us", "algbw_GBps",    "busbw_GBps", "notes"};
enum Column : size_t {
  kSource,
  kCollective,
  kNodes,
  kGpusPerNode,
  kGpu,
  kNics,
  kVersion,
  kHint,
  kBytes,
  kTime,
  kNotes = 12
};
constexpr int kFindingsPerFileMax = 20;

template <typename Number>
std::optional<Number> ParseNumber(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

class TableReader {
 public:
  TableReader(const std::string& path, Diagnostics& diagnostics)
      : path_(path), diagnostics_(diagnostics) {}

  std::vector<MeasuredRow> Read(std::istream& stream) {
    std::string line;
    while (findings_ < kFindingsPerFileMax && std::getline(stream, line)) {
      ++line_;
      if (line_ == 1) {
        if (!ReadHeader(line)) return {};
      } else if (!line.empty() && line != "\r") {
        ReadRow(line);
      }
    }
    if (line_ == 0) Error(1, "the file is empty (expected a line of column names)");
    return std::move(rows_);
  }

 private:
  bool ReadHeader(const std::string& line) {
    const auto fields = SplitCsvLine(line);
    bool right = fields && fields->size() == kColumns.size();
    for (size_t i = 0; right && i < kColumns.size(); ++i) right = (*fields)[i].text == kColumns[i];
    if (!right) {
      Error(1, fmt::format("not the column names of a table of measurements (expected \"{}\")",
                           fmt::join(kColumns, ",")));
    }
    return right;
  }

  void ReadRow(const std::string& line) {
    const auto fields = SplitCsvLine(line);
    if (!fields) {
      Error(1, "a quote is not closed");
      return;
    }
    if (fields->size() != kColumns.size()) {
      Error(1, fmt::format("{} fields (expected {})", fields->size(), kColumns.size()));
      return;
    }
    const int errors_before = findings_;
    MeasuredRow row;
    row.line = line_;
    row.source_id = (*fields)[kSource].text;
    row.collective = (*fields)[kCollective].text;
    row.gpu = (*fields)[kGpu].text;
    row.nics = (*fields)[kNics].text;
    row.nccl_version = (*fields)[kVersion].text;
    row.algorithm_hint = (*fields)[kHint].text;
    row.notes = (*fields)[kNotes].text;
    row.nodes = Count((*fields)[kNodes], kNodes);
    row.gpus_per_node = Count((*fields)[kGpusPerNode], kGpusPerNode);
    const auto bytes = ParseNumber<uint64_t>((*fields)[kBytes].text);
    if (!bytes) {
      Wrong((*fields)[kBytes], kBytes, "expected a whole number of bytes");
    } else {
      row.bytes = *bytes;
    }
    const auto time_us = ParseNumber<double>((*fields)[kTime].text);
    if (!time_us || !(*time_us >= kMeasuredUsMin) || *time_us > kMeasuredUsMax) {
      Wrong((*fields)[kTime], kTime, "expected microseconds, 0.001 to 1e12");
    } else {
      row.time_us = *time_us;
    }
    if (findings_ == errors_before) rows_.push_back(std::move(row));
  }

  uint32_t Count(const CsvCell& field, Column column) {
    const auto value = ParseNumber<uint32_t>(field.text);
    if (value && *value >= 1 && *value <= 1u << 20) return *value;
    Wrong(field, column, "expected a whole number, 1 or more");
    return 1;
  }

  void Wrong(const CsvCell& field, Column column, const std::string& expected) {
    Error(field.column, fmt::format("{}: {} ({})", kColumns[column], Quote(field.text), expected));
  }
  void Error(int column, const std::string& what) {
    ++findings_;
    diagnostics_.Error({path_, line_ == 0 ? 1 : line_, column}, "", what);
  }

  const std::string& path_;
  Diagnostics& diagnostics_;
  std::vector<MeasuredRow> rows_;
  int line_ = 0;
  int findings_ = 0;
};

}  // namespace

std::vector<MeasuredRow> ReadMeasuredTable(const std::string& path, Diagnostics& diagnostics) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    diagnostics.Error({path}, "", "not a file that can be read (expected a table of measurements)");
    return {};
  }
  if (std::filesystem::file_size(path, error) > kMeasuredFileBytesMax) {
    diagnostics.Error({path}, "",
                      "larger than a table of measurements can be (expected at most 256 MiB)");
    return {};
  }
  std::ifstream stream(path, std::ios::binary);
  return TableReader(path, diagnostics).Read(stream);
}

}  // namespace railyard
