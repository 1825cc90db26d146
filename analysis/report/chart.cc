// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/report/chart.h"

namespace railyard {

ChartTable TableOf(const ResultStore& store, std::string name, const std::string& sql) {
  StoredRows selected = store.Rows(sql);
  ChartTable table{.name = std::move(name), .columns = {}};
  for (int column = 0; column < selected.column_count(); ++column) {
    table.columns.push_back(selected.ColumnName(column));
  }
  while (selected.Next()) {
    std::vector<StoredValue>& row = table.rows.emplace_back();
    row.reserve(table.columns.size());
    for (int column = 0; column < selected.column_count(); ++column) {
      row.push_back(selected.Value(column));
    }
  }
  return table;
}

std::vector<Chart> ChartsOf(const ResultStore& store) {
  std::vector<Chart> charts;
  AppendCollectiveCharts(store, charts);
  AppendTrafficCharts(store, charts);
  AppendFabricChart(store, charts);
  AppendSeriesCharts(store, charts);
  AppendBurstChart(store, charts);
  AppendCauseCharts(store, charts);
  return charts;
}

}  // namespace railyard
