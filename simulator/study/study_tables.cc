// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/study_tables.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "analysis/writers/cells.h"
#include "simulator/files/input_file.h"
#include "simulator/processes/shell_word.h"
#include "simulator/study/sample_statistics.h"

namespace railyard {
namespace {

// The table of failed runs has so much of a run's output.
constexpr std::streamoff kLogBytesMax = 4'096;

std::string EndOfFile(const std::string& path) {
  std::ifstream file = OpenInputFile(path);
  if (!file) return {};
  file.seekg(0, std::ios::end);
  file.seekg(std::max<std::streamoff>(0, file.tellg() - kLogBytesMax));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string ReasonOf(const StudyRunResult& run) {
  if (run.status == kTimeLimit) return "ended at its time limit";
  if (run.status == kLost) return "its task on the cluster ended without it";
  if (run.exit > 128) return fmt::format("ended by signal {}", run.exit - 128);
  return fmt::format("exit status {}", run.exit);
}

double MeanOfPicks(const std::vector<double>& values, std::span<const size_t> picks) {
  double sum = 0;
  for (const size_t pick : picks) sum += values[pick];
  return sum / static_cast<double>(picks.size());
}

std::optional<Interval> MeanInterval(const std::vector<double>& values) {
  return BootstrapInterval(values.size(), [&values](std::span<const size_t> picks) {
    return MeanOfPicks(values, picks);
  });
}

// Axes of lists, whose first value others are compared with.
bool HasFirstValue(const StudyAxis& axis) {
  return axis.source == AxisSource::kValues || axis.source == AxisSource::kRange ||
         axis.source == AxisSource::kLogRange || axis.source == AxisSource::kScenario;
}

}  // namespace

StudyTables::StudyTables(const Study& study, const StudyResult& result,
                         const std::string& directory)
    : study_(study), result_(result), runs_(RunsOf(study)) {
  for (size_t run = 0; run < runs_.size(); ++run) {
    if (result.runs[run].exit >= 0) ended_.push_back(run);
  }
  for (size_t axis = 0; axis < study.axes.size(); ++axis) {
    is_number_.push_back(std::ranges::all_of(study.points, [axis](const auto& point) {
      return FiniteNumberOf(point[axis]).has_value();
    }));
  }
  for (uint32_t seed = 0; seed < study.seeds; ++seed) {
    seeds_.push_back(fmt::format("{}", study.first_seed + seed));
  }
  AddFailures(directory);
  AddMeans();
  AddDifferences();
}

void StudyTables::AddFailures(const std::string& directory) {
  for (const size_t run : result_.Failed()) {
    const std::string path = RunPath(directory, run);
    Failure failure{.run = run,
                    .reason = ReasonOf(result_.runs[run]),
                    .log_file = path + ".log",
                    .log = EndOfFile(path + ".log"),
                    .command = "railyard"};
    for (const std::string& word : CommandOf(study_, runs_[run], path)) {
      failure.command += " " + ShellWord(word);
    }
    failures_.push_back(std::move(failure));
  }
}

void StudyTables::AddMeans() {
  for (size_t point = 0; point < study_.points.size(); ++point) {
    for (size_t figure = 0; figure < study_.figures.size(); ++figure) {
      const std::vector<double> values = result_.ValuesAt(study_, point, figure);
      if (values.empty()) continue;
      means_.push_back({.point = point,
                        .figure = figure,
                        .runs = values.size(),
                        .mean = MeanOf(values).value,
                        .interval = MeanInterval(values)});
    }
  }
}

void StudyTables::AddDifferences() {
  size_t dimensions = 0;
  for (const StudyAxis& axis : study_.axes) {
    if (axis.dimension) dimensions = std::max(dimensions, *axis.dimension + 1);
  }
  names_.resize(dimensions);
  for (size_t dimension = 0; dimension < dimensions; ++dimension) {
    std::vector<size_t> compared;
    for (size_t axis = 0; axis < study_.axes.size(); ++axis) {
      if (study_.axes[axis].dimension != dimension) continue;
      names_[dimension] += (names_[dimension].empty() ? "" : ",") + study_.axes[axis].name;
      if (HasFirstValue(study_.axes[axis])) compared.push_back(axis);
    }
    if (compared.empty()) continue;
    // Returns the values of a point on the other axes, as one text.
    const auto rest_of = [&](const std::vector<std::string>& point) {
      std::string rest;
      for (size_t axis = 0; axis < point.size(); ++axis) {
        const StudyAxis& other = study_.axes[axis];
        if (other.dimension == dimension || other.expression) continue;
        rest += fmt::format("{}:{}", point[axis].size(), point[axis]);
      }
      return rest;
    };
    std::unordered_map<std::string, size_t> references;
    for (size_t point = 0; point < study_.points.size(); ++point) {
      const auto& values = study_.points[point];
      const bool is_first = std::ranges::all_of(
          compared, [&](size_t axis) { return values[axis] == study_.axes[axis].values.front(); });
      if (is_first) references.emplace(rest_of(values), point);
    }
    for (size_t point = 0; point < study_.points.size(); ++point) {
      const auto reference = references.find(rest_of(study_.points[point]));
      if (reference == references.end() || reference->second == point) continue;
      AddDifference(point, reference->second, dimension);
    }
  }
}

void StudyTables::AddDifference(size_t point, size_t reference, size_t dimension) {
  for (size_t figure = 0; figure < study_.figures.size(); ++figure) {
    std::vector<double> differences;
    for (size_t seed = 0; seed < study_.seeds; ++seed) {
      const auto value = result_.ValueOf(point * study_.seeds + seed, figure);
      const auto before = result_.ValueOf(reference * study_.seeds + seed, figure);
      if (value && before) differences.push_back(*value - *before);
    }
    if (differences.empty()) continue;
    differences_.push_back({.point = point,
                            .figure = figure,
                            .runs = differences.size(),
                            .mean = MeanOf(differences).value,
                            .interval = MeanInterval(differences),
                            .dimension = dimension,
                            .reference = reference});
  }
}

std::vector<ResultColumn> StudyTables::AxisColumns(ColumnType type) const {
  std::vector<ResultColumn> columns;
  for (const StudyAxis& axis : study_.axes) columns.push_back({axis.name.c_str(), type});
  return columns;
}

void StudyTables::AppendAxes(size_t point, bool as_numbers, std::vector<Cell>& cells) const {
  for (size_t axis = 0; axis < study_.axes.size(); ++axis) {
    const std::string& value = study_.points[point][axis];
    if (as_numbers && is_number_[axis]) {
      cells.emplace_back(*FiniteNumberOf(value));
    } else {
      cells.emplace_back(std::string_view(value));
    }
  }
}

Cell StudyTables::SeedCell(size_t run) const {
  if (runs_[run].seed > std::numeric_limits<int64_t>::max()) {
    return std::string_view(seeds_[run % study_.seeds]);
  }
  return IntegerCell(runs_[run].seed);
}

ResultTable StudyTables::RunRows() const {
  std::vector<ResultColumn> columns = {{"run", ColumnType::kInteger},
                                       {"point", ColumnType::kInteger}};
  std::ranges::copy(AxisColumns(ColumnType::kText), std::back_inserter(columns));
  columns.insert(
      columns.end(),
      {{"seed", ColumnType::kAny}, {"exit", ColumnType::kInteger}, {"status", ColumnType::kText}});
  for (const std::string& figure : study_.figures) {
    columns.push_back({figure.c_str(), ColumnType::kReal});
  }
  return {.name = "points",
          .columns = std::move(columns),
          .row_count = ended_.size(),
          .append_row = [this](size_t row, std::vector<Cell>& cells) {
            const size_t run = ended_[row];
            const StudyRunResult& ended = result_.runs[run];
            cells.push_back(IntegerCell(run));
            cells.push_back(IntegerCell(runs_[run].point));
            AppendAxes(runs_[run].point, false, cells);
            cells.push_back(SeedCell(run));
            cells.push_back(int64_t{ended.exit});
            cells.push_back(std::string_view(ended.status));
            for (const auto& figure : ended.figures) cells.push_back(RealCell(figure));
          }};
}

ResultTable StudyTables::RunRowsWithCost() const {
  ResultTable table = RunRows();
  for (size_t axis = 0; axis < study_.axes.size(); ++axis) {
    if (is_number_[axis]) table.columns[2 + axis].type = ColumnType::kReal;
  }
  table.columns.push_back({"seconds", ColumnType::kReal});
  table.columns.push_back({"peak_memory_bytes", ColumnType::kInteger});
  table.append_row = [this, append = std::move(table.append_row)](size_t row,
                                                                  std::vector<Cell>& cells) {
    append(row, cells);
    const size_t run = ended_[row];
    std::vector<Cell> axes;
    AppendAxes(runs_[run].point, true, axes);
    std::ranges::copy(axes, cells.begin() + 2);
    const StudyRunResult& ended = result_.runs[run];
    cells.push_back(RealCell(ended.seconds));
    cells.push_back(ended.peak_memory_bytes ? Cell(*ended.peak_memory_bytes) : Cell());
  };
  return table;
}

ResultTable StudyTables::Statistics() const {
  std::vector<ResultColumn> columns = {{"point", ColumnType::kInteger}};
  std::ranges::copy(AxisColumns(ColumnType::kText), std::back_inserter(columns));
  columns.insert(columns.end(), {{"figure", ColumnType::kText},
                                 {"runs", ColumnType::kInteger},
                                 {"missing", ColumnType::kInteger}});
  for (const char* const name : kStatisticColumns) {
    columns.push_back({name, ColumnType::kReal});
  }
  return {.name = "statistics",
          .columns = std::move(columns),
          .row_count = study_.points.size() * study_.figures.size(),
          .append_row = [this](size_t row, std::vector<Cell>& cells) {
            const size_t point = row / study_.figures.size();
            const size_t figure = row % study_.figures.size();
            const std::vector<double> values = result_.ValuesAt(study_, point, figure);
            cells.push_back(IntegerCell(point));
            AppendAxes(point, false, cells);
            cells.push_back(std::string_view(study_.figures[figure]));
            cells.push_back(IntegerCell(values.size()));
            cells.push_back(IntegerCell(study_.seeds - values.size()));
            std::vector<Estimate> estimates;
            if (!values.empty()) {
              estimates = {MeanOf(values), QuantileOf(values, 0.5), QuantileOf(values, 0.9),
                           QuantileOf(values, 0.99)};
            }
            for (const Estimate& estimate : estimates) {
              cells.insert(cells.end(),
                           {Cell(estimate.value), RealCell(estimate.low), RealCell(estimate.high)});
            }
            if (estimates.empty()) cells.resize(cells.size() + 12);
          }};
}

ResultTable StudyTables::Failed() const {
  return {.name = "failed",
          .columns = {{"run", ColumnType::kInteger},
                      {"point", ColumnType::kInteger},
                      {"seed", ColumnType::kAny},
                      {"exit", ColumnType::kInteger},
                      {"reason", ColumnType::kText},
                      {"command", ColumnType::kText},
                      {"log_file", ColumnType::kText},
                      {"log", ColumnType::kText}},
          .row_count = failures_.size(),
          .append_row = [this](size_t row, std::vector<Cell>& cells) {
            const Failure& failure = failures_[row];
            cells.insert(cells.end(),
                         {IntegerCell(failure.run), IntegerCell(runs_[failure.run].point),
                          SeedCell(failure.run), Cell(int64_t{result_.runs[failure.run].exit}),
                          std::string_view(failure.reason), std::string_view(failure.command),
                          std::string_view(failure.log_file), std::string_view(failure.log)});
          }};
}

ResultTable StudyTables::Means() const {
  return {.name = "means",
          .columns = {{"point", ColumnType::kInteger},
                      {"figure", ColumnType::kText},
                      {"runs", ColumnType::kInteger},
                      {"mean", ColumnType::kReal},
                      {"low", ColumnType::kReal},
                      {"high", ColumnType::kReal}},
          .row_count = means_.size(),
          .append_row = [this](size_t row, std::vector<Cell>& cells) {
            const Mean& mean = means_[row];
            cells.insert(cells.end(),
                         {IntegerCell(mean.point), std::string_view(study_.figures[mean.figure]),
                          IntegerCell(mean.runs), Cell(mean.mean),
                          mean.interval ? Cell(mean.interval->low) : Cell(),
                          mean.interval ? Cell(mean.interval->high) : Cell()});
          }};
}

ResultTable StudyTables::Differences() const {
  return {.name = "differences",
          .columns = {{"point", ColumnType::kInteger},
                      {"axis", ColumnType::kText},
                      {"reference_point", ColumnType::kInteger},
                      {"figure", ColumnType::kText},
                      {"pairs", ColumnType::kInteger},
                      {"difference", ColumnType::kReal},
                      {"low", ColumnType::kReal},
                      {"high", ColumnType::kReal}},
          .row_count = differences_.size(),
          .append_row = [this](size_t row, std::vector<Cell>& cells) {
            const Mean& mean = differences_[row];
            cells.insert(cells.end(),
                         {IntegerCell(mean.point), std::string_view(names_[mean.dimension]),
                          IntegerCell(mean.reference),
                          std::string_view(study_.figures[mean.figure]), IntegerCell(mean.runs),
                          Cell(mean.mean), mean.interval ? Cell(mean.interval->low) : Cell(),
                          mean.interval ? Cell(mean.interval->high) : Cell()});
          }};
}

}  // namespace railyard
