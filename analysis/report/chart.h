// SPDX-License-Identifier: GPL-2.0-only
// Represents a chart as data, which the page and gnuplot draw and which is written as CSV.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/store/result_store.h"

namespace railyard {

// The largest number of points in a chart; more are sampled or aggregated, and the chart's note
// says so.
inline constexpr size_t kChartPointsMax = 30'000;

// Holds rows of named columns. Units are in the names: start_ps, payload_bytes.
struct ChartTable {
  std::string name;  // of the CSV file: "stretch"
  std::vector<std::string> columns;
  std::vector<std::vector<StoredValue>> rows{};  // one value per column
};

struct Chart {
  std::string id;  // page/report.js and figures/ choose the drawing by it
  std::string title;
  std::string caption;  // how to read it; one or two sentences
  std::string note{};   // what was left out or aggregated; may be empty
  std::vector<ChartTable> tables{};
};

// Returns all rows that `sql` selects, with the column names of the query.
ChartTable TableOf(const ResultStore& store, std::string name, const std::string& sql);

// Returns the charts for which the result has data, in page order. Throws UnreadableResult if the
// store does not hold the tables that a run writes.
std::vector<Chart> ChartsOf(const ResultStore& store);

// Each of these appends the charts of one group for which there is data.
void AppendCollectiveCharts(const ResultStore& store, std::vector<Chart>& charts);
void AppendTrafficCharts(const ResultStore& store, std::vector<Chart>& charts);
void AppendFabricChart(const ResultStore& store, std::vector<Chart>& charts);
void AppendSeriesCharts(const ResultStore& store, std::vector<Chart>& charts);
void AppendBurstChart(const ResultStore& store, std::vector<Chart>& charts);
void AppendCauseCharts(const ResultStore& store, std::vector<Chart>& charts);

}  // namespace railyard
