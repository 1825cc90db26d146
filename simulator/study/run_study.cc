// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/run_study.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "analysis/writers/csv_writer.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/alarm.h"
#include "simulator/processes/child_process.h"
#include "simulator/processes/interruption.h"
#include "simulator/processes/temporary_directory.h"
#include "simulator/study/process_pool.h"
#include "simulator/study/sample_statistics.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

namespace {

std::string Field(const std::string& text) {
  std::string field;
  AppendCsvField(text, field);
  return field;
}

std::string CsvNumber(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
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
    const std::vector<std::string>& values = study.axes[i].values;
    const auto number = static_cast<size_t>(std::find(values.begin(), values.end(), run.values[i]) -
                                            values.begin());
    for (const std::string& field : study.axes[i].fields) {
      const std::string place = SetLocation(field + "=" + run.values[i]).file + ": ";
      if (!line.starts_with(place)) continue;
      diagnostics.Error(study.axes[i].where[number], fmt::format("axes[{}].values[{}]", i, number),
                        what);
      return;
    }
  }
  diagnostics.Error({.file = line.substr(0, line.rfind(": ", error))}, "", what);
}

std::string AxisNames(const Study& study) {
  std::string names;
  for (const StudyAxis& axis : study.axes) names += fmt::format(",{}", Field(axis.name));
  return names;
}

std::string ValuesOf(const StudyRun& run) {
  std::string values;
  for (const std::string& value : run.values) values += fmt::format(",{}", Field(value));
  return values;
}

std::string PointsCsv(const Study& study, const StudyResult& result,
                      const std::vector<StudyRun>& runs) {
  std::string text = fmt::format("run,point{},seed,exit,status", AxisNames(study));
  for (const std::string& figure : study.figures) text += fmt::format(",{}", Field(figure));
  text += "\n";
  for (size_t i = 0; i < runs.size(); ++i) {
    const StudyRunResult& run = result.runs[i];
    if (run.exit < 0) continue;
    text += fmt::format("{},{}{},{},{},{}", i, runs[i].point, ValuesOf(runs[i]), runs[i].seed,
                        run.exit, run.status);
    for (const auto& figure : run.figures) text += fmt::format(",{}", CsvNumber(figure));
    text += "\n";
  }
  return text;
}

std::string StatisticsCsv(const Study& study, const StudyResult& result,
                          const std::vector<StudyRun>& runs) {
  std::string text =
      fmt::format("point{},figure,runs,missing,mean,mean_low,mean_high", AxisNames(study));
  constexpr double kQuantiles[] = {0.5, 0.9, 0.99};
  for (const char* name : {"p50", "p90", "p99"}) text += fmt::format(",{0},{0}_low,{0}_high", name);
  text += "\n";
  for (size_t first = 0; first < runs.size(); first += study.seeds) {
    for (size_t figure = 0; figure < study.figures.size(); ++figure) {
      std::vector<double> values;
      for (size_t i = first; i < first + study.seeds; ++i) {
        const StudyRunResult& run = result.runs[i];
        if (run.exit >= 0 && run.figures[figure]) values.push_back(*run.figures[figure]);
      }
      text += fmt::format("{}{},{},{},{}", runs[first].point, ValuesOf(runs[first]),
                          Field(study.figures[figure]), values.size(), study.seeds - values.size());
      const auto add = [&text](const Estimate& estimate) {
        text += fmt::format(",{},{},{}", estimate.value, CsvNumber(estimate.low),
                            CsvNumber(estimate.high));
      };
      if (values.empty()) {
        text += std::string(12, ',');
      } else {
        add(MeanOf(values));
        for (const double q : kQuantiles) add(QuantileOf(values, q));
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace

std::vector<size_t> StudyResult::Failed() const {
  std::vector<size_t> failed;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].exit >= 0 && runs[i].status.empty()) failed.push_back(i);
  }
  return failed;
}

std::vector<std::string> StudyResult::Absent(const Study& study) const {
  std::vector<std::string> absent;
  for (size_t i = 0; i < study.figures.size(); ++i) {
    const bool is_somewhere = std::any_of(runs.begin(), runs.end(), [i](const auto& run) {
      return !run.status.empty() && run.figures[i].has_value();
    });
    if (!is_somewhere) absent.push_back(study.figures[i]);
  }
  return absent;
}

void CheckRuns(const Study& study, uint32_t jobs, Diagnostics& diagnostics) {
  std::vector<StudyRun> points = RunsOf(study);
  std::erase_if(points, [&](const StudyRun& run) { return run.seed != study.first_seed; });
  const TemporaryDirectory directory;
  std::vector<std::vector<std::string>> commands;
  std::vector<std::string> logs;
  for (const StudyRun& point : points) {
    commands.push_back({"validate", study.scenario});
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
    diagnostics.Error(study.where, "scenario",
                      fmt::format("cannot be read with {}: validate ended with status {}",
                                  PointName(study, points[i]), exits[i]));
  }
}

namespace {

// `railyard run` of the study's scenario, with what the run sets.
std::vector<std::string> CommandOf(const Study& study, const StudyRun& run,
                                   const std::string& out) {
  std::vector<std::string> command = {"run",         study.scenario, "--quiet",
                                      "--no-report", "--out",        out};
  if (study.no_baseline) command.emplace_back("--no-baseline");
  for (const std::string& set : SetsOf(study, run)) {
    command.insert(command.end(), {"--set", set});
  }
  return command;
}

}  // namespace

StudyResult RunStudy(const Study& study, const StudyDirectory& directory, uint32_t jobs,
                     const std::function<void(const StudyProgress&)>& on_progress) {
  const std::vector<StudyRun> runs = RunsOf(study);
  StudyResult result;
  result.runs.resize(runs.size());
  StudyProgress progress{.runs = runs.size()};
  std::vector<size_t> left;
  std::vector<std::vector<std::string>> commands;
  std::vector<std::string> logs;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string path = RunPath(directory.path(), i);
    if (directory.IsDone(i)) {
      result.runs[i] = ReadRunResult(study, path);
      ++progress.kept;
      continue;
    }
    left.push_back(i);
    commands.push_back(CommandOf(study, runs[i], path));
    logs.push_back(path + ".log");
  }
  try {
    RunProcesses(commands, logs, jobs, [&](size_t index, int status) {
      const size_t run = left[index];
      result.runs[run] = ReadRunResult(study, RunPath(directory.path(), run), status);
      ++progress.done;
      progress.failed += result.runs[run].status.empty() ? 1u : 0u;
      on_progress(progress);
    });
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
  const std::vector<StudyRun> runs = RunsOf(study);
  WriteOutput(directory + "/points.csv", PointsCsv(study, result, runs));
  WriteOutput(directory + "/statistics.csv", StatisticsCsv(study, result, runs));
}

}  // namespace railyard
