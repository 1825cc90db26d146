// SPDX-License-Identifier: GPL-2.0-only
// Makes charts of collectives: stretch over time and its distribution, durations against the bound,
// and the causes of added time.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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
enum RatioIndex : size_t { kStretch, kSlowdown, kInterference };
constexpr std::array<Ratio, 3> kRatios = {
    {{"stretch", "Stretch over time", "Distribution of the stretch",
      "Each point is a collective at the time it began: its duration in this run over its duration "
      "in the same run without faults."},
     {"slowdown", "Slowdown over time", "Distribution of the slowdown",
      "Each point is a collective at the time it began: its duration over its bound, the least "
      "time in which its bytes could cross these links."},
     {"interference", "Interference over time", "Distribution of the interference",
      "Each point is a collective at the time it began: its duration beside the other jobs over "
      "its duration with its job alone on the fabric."}}};

// A collective that has the ratio.
struct RatioPoint {
  int64_t start_ps = 0;
  double ratio = 0;
  uint32_t row = 0;   // its rowid, which grows with its index
  uint32_t kind = 0;  // of CollectiveFigures::kinds
};

// A kind by its number, bytes, ranks.
using GroupKey = std::tuple<uint32_t, int64_t, int64_t>;
// The durations of the collectives of a kind, size and number of ranks.
struct DurationGroup {
  std::vector<int64_t> durations_ps;
  int64_t bound_ps = INT64_MAX;
  double total_ps = 0;
};

// Holds the figures of all collectives, of which there may be a million: they are read at once.
struct CollectiveFigures {
  std::vector<std::string> kinds;
  std::array<std::vector<RatioPoint>, kRatios.size()> points;  // in the order of their starts
  std::array<bool, kRatios.size()> varies{};                   // some value is not 1
  std::map<GroupKey, DurationGroup> durations;
};

CollectiveFigures FiguresOf(const ResultStore& store) {
  CollectiveFigures figures;
  std::map<std::string, uint32_t> numbers;
  uint32_t kind = 0;
  std::string columns;
  for (const Ratio& ratio : kRatios) columns += fmt::format(", {}", ratio.column);
  StoredRows rows = store.Rows(fmt::format(
      "SELECT rowid, kind, bytes, ranks, start_ps, duration_ps, bound_ps{} FROM collectives",
      columns));
  while (rows.Next()) {
    const std::string name = rows.Text(1);
    if (figures.kinds.empty() || name != figures.kinds[kind]) {  // than in the row before
      kind = numbers.try_emplace(name, numbers.size()).first->second;
      if (kind == figures.kinds.size()) figures.kinds.push_back(name);
    }
    if (!rows.IsNull(5)) {
      DurationGroup& group = figures.durations[{kind, rows.Integer(2), rows.Integer(3)}];
      group.durations_ps.push_back(rows.Integer(5));
      group.bound_ps = std::min(group.bound_ps, rows.Integer(6));
      group.total_ps += rows.Real(5);
    }
    for (size_t i = 0; i < kRatios.size(); ++i) {
      const int column = 7 + static_cast<int>(i);
      if (rows.IsNull(column) || rows.IsNull(4)) continue;
      figures.points[i].push_back({.start_ps = rows.Integer(4),
                                   .ratio = rows.Real(column),
                                   .row = static_cast<uint32_t>(rows.Integer(0)),
                                   .kind = kind});
      figures.varies[i] = figures.varies[i] || figures.points[i].back().ratio != 1;
    }
  }
  for (std::vector<RatioPoint>& points : figures.points) {
    std::ranges::sort(points, {},
                      [](const RatioPoint& point) { return std::pair(point.start_ps, point.row); });
  }
  return figures;
}

// The least, the median and the greatest of each group of consecutive collectives, so that groups
// make up `points` points. Returns their rows, ascending.
std::vector<uint32_t> ExtremesOf(const std::vector<RatioPoint>& values, size_t points) {
  const size_t groups = points / 3;
  std::vector<uint32_t> chosen;
  std::vector<std::pair<double, uint32_t>> group;
  for (size_t g = 0; g < groups; ++g) {
    const size_t begin = values.size() * g / groups;
    const size_t end = values.size() * (g + 1) / groups;
    group.clear();
    for (size_t i = begin; i < end; ++i) group.emplace_back(values[i].ratio, values[i].row);
    std::sort(group.begin(), group.end());
    for (const size_t at : {size_t{0}, group.size() / 2, group.size() - 1}) {
      chosen.push_back(group[at].second);
    }
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

Chart OverTimeChart(const ResultStore& store, const Ratio& ratio,
                    const std::vector<RatioPoint>& points) {
  Chart chart{.id = fmt::format("{}_over_time", ratio.column),
              .title = ratio.title,
              .caption = ratio.caption};
  std::string drawn;
  if (points.size() > kChartPointsMax) {
    const std::vector<uint32_t> rows = ExtremesOf(points, kChartPointsMax);
    drawn = fmt::format(" AND rowid IN ({})", fmt::join(rows, ", "));
    chart.note = fmt::format(
        "{} of {} collectives are drawn: of every group of neighbours in time the least, the "
        "median and the greatest.",
        CountText(rows.size()), CountText(points.size()));
  }
  chart.tables.push_back(TableOf(
      store, chart.id,
      fmt::format("SELECT collective_index, start_ps, {0}, kind, ranks, bytes, duration_ps, "
                  "baseline_duration_ps, hit_by_fault, communicator FROM collectives WHERE {0} IS "
                  "NOT NULL AND start_ps IS NOT NULL{1}",
                  ratio.column, drawn)));
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

Chart DistributionChart(const Ratio& ratio, const std::vector<RatioPoint>& points,
                        const std::vector<std::string>& kinds) {
  std::map<std::string, std::vector<double>> by_kind;
  for (const RatioPoint& point : points) by_kind[kinds[point.kind]].push_back(point.ratio);
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

// Quantiles of durations of each kind, size and number of ranks, those with the most time first.
void AppendDurations(CollectiveFigures& figures, std::vector<Chart>& charts) {
  auto& groups = figures.durations;
  if (groups.empty()) return;
  std::vector<std::pair<const GroupKey, DurationGroup>*> ordered;
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
    table.rows.push_back({figures.kinds[kind], bytes, ranks, static_cast<int64_t>(count),
                          sorted_ps.front(), quantile(50), quantile(99), sorted_ps.back(),
                          group->second.bound_ps});
  }
  chart.tables.push_back(std::move(table));
  charts.push_back(std::move(chart));
}

}  // namespace

void AppendCollectiveCharts(const ResultStore& store, std::vector<Chart>& charts) {
  CollectiveFigures figures = FiguresOf(store);
  const auto append = [&](size_t ratio) {
    if (!figures.varies[ratio]) return false;
    charts.push_back(OverTimeChart(store, kRatios[ratio], figures.points[ratio]));
    charts.push_back(DistributionChart(kRatios[ratio], figures.points[ratio], figures.kinds));
    return true;
  };
  const bool has_stretch = append(kStretch);
  if (!has_stretch) append(kSlowdown);
  append(kInterference);
  AppendDurations(figures, charts);
}

}  // namespace railyard
