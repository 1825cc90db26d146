// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/other_times.h"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "simulator/diagnostics/csv_table.h"
#include "simulator/diagnostics/names.h"
#include "simulator/units/number.h"
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

// Source, collective, nodes, GPUs per node, bytes.
using RowKey = std::tuple<std::string, std::string, uint64_t, uint64_t, uint64_t>;

class TimesReader {
 public:
  TimesReader(const std::string& path, const std::vector<MeasuredRow>& measured,
              Diagnostics& diagnostics)
      : table_(path, "a table of times", kTimeColumns, diagnostics) {
    for (size_t i = 0; i < measured.size(); ++i) {
      const MeasuredRow& row = measured[i];
      rows_[{row.source_id, row.collective, row.nodes, row.gpus_per_node, row.bytes}].push_back(i);
    }
  }

  std::vector<OtherTime> Read() {
    table_.Read([this](const std::vector<CsvCell>& cells) { ReadRow(cells); });
    return std::move(times_);
  }

 private:
  void ReadRow(const std::vector<CsvCell>& cells) {
    const int findings_before = table_.finding_count();
    const CsvCell& simulator = cells[kSimulatorOf];
    if (simulator.text.empty() || simulator.text == "railyard") {
      table_.Refuse(simulator, kSimulatorOf, "expected the name of another simulator");
    }
    const RowKey key = {cells[kSourceOf].text, cells[kCollectiveOf].text,
                        Whole(cells[kNodesOf], kNodesOf), Whole(cells[kGpusOf], kGpusOf),
                        Whole(cells[kBytesOf], kBytesOf)};
    const double time_us = TimeUs(cells[kTimeOf]);
    if (table_.finding_count() > findings_before) return;
    const auto rows = rows_.find(key);
    if (rows == rows_.end()) {
      table_.Error(
          cells[kSourceOf].column,
          fmt::format("source_id: nothing was measured of {} {}, {} x {} GPUs, {} bytes (expected "
                      "a row of MEASURED)",
                      Quote(std::get<0>(key)), std::get<1>(key), std::get<2>(key), std::get<3>(key),
                      std::get<4>(key)));
      return;
    }
    if (!seen_.emplace(simulator.text, key).second) {
      table_.Error(simulator.column,
                   fmt::format("simulator: {} has a time for this row already (expected one)",
                               Quote(simulator.text)));
      return;
    }
    for (const size_t row : rows->second) times_.push_back({simulator.text, row, time_us});
  }

  uint64_t Whole(const CsvCell& cell, TimeColumn column) {
    const auto value = NumberOf<uint64_t>(cell.text);
    if (!value) table_.Refuse(cell, column, "expected a whole number");
    return value.value_or(0);
  }
  double TimeUs(const CsvCell& cell) {
    const double us = NumberOf<double>(cell.text).value_or(0);
    if (!(us >= kMeasuredUsMin) || us > kMeasuredUsMax) {
      table_.Refuse(cell, kTimeOf, "expected microseconds, 0.001 to 1e12");
    }
    return us;
  }

  CsvTable table_;
  std::map<RowKey, std::vector<size_t>> rows_;  // several: in place and out of place
  std::set<std::pair<std::string, RowKey>> seen_;
  std::vector<OtherTime> times_;
};

}  // namespace

std::vector<OtherTime> ReadOtherTimes(const std::string& path,
                                      const std::vector<MeasuredRow>& measured,
                                      Diagnostics& diagnostics) {
  return TimesReader(path, measured, diagnostics).Read();
}

}  // namespace railyard
