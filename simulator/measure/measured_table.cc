// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/measured_table.h"

#include <array>
#include <string_view>
#include <utility>

#include "simulator/diagnostics/csv_table.h"
#include "simulator/units/number.h"
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

class TableReader {
 public:
  TableReader(const std::string& path, Diagnostics& diagnostics)
      : table_(path, "a table of measurements", kColumns, diagnostics) {}

  std::vector<MeasuredRow> Read() {
    table_.Read([this](const std::vector<CsvCell>& cells) { ReadRow(cells); });
    if (rows_.empty() && table_.finding_count() == 0) {
      table_.Error(1, "the table has no row (expected one measurement or more)");
    }
    return std::move(rows_);
  }

 private:
  void ReadRow(const std::vector<CsvCell>& cells) {
    const int findings_before = table_.finding_count();
    MeasuredRow row;
    row.line = table_.line();
    row.source_id = cells[kSource].text;
    row.collective = cells[kCollective].text;
    row.gpu = cells[kGpu].text;
    row.nics = cells[kNics].text;
    row.nccl_version = cells[kVersion].text;
    row.algorithm_hint = cells[kHint].text;
    row.notes = cells[kNotes].text;
    row.nodes = Count(cells[kNodes], kNodes);
    row.gpus_per_node = Count(cells[kGpusPerNode], kGpusPerNode);
    if (!ParseNumber(cells[kBytes].text, row.bytes)) {
      table_.Refuse(cells[kBytes], kBytes, "expected a whole number of bytes");
    }
    if (!ParseNumber(cells[kTime].text, row.time_us) || !(row.time_us >= kMeasuredUsMin) ||
        row.time_us > kMeasuredUsMax) {
      table_.Refuse(cells[kTime], kTime, "expected microseconds, 0.001 to 1e12");
    }
    if (table_.finding_count() == findings_before) rows_.push_back(std::move(row));
  }

  uint32_t Count(const CsvCell& cell, Column column) {
    const auto value = NumberOf<uint32_t>(cell.text);
    if (value && *value >= 1 && *value <= 1u << 20) return *value;
    table_.Refuse(cell, column, "expected a whole number, 1 or more");
    return 1;
  }

  CsvTable table_;
  std::vector<MeasuredRow> rows_;
};

}  // namespace

std::vector<MeasuredRow> ReadMeasuredTable(const std::string& path, Diagnostics& diagnostics) {
  return TableReader(path, diagnostics).Read();
}

}  // namespace railyard
