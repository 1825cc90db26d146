// SPDX-License-Identifier: GPL-2.0-only
// The tables of a result, each defined once: the CSV files and the database are two forms of them.
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

// monostate: the figure does not exist.
using Cell = std::variant<std::monostate, int64_t, double, bool, std::string_view>;

enum class ColumnType : uint8_t { kInteger, kReal, kBoolean, kText, kAny };

struct ResultColumn {
  const char* name;  // its unit last
  ColumnType type;
};

struct ResultTable {
  const char* name;
  std::vector<ResultColumn> columns;
  size_t row_count = 0;
  // Appends the cells of one row, as many as there are columns. Text lives as long as the table and
  // the RunResult.
  std::function<void(size_t row, std::vector<Cell>& cells)> append_row;
};

// The RunResult must outlive the table.
ResultTable CollectivesTable(const RunResult& result);
ResultTable JobsTable(const RunResult& result);
ResultTable PairsTable(const RunResult& result);
ResultTable InNetworkTable(const RunResult& result);
ResultTable LinksTable(const RunResult& result);
// Figures about the kind of traffic: each link's flows and bursts, message sizes, iterations and
// their matrices.
ResultTable TrafficTable(const RunResult& result);
// RunResult::series: a row per bin, and one per bin and link that had something in it.
ResultTable SeriesTable(const RunResult& result);
ResultTable LinkSeriesTable(const RunResult& result);
ResultTable QueueSeriesTable(const RunResult& result);
ResultTable TransfersTable(const RunResult& result);
ResultTable MessageSizesTable(const RunResult& result);
ResultTable IterationsTable(const RunResult& result);
ResultTable IterationPairsTable(const RunResult& result);
// The parts of the estimated rank's time, by iteration; no rows without an estimate.
ResultTable BreakdownTable(const RunResult& result);
ResultTable DropsTable(const RunResult& result);
ResultTable FaultsTable(const RunResult& result);
ResultTable WaitsTable(const RunResult& result);
ResultTable NotesTable(const RunResult& result);
// One row per figure of the whole run: key, value.
ResultTable RunFiguresTable(const RunResult& result);

}  // namespace railyard
