// SPDX-License-Identifier: GPL-2.0-only
// Defines the tables of a result, from which both the CSV files and the database are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/result/run_result.h"

namespace railyard {

// Holds a figure, or monostate if it does not exist.
using Cell = std::variant<std::monostate, int64_t, double, bool, std::string_view>;

enum class ColumnType : uint8_t { kInteger, kReal, kBoolean, kText, kAny };

struct ResultColumn {
  const char* name;  // ends with the unit
  ColumnType type;
};

struct ResultTable {
  const char* name;
  std::vector<ResultColumn> columns;
  size_t row_count = 0;
  // Appends the cells of one row, one per column. Text lives as long as the table and the
  // RunResult.
  std::function<void(size_t row, std::vector<Cell>& cells)> append_row;
};

// Returns the table of collectives. For all tables, the RunResult must outlive the table.
ResultTable CollectivesTable(const RunResult& result);
ResultTable JobsTable(const RunResult& result);
ResultTable PairsTable(const RunResult& result);
ResultTable InNetworkTable(const RunResult& result);
ResultTable LinksTable(const RunResult& result);
// Returns the figures that characterize the traffic: flows and bursts of each link, message sizes,
// iterations and their matrices.
ResultTable TrafficTable(const RunResult& result);
// Returns RunResult::series: a row per bin, and one per bin and link with a figure other than 0.
ResultTable SeriesTable(const RunResult& result);
ResultTable LinkSeriesTable(const RunResult& result);
ResultTable QueueSeriesTable(const RunResult& result);
ResultTable TransfersTable(const RunResult& result);
ResultTable MessageSizesTable(const RunResult& result);
ResultTable IterationsTable(const RunResult& result);
ResultTable IterationPairsTable(const RunResult& result);
// Returns the parts of the estimated rank's time, by iteration; no rows without an estimate.
ResultTable BreakdownTable(const RunResult& result);
ResultTable DropsTable(const RunResult& result);
ResultTable FaultsTable(const RunResult& result);
ResultTable WaitsTable(const RunResult& result);
ResultTable NotesTable(const RunResult& result);
// Returns one row per figure of the whole run: key, value.
ResultTable RunFiguresTable(const RunResult& result);

}  // namespace railyard
