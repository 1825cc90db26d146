// SPDX-License-Identifier: GPL-2.0-only
// Charts of collectives: stretch over time and its distribution, durations against the bound, what
// made them longer.
#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "analysis/report/chart.h"
#include "analysis/tables/figure_text.h"

namespace railyard {
namespace {

// Points of one distribution function, and rows of the table of durations.
constexpr size_t kQuantilesMax = 500;
constexpr size_t kDurationRowsMax = 30;

// A ratio that every collective has, as a column of the table `collectives`.
struct Ratio {
  const char* column;
  const char* title;
  const char* distribution_title;
  const char* caption;
};
constexpr Ratio kStretch = {"stretch", "Stretch over time", "Distribution of the stretch",
                            "Each point is a collective at the time it began: its duration in this "
                            "run over its duration in "
                            "the same run without faults."};
constexpr Ratio kSlowdown = {
    "slowdown", "Slowdown over time", "Distribution of the slowdown",
    "Each point is a collective at the time it began: its duration over its bound, the least time "
    "in which its bytes could cross these links."};
constexpr Ratio kInterference = {
    "interference", "Interference over time", "Distribution of the interference",
    "Each point is a collective at the time it began: its duration beside the other jobs over its "
    "duration with its job alone on the fabric."};

// The least, the median and the greatest of each group of consecutive collectives, so that groups
// make up `points` points. Returns their indices, ascending.
std::vector<int64_t> ExtremesOf(const std::vector<std::pair<int64_t, double>>& values,
                                size_t points) {
  const size_t groups = points / 3;
  std::vector<int64_t> chosen;
  std::vector<std::pair<double, int64_t>> group;
  for (size_t g = 0; g < groups; ++g) {
    const size_t begin = values.size() * g / groups;
    const size_t end = values.size() * (g + 1) / groups;
    group.clear();
    for (size_t i = begin; i < end; ++i) group.emplace_back(values[i].second, values[i].first);
    std::sort(group.begin(), group.end());
    for (const size_t at : {size_t{0}, group.size() / 2, group.size() - 1}) {
      chosen.push_back(group[at].second);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

Chart OverTimeChart(const ResultStore& store, const Ratio& ratio) {
  Chart chart{.id = fmt::format("{}_over_time", ratio.column),
              .title = ratio.title,
              .caption = ratio.caption};
  std::vector<std::pair<int64_t, double>> values;
  StoredRows rows = store.Rows(
      fmt::format("SELECT collective_index, {0} FROM collectives WHERE {0} IS NOT NULL AND "
                  "start_ps IS NOT NULL ORDER BY start_ps, collective_index",
                  ratio.column));
  while (rows.Next()) values.emplace_back(rows.Integer(0), rows.Real(1));
  const std::string select = fmt::format(
      "SELECT collective_index, start_ps, {0}, kind, ranks, bytes, duration_ps, "
      "baseline_duration_ps, hit_by_fault, communicator FROM collectives WHERE {0} IS NOT NULL AND "
      "start_ps IS NOT NULL",
      ratio.column);
  ChartTable table = TableOf(store, chart.id, select + " LIMIT 0");
  const bool is_sampled = values.size() > kChartPointsMax;
  const std::vector<int64_t> chosen =
      is_sampled ? ExtremesOf(values, kChartPointsMax) : std::vector<int64_t>();
  StoredRows selected = store.Rows(select);
  while (selected.Next()) {
    if (is_sampled && !std::binary_search(chosen.begin(), chosen.end(), selected.Integer(0))) {
      continue;
    }
    std::vector<StoredValue>& row = table.rows.emplace_back();
    for (int i = 0; i < selected.column_count(); ++i) row.push_back(selected.Value(i));
  }
  if (is_sampled) {
    chart.note = fmt::format(
        "{} of {} collectives are drawn: of every group of neighbours in time the least, the "
        "median and the greatest.",
        CountText(table.rows.size()), CountText(values.size()));
  }
  chart.tables.push_back(std::move(table));
  return chart;
}

// Which of `count` ascending values a drawn distribution function goes through: all, or evenly
// spaced ones and, towards the end, one more for every halving of what is left.
std::vector<size_t> RanksDrawn(size_t count) {
  std::vector<size_t> ranks;
  if (count <= kQuantilesMax) {
    for (size_t i = 0; i < count; ++i) ranks.push_back(i);
    return ranks;
  }
  for (size_t i = 0; i < kQuantilesMax; ++i) ranks.push_back(i * (count - 1) / (kQuantilesMax - 1));
  for (size_t left = count / kQuantilesMax; left > 0; left /= 2) ranks.push_back(count - 1 - left);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

Chart DistributionChart(const ResultStore& store, const Ratio& ratio) {
  std::map<std::string, std::vector<double>> by_kind;
  StoredRows rows = store.Rows(
      fmt::format("SELECT kind, {0} FROM collectives WHERE {0} IS NOT NULL", ratio.column));
  while (rows.Next()) by_kind[rows.Text(0)].push_back(rows.Real(1));
  Chart chart{.id = fmt::format("{}_distribution", ratio.column),
              .title = ratio.distribution_title,
              .caption = "The share of collectives of each kind at or below a value."};
  ChartTable table{.name = chart.id, .columns = {"kind", ratio.column, "share"}};
  for (auto& [kind, values] : by_kind) {
    std::sort(values.begin(), values.end());
    for (const size_t rank : RanksDrawn(values.size())) {
      table.rows.push_back(
          {kind, values[rank], static_cast<double>(rank + 1) / static_cast<double>(values.size())});
    }
  }
  chart.tables.push_back(std::move(table));
  return chart;
}

void AppendRatio(const ResultStore& store, const Ratio& ratio, std::vector<Chart>& charts) {
  charts.push_back(OverTimeChart(store, ratio));
  charts.push_back(DistributionChart(store, ratio));
}

// Quantiles of durations of each kind, size and number of ranks, those with the most time first.
void AppendDurations(const ResultStore& store, std::vector<Chart>& charts) {
  struct Group {
    std::vector<int64_t> durations_ps;
    int64_t bound_ps = INT64_MAX;
    double total_ps = 0;
  };
  std::map<std::tuple<std::string, int64_t, int64_t>, Group> groups;
  StoredRows rows = store.Rows(
      "SELECT kind, bytes, ranks, duration_ps, bound_ps FROM collectives WHERE duration_ps IS NOT "
      "NULL");
  while (rows.Next()) {
    Group& group = groups[{rows.Text(0), rows.Integer(1), rows.Integer(2)}];
    group.durations_ps.push_back(rows.Integer(3));
    group.bound_ps = std::min(group.bound_ps, rows.Integer(4));
    group.total_ps += rows.Real(3);
  }
  if (groups.empty()) return;
  std::vector<decltype(groups)::value_type*> ordered;
  for (auto& group : groups) ordered.push_back(&group);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return a->second.total_ps > b->second.total_ps;
  });
  Chart chart{.id = "durations",
              .title = "Durations by kind and size, against the bound",
              .caption =
                  "The bar reaches from the shortest to the longest collective of a kind, size and "
                  "number of ranks, the mark is the median, and the line is the bound: the least "
                  "time in which the bytes could cross these links, by closed form."};
  if (ordered.size() > kDurationRowsMax) {
    chart.note = fmt::format("The {} of {} groups with the most time in all are drawn.",
                             kDurationRowsMax, CountText(ordered.size()));
    ordered.resize(kDurationRowsMax);
  }
  ChartTable table{.name = "durations",
                   .columns = {"kind", "bytes", "ranks", "count", "min_ps", "p50_ps", "p99_ps",
                               "max_ps", "bound_ps"}};
  for (auto* group : ordered) {
    std::vector<int64_t>& sorted_ps = group->second.durations_ps;
    std::sort(sorted_ps.begin(), sorted_ps.end());
    const size_t count = sorted_ps.size();
    // Nearest rank, as in summary.json.
    const auto quantile = [&](size_t per_cent) {
      return sorted_ps[(count * per_cent + 99) / 100 - 1];
    };
    const auto& [kind, bytes, ranks] = group->first;
    table.rows.push_back({kind, bytes, ranks, static_cast<int64_t>(count), sorted_ps.front(),
                          quantile(50), quantile(99), sorted_ps.back(), group->second.bound_ps});
  }
  chart.tables.push_back(std::move(table));
  charts.push_back(std::move(chart));
}

bool Varies(const ResultStore& store, std::string_view column) {
  return store.Count(fmt::format("SELECT COUNT(*) FROM collectives WHERE {} <> 1", column)) > 0;
}

}  // namespace

void AppendCollectiveCharts(const ResultStore& store, std::vector<Chart>& charts) {
  const bool has_stretch = Varies(store, "stretch");
  if (has_stretch) AppendRatio(store, kStretch, charts);
  if (!has_stretch && Varies(store, "slowdown")) AppendRatio(store, kSlowdown, charts);
  if (Varies(store, "interference")) AppendRatio(store, kInterference, charts);
  AppendDurations(store, charts);
}

}  // namespace railyard
