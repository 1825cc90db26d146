// SPDX-License-Identifier: GPL-2.0-only
// Charts over time, of results that hold time series.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/report/chart.h"

namespace railyard {
namespace {

bool HasRows(const ResultStore& store, const char* table) {
  return store.HasTable(table) && store.Count(fmt::format("SELECT COUNT(*) FROM {}", table)) > 0;
}

// Bins of a series that may be many are put together, so that there are at most so many.
constexpr int64_t kBinsDrawnMax = 512;

int64_t BinsTogether(const ResultStore& store, const char* table) {
  return 1 + store.Count(fmt::format("SELECT MAX(bin) FROM {}", table)) / kBinsDrawnMax;
}

void AppendUtilization(const ResultStore& store, std::vector<Chart>& charts) {
  if (!HasRows(store, "link_series")) return;
  Chart chart{.id = "utilization",
              .title = "Utilisation over time",
              .caption =
                  "The busiest link of each tier in every bin of time, and the mean over all "
                  "of the tier's links."};
  chart.tables.push_back(TableOf(
      store, "utilization",
      fmt::format("SELECT l.tier AS tier, MIN(s.begin_ps) AS begin_ps, MAX(s.utilization) AS "
                  "greatest, SUM(s.utilization) / {0} / (SELECT COUNT(*) FROM links n WHERE n.tier "
                  "= l.tier) AS mean FROM link_series s JOIN links l USING (link) GROUP BY l.tier, "
                  "s.bin / {0} ORDER BY l.tier, 2",
                  BinsTogether(store, "link_series"))));
  charts.push_back(std::move(chart));
}

void AppendQueues(const ResultStore& store, std::vector<Chart>& charts) {
  if (!HasRows(store, "queue_series")) return;
  Chart chart{.id = "queues",
              .title = "Queues and pauses over time",
              .caption =
                  "The longest queue before a link of each tier in every bin of time, and how "
                  "long links of the tier were paused."};
  chart.tables.push_back(TableOf(
      store, "queues",
      fmt::format("SELECT l.tier AS tier, MIN(q.begin_ps) AS begin_ps, MAX(q.queue_max_bytes) AS "
                  "queue_max_bytes, SUM(q.paused_ps) AS paused_ps FROM queue_series q JOIN links l "
                  "USING (link) GROUP BY l.tier, q.bin / {} ORDER BY l.tier, 2",
                  BinsTogether(store, "queue_series"))));
  charts.push_back(std::move(chart));
}

void AppendMarks(const ResultStore& store, std::vector<Chart>& charts) {
  if (!HasRows(store, "series") ||
      store.Count("SELECT SUM(ecn_marked + cnp + nacks + timeouts + retransmitted_packets) FROM "
                  "series") == 0) {
    return;
  }
  Chart chart{.id = "marks",
              .title = "Marks, losses and what was sent again",
              .caption = "Events of the transport in every bin of time."};
  chart.tables.push_back(TableOf(
      store, "marks",
      fmt::format("SELECT MIN(begin_ps) AS begin_ps, SUM(ecn_marked) AS ecn_marked, SUM(cnp) AS "
                  "cnp, SUM(nacks) AS nacks, SUM(timeouts) AS timeouts, SUM(retransmitted_packets) "
                  "AS retransmitted_packets FROM series GROUP BY bin / {} ORDER BY 1",
                  BinsTogether(store, "series"))));
  charts.push_back(std::move(chart));
}

}  // namespace

void AppendSeriesCharts(const ResultStore& store, std::vector<Chart>& charts) {
  AppendUtilization(store, charts);
  AppendQueues(store, charts);
  AppendMarks(store, charts);
}

}  // namespace railyard
