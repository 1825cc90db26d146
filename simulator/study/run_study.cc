// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/run_study.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "analysis/writers/csv_writer.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/interruption.h"
#include "simulator/processes/temporary_directory.h"
#include "simulator/study/process_pool.h"
#include "simulator/study/sample_statistics.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

namespace {

// By path: names of members and numbers of elements, with dots between.
const rapidjson::Value* Find(const rapidjson::Value& root, const std::string& path) {
  const rapidjson::Value* at = &root;
  std::istringstream parts(path);
  std::string part;
  while (std::getline(parts, part, '.')) {
    if (at->IsObject() && at->HasMember(part.c_str())) {
      at = &(*at)[part.c_str()];
    } else if (at->IsArray() && !part.empty() &&
               part.find_first_not_of("0123456789") == std::string::npos && part.size() < 9 &&
               std::stoul(part) < at->Size()) {
      at = &(*at)[static_cast<rapidjson::SizeType>(std::stoul(part))];
    } else {
      return nullptr;
    }
  }
  return at;
}

StudyRunResult ReadRun(const Study& study, const std::string& path, int exit) {
  StudyRunResult run{.exit = exit, .status = {}, .figures = {}};
  run.figures.resize(study.figures.size());
  std::ifstream file(path + "/summary.json");
  std::stringstream text;
  text << file.rdbuf();
  rapidjson::Document summary;
  summary.Parse(text.str().c_str());
  if (summary.HasParseError() || !summary.IsObject()) return run;
  if (const auto* status = Find(summary, "status")) run.status = status->GetString();
  for (size_t i = 0; i < study.figures.size(); ++i) {
    const rapidjson::Value* figure = Find(summary, study.figures[i]);
    if (figure != nullptr && figure->IsNumber()) run.figures[i] = figure->GetDouble();
  }
  return run;
}

std::string Field(const std::string& text) {
  std::string field;
  AppendCsvField(text, field);
  return field;
}

std::string Number(const std::optional<double>& value) {
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
    for (const auto& figure : run.figures) text += fmt::format(",{}", Number(figure));
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
        text +=
            fmt::format(",{},{},{}", estimate.value, Number(estimate.low), Number(estimate.high));
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

std::string RunPath(const std::string& directory, size_t run) {
  return fmt::format("{}/runs/{:06}", directory, run);
}

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

StudyResult RunStudy(const Study& study, const std::string& directory, uint32_t jobs) {
  const std::vector<StudyRun> runs = RunsOf(study);
  std::error_code error;
  std::filesystem::create_directories(directory + "/runs", error);
  if (error) {
    throw EnvironmentError(fmt::format("{} cannot be made: {}", directory, error.message()));
  }
  std::vector<std::vector<std::string>> commands;
  std::vector<std::string> logs;
  for (size_t i = 0; i < runs.size(); ++i) {
    commands.push_back({"run", study.scenario, "--quiet", "--out", RunPath(directory, i)});
    if (study.no_baseline) commands.back().emplace_back("--no-baseline");
    for (const std::string& set : SetsOf(study, runs[i])) {
      commands.back().insert(commands.back().end(), {"--set", set});
    }
    logs.push_back(RunPath(directory, i) + ".log");
  }
  StudyResult result;
  result.runs.resize(runs.size());
  try {
    RunProcesses(commands, logs, jobs, [&](size_t index, int status) {
      result.runs[index] = ReadRun(study, RunPath(directory, index), status);
    });
  } catch (const Interrupted& interrupted) {
    result.interruption = interrupted.what();
  }
  return result;
}

void WriteStudy(const Study& study, const StudyResult& result, const std::string& directory) {
  const std::vector<StudyRun> runs = RunsOf(study);
  WriteOutput(directory + "/points.csv", PointsCsv(study, result, runs));
  WriteOutput(directory + "/statistics.csv", StatisticsCsv(study, result, runs));
}

}  // namespace railyard
