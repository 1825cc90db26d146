// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/study_table.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "analysis/tables/text_table.h"
#include "simulator/diagnostics/utf8.h"
#include "simulator/study/sample_statistics.h"

namespace railyard {
namespace {

constexpr size_t kWidthMax = 40;

std::string ShownNumber(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "-";
}

// "COMPLETED", or where runs differ "9 COMPLETED, 1 no result".
std::string Statuses(const StudyResult& result, size_t first, size_t count) {
  std::map<std::string, size_t> counts;
  for (size_t i = first; i < first + count; ++i) {
    const StudyRunResult& run = result.runs[i];
    ++counts[run.exit < 0 ? "not run" : run.status.empty() ? "no result" : run.status];
  }
  if (counts.size() == 1) return counts.begin()->first;
  std::string text;
  for (const auto& [status, runs] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", runs, status);
  }
  return text;
}

std::vector<TextColumn> ColumnsOf(const Study& study) {
  std::vector<TextColumn> columns;
  for (const StudyAxis& axis : study.axes) {
    columns.push_back({ToTerminalText(axis.name, kWidthMax), Align::kLeft});
  }
  columns.push_back({"status", Align::kLeft});
  columns.push_back({"figure", Align::kLeft});
  if (study.seeds == 1) {
    columns.push_back({"value"});
    return columns;
  }
  for (const char* name : {"runs", "mean", "low", "high", "median"}) columns.push_back({name});
  return columns;
}

}  // namespace

std::string StudyTable(const Study& study, const StudyResult& result, size_t rows_max) {
  const std::vector<StudyRun> runs = RunsOf(study);
  TextTable table(ColumnsOf(study));
  size_t rows = 0;
  for (size_t first = 0; first < runs.size(); first += study.seeds) {
    for (size_t figure = 0; figure < study.figures.size(); ++figure) {
      if (++rows > rows_max) continue;
      std::vector<std::string> cells;
      for (const std::string& value : runs[first].values) {
        cells.push_back(ToTerminalText(value, kWidthMax));
      }
      cells.push_back(Statuses(result, first, study.seeds));
      cells.push_back(study.figures[figure]);
      const std::vector<double> values = result.ValuesAt(study, first / study.seeds, figure);
      const Estimate mean = values.empty() ? Estimate{} : MeanOf(values);
      const auto shown = [&](const std::optional<double>& value) {
        return values.empty() ? "-" : ShownNumber(value);
      };
      if (study.seeds == 1) {
        cells.push_back(shown(mean.value));
      } else {
        cells.push_back(fmt::format("{}", values.size()));
        for (const auto& value : {std::optional(mean.value), mean.low, mean.high}) {
          cells.push_back(shown(value));
        }
        cells.push_back(values.empty() ? "-" : ShownNumber(QuantileOf(values, 0.5).value));
      }
      table.AddRow(std::move(cells));
    }
  }
  std::string text = table.ToString();
  if (rows > rows_max) text += fmt::format("and {} more\n", rows - rows_max);
  return text;
}

}  // namespace railyard
