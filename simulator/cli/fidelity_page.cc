// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/fidelity_page.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "analysis/report/page_contents.h"
#include "analysis/tables/figure_text.h"

namespace railyard {
namespace {

StoredValue ValueOrNone(const std::optional<double>& value) {
  return value ? StoredValue(*value) : StoredValue();
}
StoredValue CountOf(uint64_t count) { return static_cast<int64_t>(count); }

ChartTable CellsTable(const Scoreboard& board, std::string name) {
  ChartTable table{
      .name = std::move(name),
      .columns = {"machine", "collective", "protocol", "sizes", "bytes_min", "simulator", "rows",
                  "median_abs_error", "p90_abs_error", "median_error", "spread", "tables"}};
  for (const ScoreCell& cell : board.cells) {
    for (const Score& score : cell.scores) {
      table.rows.push_back({cell.machine, cell.collective, cell.protocol, cell.sizes,
                            CountOf(cell.bytes_min), score.simulator, CountOf(score.rows),
                            score.median_abs_error, score.p90_abs_error, score.median_error,
                            ValueOrNone(cell.spread), CountOf(cell.sources)});
    }
  }
  return table;
}

ChartTable RowsTable(const Scoreboard& board, std::string name) {
  ChartTable table{.name = std::move(name),
                   .columns = {"machine", "collective", "protocol", "simulator", "source", "bytes",
                               "measured_us", "simulated_us", "error", "spread"}};
  for (const ScoredRow& scored : board.rows) {
    if (table.rows.size() == kChartPointsMax) break;
    const MeasuredRow& measured = scored.row->measured;
    table.rows.push_back({scored.machine, measured.collective, scored.protocol, scored.simulator,
                          measured.source_id, CountOf(measured.bytes), measured.time_us,
                          scored.simulated_us, scored.simulated_us / measured.time_us - 1,
                          ValueOrNone(scored.spread)});
  }
  return table;
}

}  // namespace

std::string FidelityPage(const Scoreboard& board, const FidelityResult& result) {
  PageContents contents{
      .title = "Fidelity: Railyard report",
      .subject = fmt::format("{} measured rows", result.rows.size()),
      .provenance =
          "Errors are simulated over measured time, less 1. The spread is the greatest "
          "over the least time, less 1, of tables whose machines are modelled alike."};
  for (const Score& score : board.totals) {
    contents.verdict.push_back(
        {.text = fmt::format("{}: |error| is {} at the median and {} at the 90th percentile of {} "
                             "rows.",
                             score.simulator, PercentText(score.median_abs_error),
                             PercentText(score.p90_abs_error), score.rows)});
    contents.verdict.push_back({.text = " "});
  }
  contents.figures = {
      {.label = "Median |error|",
       .figure = {.text = PercentText(board.totals[0].median_abs_error)}},
      {.label = "90th percentile", .figure = {.text = PercentText(board.totals[0].p90_abs_error)}},
      {.label = "Rows", .figure = {.text = fmt::format("{}", result.rows.size())}},
      {.label = "Not modelled", .figure = {.text = fmt::format("{}", result.skipped.size())}}};
  contents.charts.push_back(
      {.id = "fidelity_machines",
       .title = "Machine by collective",
       .caption = "Median of |error| of a kind of machine, for the chosen sizes and protocol. A "
                  "second line gives the spread between tables of that kind, where there are "
                  "several: a smaller error has no meaning.",
       .tables = {CellsTable(board, "fidelity_machines")}});
  Chart sizes{.id = "fidelity_sizes",
              .title = "Error by size",
              .caption =
                  "Each point is a measured row; above 0 the simulation is too slow. Bands "
                  "show the spread between tables of machines of that kind.",
              .tables = {RowsTable(board, "fidelity_sizes")}};
  if (board.rows.size() > kChartPointsMax) {
    sizes.note = fmt::format("The first {} rows are drawn.", kChartPointsMax);
  }
  contents.charts.push_back(std::move(sizes));
  std::map<std::string, uint64_t> reasons;
  for (const FidelitySkipped& skipped : result.skipped) {
    ++reasons[fmt::format("{} {}: {}", skipped.measured.source_id, skipped.measured.collective,
                          skipped.reason)];
  }
  for (const auto& [reason, count] : reasons) {
    contents.notes.push_back(fmt::format("Not modelled: {} rows of {}.", count, reason));
  }
  if (!result.not_run.empty()) {
    contents.notes.push_back(
        fmt::format("Not run: {} rows larger than --max-bytes.", result.not_run.size()));
  }
  return PageOf(contents);
}

}  // namespace railyard
