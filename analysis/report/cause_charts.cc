// SPDX-License-Identifier: GPL-2.0-only
// Makes charts of faults, of the causes that made collectives longer, and of the ranks that waited
// for each other.
#include <map>
#include <set>

#include <fmt/format.h>

#include "analysis/report/chart.h"
#include "analysis/tables/figure_text.h"

namespace railyard {
namespace {

constexpr int kFaultsDrawnMax = 40;
constexpr int kCulpritsDrawnMax = 20;

struct Cause {
  const char* column;  // of the table `collectives`
  const char* name;
};
constexpr Cause kCauses[] = {{"added_timeout_ps", "time-outs"},
                             {"added_retransmission_ps", "sent again"},
                             {"added_slow_peer_ps", "slow or late peers"},
                             {"added_queueing_ps", "queueing"},
                             {"added_rerouting_ps", "longer ways"},
                             {"added_other_ps", "other"}};

void AppendFaults(const ResultStore& store, std::vector<Chart>& charts) {
  const int64_t count = store.Count("SELECT COUNT(*) FROM faults WHERE begins > 0");
  if (count == 0) return;
  Chart chart{.id = "faults",
              .title = "Faults and what they reached",
              .caption =
                  "When each fault held, when it was noticed, when packets were first sent "
                  "again and when traffic flowed again; below, how much each one hit."};
  if (count > kFaultsDrawnMax) {
    chart.note = fmt::format("The {} of {} faults that hit most collectives are drawn.",
                             kFaultsDrawnMax, CountText(static_cast<uint64_t>(count)));
  }
  chart.tables.push_back(TableOf(
      store, "faults",
      fmt::format(
          "SELECT name, kind, target, from_ps, until_ps, begins, dropped_packets, "
          "retransmitted_bytes, collectives_hit, ranks_hit, bytes_hit, from_ps + "
          "time_to_detect_ps AS detected_ps, first_retransmission_ps, from_ps + "
          "time_to_recover_ps AS recovered_ps, (SELECT CAST(value AS INTEGER) FROM run WHERE key = "
          "'simulated_time_ps') AS run_ps FROM faults WHERE begins > 0 ORDER BY "
          "collectives_hit DESC, from_ps LIMIT {}",
          kFaultsDrawnMax)));
  charts.push_back(std::move(chart));
}

// For each kind of collectives, the sum of what its collectives took longer, by cause.
void AppendAddedTime(const ResultStore& store, std::vector<Chart>& charts) {
  if (store.Count("SELECT COUNT(*) FROM collectives WHERE duration_ps <> baseline_duration_ps") ==
      0) {
    return;
  }
  Chart chart{.id = "added_time",
              .title = "Causes of added time",
              .caption =
                  "What collectives took longer than without faults, summed over all of a "
                  "kind. Collectives at the same time count each; what is below zero was "
                  "gained."};
  std::string query;
  for (const Cause& cause : kCauses) {
    query += fmt::format(
        "{}SELECT kind, '{}' AS cause, SUM({}) AS added_ps FROM collectives WHERE "
        "added_other_ps IS NOT NULL GROUP BY kind",
        query.empty() ? "" : " UNION ALL ", cause.name, cause.column);
  }
  chart.tables.push_back(TableOf(store, "added_time", query));
  charts.push_back(std::move(chart));
}

// Appends a chart of how the collective that lost most time came to its duration.
void AppendSlowest(const ResultStore& store, std::vector<Chart>& charts) {
  const std::string chosen =
      "FROM collectives WHERE duration_ps > baseline_duration_ps ORDER BY duration_ps - "
      "baseline_duration_ps DESC, collective_index LIMIT 1";
  StoredRows slowest = store.Rows(
      "SELECT kind, bytes, ranks, start_ps, collective_index, held_up_by_source, "
      "held_up_by_destination " +
      chosen);
  if (!slowest.Next()) return;
  std::string caption = fmt::format(
      "From its duration without faults to its duration in this run: {} of {} B among {} ranks, "
      "number {}.",
      slowest.Text(0), CountText(static_cast<uint64_t>(slowest.Integer(1))), slowest.Integer(2),
      slowest.Integer(4));
  if (!slowest.IsNull(5) && !slowest.IsNull(6)) {
    caption +=
        slowest.Integer(5) == slowest.Integer(6)
            ? fmt::format(" Its last rank waited longest for rank {}, which was slow or late.",
                          slowest.Integer(5))
            : fmt::format(" Its last rank waited longest for what rank {} sent to rank {}.",
                          slowest.Integer(5), slowest.Integer(6));
  }
  Chart chart{.id = "slowest",
              .title = "The collective that lost most time",
              .caption = std::move(caption)};
  std::string query = "SELECT 'without faults' AS part, baseline_duration_ps AS time_ps FROM one";
  for (const Cause& cause : kCauses) {
    query += fmt::format(" UNION ALL SELECT '{}', {} FROM one WHERE {} <> 0", cause.name,
                         cause.column, cause.column);
  }
  query += " UNION ALL SELECT 'in this run', duration_ps FROM one";
  chart.tables.push_back(
      TableOf(store, "slowest", fmt::format("WITH one AS (SELECT * {}) {}", chosen, query)));
  charts.push_back(std::move(chart));
}

// From the rank that waited most to what it waited for, what that waited for, and so on.
ChartTable ChainOf(const ResultStore& store) {
  struct Wait {
    int64_t source = 0;
    int64_t destination = 0;
    int64_t waited_ps = 0;
  };
  std::map<int64_t, Wait> longest;  // of each rank
  int64_t rank = -1;
  StoredRows rows =
      store.Rows("SELECT rank, source_rank, destination_rank, waited_ps FROM waits ORDER BY rank");
  while (rows.Next()) {
    Wait& wait = longest[rows.Integer(0)];
    if (rows.Integer(3) > wait.waited_ps) {
      wait = {rows.Integer(1), rows.Integer(2), rows.Integer(3)};
    }
    if (rank < 0 || wait.waited_ps > longest[rank].waited_ps) rank = rows.Integer(0);
  }
  ChartTable table{.name = "chain",
                   .columns = {"rank", "source_rank", "destination_rank", "waited_ps"}};
  std::set<int64_t> seen;
  while (longest.contains(rank) && seen.insert(rank).second) {
    const Wait& wait = longest[rank];
    table.rows.push_back({rank, wait.source, wait.destination, wait.waited_ps});
    if (wait.source == rank || wait.destination == rank) break;
    rank = wait.source;
  }
  return table;
}

void AppendWaits(const ResultStore& store, std::vector<Chart>& charts) {
  const int64_t culprits = store.Count(
      "SELECT COUNT(*) FROM (SELECT 1 FROM waits GROUP BY source_rank, destination_rank)");
  if (culprits == 0) return;
  Chart chart{.id = "waits",
              .title = "Who held up whom",
              .caption =
                  "How long ranks waited for a transfer that was lost or late, or for a rank "
                  "that was slow or late, summed over all that did. The chain leads from the "
                  "rank that waited most to where it began."};
  if (culprits > kCulpritsDrawnMax) {
    chart.note = fmt::format("The {} of {} with the longest waits are drawn.", kCulpritsDrawnMax,
                             CountText(static_cast<uint64_t>(culprits)));
  }
  chart.tables.push_back(TableOf(
      store, "waits",
      fmt::format("SELECT source_rank, destination_rank, COUNT(DISTINCT rank) AS ranks_waiting, "
                  "SUM(calls) AS calls, SUM(waited_ps) AS waited_ps FROM waits GROUP BY 1, 2 ORDER "
                  "BY waited_ps DESC, 1, 2 LIMIT {}",
                  kCulpritsDrawnMax)));
  chart.tables.push_back(ChainOf(store));
  charts.push_back(std::move(chart));
}

}  // namespace

void AppendCauseCharts(const ResultStore& store, std::vector<Chart>& charts) {
  AppendFaults(store, charts);
  if (store.HasBaseline()) {
    AppendAddedTime(store, charts);
    AppendSlowest(store, charts);
  }
  AppendWaits(store, charts);
}

}  // namespace railyard
