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
  std::optional<double> greatest;
  double sum = 0;
};

// A bin that is drawn. Replayed time has no samples.
struct DrawnBin {
  int64_t begin_ps = 0;
  int64_t end_ps = 0;
  bool has_samples = false;
};

// A series' rows of links, by the link's tier and by drawn bin; a bin in which nothing came over a
// tier has none. (A join in the database, whose keys
// would be names, took 8 % of a short run's instructions.)
struct TierSeries {
  struct Tier {
    std::string name;
    int64_t links = 0;
  };
  std::vector<Tier> tiers;                                  // by name
  std::vector<DrawnBin> bins;                               // by number
  std::map<std::pair<size_t, int64_t>, TierBin> with_rows;  // by number of the tier, and of the bin
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
  StoredRows rows = store.Rows(fmt::format("SELECT link, bin / {}, {}, {} FROM {}", bins_together,
                                           greatest_column, summed_column, table));
  while (rows.Next()) {
    const auto tier = tier_of.find(rows.Text(0));
    if (tier == tier_of.end()) throw UnreadableResult{fmt::format("{} names no link", table)};
    TierBin& bin = series.with_rows[{tier->second, rows.Integer(1)}];
    if (!rows.IsNull(2)) bin.greatest = std::max(bin.greatest.value_or(0), rows.Real(2));
    bin.sum += rows.Real(3);
  }
  StoredRows bins = store.Rows(
      fmt::format("SELECT MIN(begin_ps), MAX(end_ps), SUM(samples) FROM series GROUP BY bin / {0} "
                  "ORDER BY bin / {0}",
                  bins_together));
  while (bins.Next())
    series.bins.push_back({bins.Integer(0), bins.Integer(1), bins.Integer(2) > 0});
  return series;
}

// Appends a row for each tier and bin, and one at the end of the last bin, to which its value is
// drawn. `row_of` has the values after the tier and the time.
template <typename RowOf>
void AppendRows(const TierSeries& series, ChartTable& table, RowOf row_of) {
  for (size_t tier = 0; tier < series.tiers.size(); ++tier) {
    const auto append = [&](int64_t time_ps, int64_t number) {
      const auto found = series.with_rows.find({tier, number});
      const TierBin bin = found == series.with_rows.end() ? TierBin{} : found->second;
      const auto [first, second] =
          row_of(series.tiers[tier], series.bins[static_cast<size_t>(number)], bin);
      table.rows.push_back({series.tiers[tier].name, time_ps, first, second});
    };
    const auto count = static_cast<int64_t>(series.bins.size());
    for (int64_t number = 0; number < count; ++number) {
      append(series.bins[static_cast<size_t>(number)].begin_ps, number);
    }
    if (count > 0) append(series.bins.back().end_ps, count - 1);
  }
}

void AppendUtilization(const ResultStore& store, std::vector<Chart>& charts) {
  if (!HasRows(store, "link_series")) return;
  Chart chart{.id = "utilization",
              .title = "Utilisation over time",
              .caption =
                  "The busiest link of each tier in every bin of time, and the mean over all "
                  "of the tier's links."};
  const int64_t together = BinsTogether(store, "series");
  const TierSeries series = ByTier(store, "link_series", "utilization", "utilization", together);
  ChartTable table{.name = "utilization", .columns = {"tier", "begin_ps", "greatest", "mean"}};
  AppendRows(series, table,
             [&](const TierSeries::Tier& tier, const DrawnBin& /*drawn*/, const TierBin& bin) {
               const double mean =
                   bin.sum / static_cast<double>(together) / static_cast<double>(tier.links);
               return std::pair<StoredValue, StoredValue>(bin.greatest.value_or(0), mean);
             });
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
  const TierSeries series =
      ByTier(store, "queue_series", "queue_max_bytes", "paused_ps", BinsTogether(store, "series"));
  ChartTable table{.name = "queues",
                   .columns = {"tier", "begin_ps", "queue_max_bytes", "paused_ps"}};
  AppendRows(series, table,
             [](const TierSeries::Tier& /*tier*/, const DrawnBin& drawn, const TierBin& bin) {
               const auto greatest = static_cast<int64_t>(std::llround(bin.greatest.value_or(0)));
               const auto paused_ps = static_cast<int64_t>(std::llround(bin.sum));
               return std::pair<StoredValue, StoredValue>(
                   drawn.has_samples ? StoredValue(greatest) : StoredValue(), paused_ps);
             });
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
  ChartTable marks = TableOf(
      store, "marks",
      fmt::format("SELECT MIN(begin_ps) AS begin_ps, SUM(ecn_marked) AS ecn_marked, SUM(cnp) AS "
                  "cnp, SUM(nacks) AS nacks, SUM(timeouts) AS timeouts, SUM(retransmitted_packets) "
                  "AS retransmitted_packets FROM series GROUP BY bin / {} ORDER BY 1",
                  BinsTogether(store, "series")));
  // The last bin ends where the run does.
  marks.rows.push_back(marks.rows.back());
  marks.rows.back().front() = store.First("SELECT MAX(end_ps) FROM series");
  chart.tables.push_back(std::move(marks));
  charts.push_back(std::move(chart));
}

}  // namespace

void AppendSeriesCharts(const ResultStore& store, std::vector<Chart>& charts) {
  AppendUtilization(store, charts);
  AppendQueues(store, charts);
  AppendMarks(store, charts);
}

}  // namespace railyard
