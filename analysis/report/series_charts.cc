// SPDX-License-Identifier: GPL-2.0-only
// Makes charts over time, for results that hold time series.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

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

// The rows of a series' links in the drawn bins of one tier.
struct TierBin {
  int64_t begin_ps = INT64_MAX;
  std::optional<double> greatest;
  double sum = 0;
};

// A series' rows of links, by the link's tier and by drawn bin. (A join in the database, whose keys
// would be names, took 8 % of a short run's instructions.)
struct TierSeries {
  struct Tier {
    std::string name;
    int64_t links = 0;
  };
  std::vector<Tier> tiers;                             // by name
  std::map<std::pair<size_t, int64_t>, TierBin> bins;  // by number of the tier, and of the bin
};

TierSeries ByTier(const ResultStore& store, const char* table, const char* greatest_column,
                  const char* summed_column, int64_t bins_together) {
  TierSeries series;
  std::map<std::string, size_t> numbers;
  StoredRows tiers = store.Rows("SELECT tier, COUNT(*) FROM links GROUP BY tier ORDER BY tier");
  while (tiers.Next()) {
    numbers.emplace(tiers.Text(0), series.tiers.size());
    series.tiers.push_back({tiers.Text(0), tiers.Integer(1)});
  }
  std::unordered_map<std::string, size_t> tier_of;
  StoredRows links = store.Rows("SELECT link, tier FROM links");
  while (links.Next()) tier_of.emplace(links.Text(0), numbers.at(links.Text(1)));
  StoredRows rows = store.Rows(fmt::format("SELECT link, bin / {}, begin_ps, {}, {} FROM {}",
                                           bins_together, greatest_column, summed_column, table));
  while (rows.Next()) {
    const auto tier = tier_of.find(rows.Text(0));
    if (tier == tier_of.end()) throw UnreadableResult{fmt::format("{} names no link", table)};
    TierBin& bin = series.bins[{tier->second, rows.Integer(1)}];
    bin.begin_ps = std::min(bin.begin_ps, rows.Integer(2));
    if (!rows.IsNull(3)) bin.greatest = std::max(bin.greatest.value_or(0), rows.Real(3));
    bin.sum += rows.Real(4);
  }
  return series;
}

void AppendUtilization(const ResultStore& store, std::vector<Chart>& charts) {
  if (!HasRows(store, "link_series")) return;
  Chart chart{.id = "utilization",
              .title = "Utilisation over time",
              .caption =
                  "The busiest link of each tier in every bin of time, and the mean over all "
                  "of the tier's links."};
  const int64_t together = BinsTogether(store, "link_series");
  const TierSeries series = ByTier(store, "link_series", "utilization", "utilization", together);
  ChartTable table{.name = "utilization", .columns = {"tier", "begin_ps", "greatest", "mean"}};
  for (const auto& [place, bin] : series.bins) {
    const TierSeries::Tier& tier = series.tiers[place.first];
    table.rows.push_back(
        {tier.name, bin.begin_ps, bin.greatest.value_or(0),
         bin.sum / static_cast<double>(together) / static_cast<double>(tier.links)});
  }
  chart.tables.push_back(std::move(table));
  charts.push_back(std::move(chart));
}

void AppendQueues(const ResultStore& store, std::vector<Chart>& charts) {
  if (!HasRows(store, "queue_series")) return;
  Chart chart{.id = "queues",
              .title = "Queues and pauses over time",
              .caption =
                  "The longest queue before a link of each tier in every bin of time, and how "
                  "long links of the tier were paused."};
  const TierSeries series = ByTier(store, "queue_series", "queue_max_bytes", "paused_ps",
                                   BinsTogether(store, "queue_series"));
  ChartTable table{.name = "queues",
                   .columns = {"tier", "begin_ps", "queue_max_bytes", "paused_ps"}};
  for (const auto& [place, bin] : series.bins) {
    const StoredValue greatest =
        bin.greatest ? StoredValue(static_cast<int64_t>(std::llround(*bin.greatest)))
                     : StoredValue();
    table.rows.push_back({series.tiers[place.first].name, bin.begin_ps, greatest,
                          static_cast<int64_t>(std::llround(bin.sum))});
  }
  chart.tables.push_back(std::move(table));
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
