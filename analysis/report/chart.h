// SPDX-License-Identifier: GPL-2.0-only
// A chart as data: what the page draws, what gnuplot draws, and what is written as CSV.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/report/result_store.h"

namespace railyard {

// The most points a chart has; what is more is sampled or aggregated, and the chart's note says so.
inline constexpr size_t kChartPointsMax = 30'000;

// Rows of named columns. Units are in the names: start_ps, payload_bytes.
struct ChartTable {
  std::string name;  // names the CSV file: "stretch"
  std::vector<std::string> columns;
  std::vector<std::vector<StoredValue>> rows{};  // as many values as there are columns
};

struct Chart {
  std::string id;  // by which page/report.js and figures/ draw it
  std::string title;
  std::string caption;  // how to read it; one or two sentences
  std::string note{};   // what was left out or aggregated; may be empty
  std::vector<ChartTable> tables{};
};

// Appends all rows that `sql` selects; the query's column names become the table's.
ChartTable TableOf(const ResultStore& store, std::string name, const std::string& sql);

// The charts for which the result has data, in the order of the page. UnreadableResult where the
// store does not hold what a run writes.
std::vector<Chart> ChartsOf(const ResultStore& store);

// Each group of charts appends those for which there is data.
void AppendCollectiveCharts(const ResultStore& store, std::vector<Chart>& charts);
void AppendTrafficCharts(const ResultStore& store, std::vector<Chart>& charts);
void AppendFabricChart(const ResultStore& store, std::vector<Chart>& charts);
void AppendSeriesCharts(const ResultStore& store, std::vector<Chart>& charts);
void AppendBurstChart(const ResultStore& store, std::vector<Chart>& charts);
void AppendCauseCharts(const ResultStore& store, std::vector<Chart>& charts);

}  // namespace railyard
