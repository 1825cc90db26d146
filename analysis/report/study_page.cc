// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/report/study_page.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/report/page_contents.h"
#include "analysis/tables/figure_text.h"

namespace railyard {
namespace {

// "loss=1e-4, window=7"; "the only point" of a study without axes.
std::string NameOfPoint(const StudySummary& study, const StudySummary::Point& point) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < study.axes.size(); ++i) {
    parts.push_back(fmt::format("{}={}", study.axes[i], point.values[i]));
  }
  return parts.empty() ? "the only point" : fmt::format("{}", fmt::join(parts, ", "));
}

StoredValue RealOrNone(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? StoredValue(*value) : StoredValue();
}

// A row for each point and figure that some run has. Columns of axes begin with "axis: ".
ChartTable FiguresTable(const StudySummary& study, const std::string& name, size_t rows_max) {
  ChartTable table{.name = name, .columns = {"figure"}};
  for (const std::string& axis : study.axes) table.columns.push_back("axis: " + axis);
  for (const char* column : {"runs", "mean", "low", "high"}) table.columns.emplace_back(column);
  for (const StudySummary::Point& point : study.points) {
    if (table.rows.size() + study.figures.size() > rows_max) break;
    for (size_t i = 0; i < study.figures.size(); ++i) {
      const PointFigure& figure = point.figures[i];
      if (figure.runs == 0) continue;
      std::vector<StoredValue>& row = table.rows.emplace_back();
      row.emplace_back(study.figures[i]);
      for (const std::string& value : point.values) row.emplace_back(value);
      row.emplace_back(static_cast<int64_t>(figure.runs));
      row.push_back(RealOrNone(figure.mean));
      row.push_back(RealOrNone(figure.low));
      row.push_back(RealOrNone(figure.high));
    }
  }
  return table;
}

// Says between which values a figure lies, and where.
std::string RangeSentence(const StudySummary& study, size_t figure) {
  const StudySummary::Point* least = nullptr;
  const StudySummary::Point* greatest = nullptr;
  for (const StudySummary::Point& point : study.points) {
    const PointFigure& at = point.figures[figure];
    if (at.runs == 0) continue;
    if (least == nullptr || at.mean < least->figures[figure].mean) least = &point;
    if (greatest == nullptr || at.mean > greatest->figures[figure].mean) greatest = &point;
  }
  const std::string& name = study.figures[figure];
  if (least == nullptr) return fmt::format("No run has {}.", name);
  const double low = least->figures[figure].mean;
  const double high = greatest->figures[figure].mean;
  if (low == high) return fmt::format("{} is {:.6g} at every point.", name, low);
  return fmt::format("{} goes from {:.6g} ({}) to {:.6g} ({}).", name, low,
                     NameOfPoint(study, *least), high, NameOfPoint(study, *greatest));
}

KeyFigure Number(std::string label, uint64_t value) {
  return {.label = std::move(label), .figure = {.text = CountText(value)}};
}

}  // namespace

std::string StudyPage(const StudySummary& study) {
  PageContents contents{.title = fmt::format("{}: Railyard study", study.name),
                        .subject = fmt::format("{}, a study of {}", study.name, study.scenario),
                        .provenance = "Data: points.csv and statistics.csv in the same directory."};
  const uint64_t runs = study.points.size() * study.seeds;
  for (size_t i = 0; i < study.figures.size(); ++i) {
    contents.verdict.push_back({.text = RangeSentence(study, i)});
    contents.verdict.push_back({.text = " "});
  }
  if (study.runs_cut_short > 0) {
    contents.verdict.push_back(
        {.text = fmt::format("{} of {} were aborted or stalled: their figures end there.",
                             CountText(study.runs_cut_short), PluralText(runs, "run"))});
  }
  contents.figures = {Number("Points", study.points.size()), Number("Seeds", study.seeds),
                      Number("Runs", runs), Number("Aborted or stalled", study.runs_cut_short),
                      Number("Without a result", runs - study.runs_with_result)};
  Chart lines{.id = "study_lines",
              .title = "Figures across an axis",
              .caption =
                  "Means over the seeds with bands of 95 % confidence. A line for each value of "
                  "one other axis, a panel for each combination of the rest."};
  lines.tables.push_back(FiguresTable(study, lines.id, kChartPointsMax));
  const size_t rows = lines.tables.front().rows.size();
  if (rows > 0 && !study.axes.empty()) {
    if (study.points.size() * study.figures.size() > kChartPointsMax) {
      lines.note = fmt::format("The first {} values are drawn.", CountText(rows));
    }
    Chart heat{.id = "study_heat", .title = "Two axes at once", .caption = "Means over the seeds."};
    heat.note = lines.note;
    heat.tables.push_back(lines.tables.front());
    heat.tables.front().name = heat.id;
    contents.charts.push_back(std::move(lines));
    if (study.axes.size() > 1) contents.charts.push_back(std::move(heat));
  }
  return PageOf(contents);
}

}  // namespace railyard
