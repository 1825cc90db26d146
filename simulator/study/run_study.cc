// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/run_study.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "analysis/writers/csv_writer.h"
#include "analysis/writers/sqlite_writer.h"
#include "simulator/diagnostics/names.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/alarm.h"
#include "simulator/processes/child_process.h"
#include "simulator/processes/interruption.h"
#include "simulator/processes/temporary_directory.h"
#include "simulator/study/process_pool.h"
#include "simulator/study/study_tables.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

namespace {

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// At the value's place in the study, or at the place of what made it.
void AddFindingOfValue(const StudyAxis& axis, const std::string& value, const std::string& what,
                       Diagnostics& diagnostics) {
  const auto number =
      static_cast<size_t>(std::ranges::find(axis.values, value) - axis.values.begin());
  if (axis.source == AxisSource::kValues && number < axis.values.size()) {
    diagnostics.Error(axis.where[number], fmt::format("{}.values[{}]", axis.path, number), what);
    return;
  }
  diagnostics.Error(axis.where.front(), axis.path,
                    fmt::format("with the value {}: {}", Quote(value), what));
}

// A line that `validate` prints about a --set, as a finding at the axis's value that it comes from;
// any other line as one of the study's point.
void AddFinding(const Study& study, const StudyRun& run, const std::string& line,
                Diagnostics& diagnostics) {
  constexpr std::string_view kError = "error: ";
  const size_t error = line.find(kError);
  if (error == std::string::npos) return;
  const std::string what = line.substr(error + kError.size());
  for (size_t i = 0; i < study.axes.size(); ++i) {
    const StudyAxis& axis = study.axes[i];
    for (const std::string& field : axis.fields) {
      const std::string place = SetLocation(field + "=" + run.values[i] + axis.unit).file + ": ";
      if (!line.starts_with(place)) continue;
      AddFindingOfValue(axis, run.values[i], what, diagnostics);
      return;
    }
  }
  diagnostics.Error({.file = line.substr(0, line.rfind(": ", error))}, "", what);
}

// At most `count` of them, evenly spaced.
std::vector<size_t> Thinned(const std::vector<size_t>& points, size_t count) {
  if (points.size() <= count) return points;
  std::vector<size_t> thinned;
  for (size_t i = 0; i < count; ++i) thinned.push_back(points[i * points.size() / count]);
  return thinned;
}

// Adds the points at which an axis's value is most likely to be one that the scenario does not
// take: the first of each value that is written down, else the least and the greatest number.
void AddTelling(const Study& study, size_t axis, std::set<size_t>& points) {
  const AxisSource source = study.axes[axis].source;
  if (source == AxisSource::kValues || source == AxisSource::kChoice ||
      source == AxisSource::kScenario || source == AxisSource::kPointName) {
    std::set<std::string_view> seen;
    for (size_t i = 0; i < study.points.size() && seen.size() < kPointsCheckedMax; ++i) {
      if (seen.insert(study.points[i][axis]).second) points.insert(i);
    }
    return;
  }
  const auto less = [&](const auto& a, const auto& b) {
    return NumberOf(a[axis]).value_or(0) < NumberOf(b[axis]).value_or(0);
  };
  const auto [least, greatest] = std::ranges::minmax_element(study.points, less);
  points.insert(static_cast<size_t>(least - study.points.begin()));
  points.insert(static_cast<size_t>(greatest - study.points.begin()));
}

}  // namespace

std::vector<size_t> StudyResult::Failed() const {
  std::vector<size_t> failed;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].exit >= 0 && !runs[i].has_result) failed.push_back(i);
  }
  return failed;
}

std::optional<double> StudyResult::ValueOf(size_t run, size_t figure) const {
  return runs[run].exit < 0 ? std::nullopt : runs[run].figures[figure];
}

std::vector<double> StudyResult::ValuesAt(const Study& study, size_t point, size_t figure) const {
  std::vector<double> values;
  for (size_t run = point * study.seeds; run < (point + 1) * study.seeds; ++run) {
    if (const auto value = ValueOf(run, figure)) values.push_back(*value);
  }
  return values;
}

std::vector<std::string> StudyResult::Absent(const Study& study) const {
  std::vector<std::string> absent;
  for (size_t i = 0; i < study.figures.size(); ++i) {
    const bool is_somewhere = std::any_of(runs.begin(), runs.end(), [i](const auto& run) {
      return run.has_result && run.figures[i].has_value();
    });
    if (!is_somewhere) absent.push_back(study.figures[i]);
  }
  return absent;
}

std::vector<size_t> PointsToCheck(const Study& study) {
  std::vector<size_t> all(study.points.size());
  std::iota(all.begin(), all.end(), 0);
  if (all.size() <= kPointsCheckedMax) return all;
  std::set<size_t> chosen = {0, all.size() - 1};
  for (size_t axis = 0; axis < study.axes.size(); ++axis) AddTelling(study, axis, chosen);
  std::vector<size_t> points(chosen.begin(), chosen.end());
  if (points.size() < kPointsCheckedMax) {
    const std::vector<size_t> more = Thinned(all, kPointsCheckedMax - points.size());
    chosen.insert(more.begin(), more.end());
    points.assign(chosen.begin(), chosen.end());
  }
  return Thinned(points, kPointsCheckedMax);
}

