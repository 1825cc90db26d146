// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/run_study.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <rapidjson/document.h>

#include "simulator/study/process_pool.h"
#include "simulator/study/sample_statistics.h"

namespace railyard {
namespace {

std::string RunPath(const std::string& directory, size_t run) {
  return fmt::format("{}/runs/{:06}", directory, run);
}

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

// RFC 4180.
std::string Field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted;
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return fmt::format("\"{}\"", quoted);
}

std::string Number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    throw EnvironmentError(fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
  }
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
    commands.push_back(ArgumentsOf(study, runs[i]));
    commands.back().push_back("--out");
    commands.back().push_back(RunPath(directory, i));
    logs.push_back(RunPath(directory, i) + ".log");
  }
  StudyResult result;
  result.runs.resize(runs.size());
  RunProcesses(commands, logs, jobs, [&](size_t index, int status) {
    result.runs[index] = ReadRun(study, RunPath(directory, index), status);
    const bool is_failed = result.runs[index].status.empty();
    if (is_failed && (!result.failed || index < *result.failed)) result.failed = index;
    return !is_failed;
  });
  return result;
}

void WriteStudy(const Study& study, const StudyResult& result, const std::string& directory) {
  const std::vector<StudyRun> runs = RunsOf(study);
  WriteFile(directory + "/points.csv", PointsCsv(study, result, runs));
  WriteFile(directory + "/statistics.csv", StatisticsCsv(study, result, runs));
}

}  // namespace railyard