void CheckRuns(const Study& study, uint32_t jobs, Diagnostics& diagnostics) {
  std::vector<StudyRun> points;
  for (const size_t point : PointsToCheck(study)) {
    points.push_back({.point = point, .values = study.points[point], .seed = study.first_seed});
  }
  const TemporaryDirectory directory;
  std::vector<std::vector<std::string>> commands;
  std::vector<std::string> logs;
  for (const StudyRun& point : points) {
    commands.push_back({"validate", ScenarioOf(study, point).path});
    for (const std::string& set : SetsOf(study, point)) {
      commands.back().insert(commands.back().end(), {"--set", set});
    }
    logs.push_back(directory.File(fmt::format("{}.log", logs.size())));
  }
  std::vector<int> exits(points.size());
  RunProcesses(commands, logs, jobs, [&](size_t index, int status) { exits[index] = status; });
  std::set<std::string> seen;
  for (size_t i = 0; i < points.size(); ++i) {
    if (exits[i] == 0) continue;
    const int errors_before = diagnostics.error_count();
    bool is_known = false;
    std::istringstream lines(TextOf(logs[i]));
    for (std::string line; std::getline(lines, line);) {
      is_known |= seen.contains(line);
      if (seen.insert(line).second) AddFinding(study, points[i], line, diagnostics);
    }
    if (is_known || diagnostics.error_count() > errors_before) continue;
    diagnostics.Error(ScenarioOf(study, points[i]).where, "scenario",
                      fmt::format("cannot be read with {}: validate ended with status {}",
                                  PointName(study, points[i]), exits[i]));
  }
}

std::vector<std::string> CommandOf(const Study& study, const StudyRun& run,
                                   const std::string& out) {
  std::vector<std::string> command = {
      "run", ScenarioOf(study, run).path, "--quiet", "--no-report", "--out", out};
  if (study.no_baseline) command.emplace_back("--no-baseline");
  for (const std::string& set : SetsOf(study, run)) {
    command.insert(command.end(), {"--set", set});
  }
  return command;
}

StudyResult RunStudy(const Study& study, const StudyDirectory& directory,
                     const StudyExecutor& executor,
                     const std::function<void(const StudyProgress&)>& on_progress) {
  const std::vector<StudyRun> runs = RunsOf(study);
  StudyResult result;
  result.runs.resize(runs.size());
  StudyProgress progress{.runs = runs.size()};
  StudyWork work{.study = study,
                 .runs = runs,
                 .left = {},
                 .directory = directory.path(),
                 .on_ended = [&](size_t run, const StudyRunResult& ended) {
                   result.runs[run] = ended;
                   ++progress.done;
                   progress.failed += ended.has_result ? 0u : 1u;
                   on_progress(progress);
                 }};
  for (size_t i = 0; i < runs.size(); ++i) {
    if (directory.IsDone(i)) {
      result.runs[i] = ReadRunResult(study, RunPath(directory.path(), i));
      ++progress.kept;
    } else {
      work.left.push_back(i);
    }
  }
  try {
    if (!work.left.empty()) executor(work);
  } catch (const Interrupted& interrupted) {
    result.interruption = interrupted.what();
  }
  return result;
}

std::vector<RunCost> MeasureRuns(const Study& study, const std::vector<size_t>& numbers,
                                 int64_t limit_seconds) {
  const std::vector<StudyRun> runs = RunsOf(study);
  std::vector<RunCost> costs;
  for (const size_t number : numbers) {
    const TemporaryDirectory directory;
    ChildProcess process;
    process.Start(CommandOf(study, runs[number], directory.File("out")), directory.File("log"));
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&begin] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    const Alarm alarm(limit_seconds);
    RunCost cost{.run = number};
    const auto exit = process.Wait([&] {
      if (seconds() < static_cast<double>(limit_seconds) || cost.is_cut_off) return;
      cost.is_cut_off = true;
      process.AskToEnd();
    });
    if (!exit) throw Interrupted(TakeInterruption());
    cost.seconds = seconds();
    costs.push_back(cost);
  }
  return costs;
}

void WriteStudy(const Study& study, const StudyResult& result, const std::string& directory) {
  const StudyTables tables(study, result, directory);
  for (const auto& [name, table] : {std::pair("points.csv", tables.RunRows()),
                                    std::pair("statistics.csv", tables.Statistics())}) {
    OutputFile file(directory + "/" + name);
    WriteCsv(table, file);
    file.Close();
  }
  WriteDatabaseAt(directory + "/study.sqlite",
                  {tables.RunRowsWithCost(), tables.Statistics(), tables.Means(),
                   tables.Differences(), tables.Failed()});
}

}  // namespace railyard
