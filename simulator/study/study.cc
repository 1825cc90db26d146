// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/study.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "analysis/writers/summary_figures.h"
#include "simulator/diagnostics/names.h"
#include "simulator/study/study.pb.h"
#include "simulator/study/study_loading.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {
namespace {

// The bytes of the longest settings of a run.
size_t LongestSets(const Study& study) {
  size_t bytes = 0;
  for (const std::string& set : study.sets) bytes += set.size();
  for (size_t i = 0; i < study.axes.size(); ++i) {
    const StudyAxis& axis = study.axes[i];
    size_t longest = 0;
    for (const auto& point : study.points) longest = std::max(longest, point[i].size());
    for (const std::string& field : axis.fields) {
      bytes += field.size() + 1 + longest + axis.unit.size();
    }
  }
  return bytes;
}

// "faults.0.begins" as "faults.N.begins".
std::string WithoutNumbers(const std::string& path) {
  std::string text;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '.');) {
    const bool is_number =
        !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    text += (text.empty() ? "" : ".") + (is_number ? "N" : part);
  }
  return text;
}

void CheckFigures(const ProtoCursor& cursor, const Study& study, Diagnostics& diagnostics) {
  const std::vector<std::string> known = SummaryFigures();
  std::set<std::string> seen;
  for (size_t i = 0; i < study.figures.size(); ++i) {
    if (!seen.insert(study.figures[i]).second) {
      cursor.Error(diagnostics, "figures",
                   fmt::format("{} is there already (expected each once)", Quote(study.figures[i])),
                   static_cast<int>(i));
    }
    const std::string figure = WithoutNumbers(study.figures[i]);
    if (std::binary_search(known.begin(), known.end(), figure)) continue;
    const std::string closest = ClosestName(figure, known);
    cursor.Error(diagnostics, "figures",
                 fmt::format("{} is no number of a summary.json ({}; docs/results.md has all)",
                             Quote(study.figures[i]),
                             closest.empty() ? "expected e.g. \"collectives.stretch.max\""
                                             : fmt::format("did you mean {}?", Quote(closest))),
                 static_cast<int>(i));
  }
}

StudyScenario LoadScenario(const ProtoCursor& cursor, const char* field, int index,
                           Diagnostics& diagnostics) {
  StudyScenario scenario{
      .name = {}, .path = cursor.FilePath(field, index), .where = cursor.Where(field, index)};
  scenario.name = std::filesystem::path(scenario.path).stem().string();
  if (const std::string why = WhyNotAFile(scenario.path); !why.empty()) {
    cursor.Error(diagnostics, field,
                 fmt::format("{}: {}{}", Quote(scenario.path, kQuotedPathBytesMax), why,
                             why.ends_with(')') ? "" : " (expected a scenario)"),
                 index);
  }
  return scenario;
}

void LoadScenarios(const ProtoCursor& cursor, Study& study, Diagnostics& diagnostics) {
  if (cursor.Has("scenario")) {
    study.scenarios.push_back(LoadScenario(cursor, "scenario", -1, diagnostics));
    if (cursor.Size("scenarios") > 0) {
      cursor.Error(diagnostics, "scenarios", "there is a scenario already (expected one of both)",
                   0);
    }
    return;
  }
  if (cursor.Size("scenarios") == 0) {
    cursor.Missing(diagnostics, "scenario", R"(a file, e.g. "flap.textproto")");
  }
  std::set<std::string> names;
  for (int i = 0; i < cursor.Size("scenarios"); ++i) {
    study.scenarios.push_back(LoadScenario(cursor, "scenarios", i, diagnostics));
    if (names.insert(study.scenarios.back().name).second) continue;
    cursor.Error(diagnostics, "scenarios",
                 fmt::format("another scenario is called {} as well (expected another file name)",
                             Quote(study.scenarios.back().name)),
                 i);
  }
}

}  // namespace

bool StudyAxis::IsDrawn() const {
  return source == AxisSource::kUniform || source == AxisSource::kLogUniform ||
         source == AxisSource::kChoice;
}

std::string Study::ScenarioPaths() const {
  std::string paths;
  for (const StudyScenario& scenario : scenarios) {
    paths += (paths.empty() ? "" : ", ") + scenario.path;
  }
  return paths;
}

std::optional<Study> LoadStudy(const std::string& path, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  const auto file = LoadTextProto(path, protos::Study(), {}, diagnostics);
  if (!file) return std::nullopt;
  const ProtoCursor cursor(*file);
  const auto& message = cursor.As<protos::Study>();
  Study study;
  study.name = cursor.Text("name", std::filesystem::path(path).stem().string());
  LoadScenarios(cursor, study, diagnostics);
  study.sets.assign(message.sets().begin(), message.sets().end());
  for (int i = 0; i < message.sets_size(); ++i) study.set_places.push_back(cursor.Where("sets", i));
  study.seeds = static_cast<uint32_t>(cursor.Number(diagnostics, "seeds", 1, 1, 100'000));
  study.first_seed = cursor.Number(diagnostics, "first_seed", 1, 0, UINT64_MAX - 100'000);
  study.no_baseline = cursor.Flag("no_baseline", false);
  study.figures.assign(message.figures().begin(), message.figures().end());
  if (study.figures.empty()) {
    cursor.Missing(diagnostics, "figures",
                   R"(paths in summary.json, e.g. "collectives.stretch.max")");
  }
  CheckFigures(cursor, study, diagnostics);
  LoadAxes(cursor, study, diagnostics);
  if (diagnostics.error_count() > errors_before || !file->mistakes.empty()) return std::nullopt;
  if (study.axes.size() + study.figures.size() > kStudyColumnsMax) {
    cursor.Error(diagnostics, "figures",
                 fmt::format("with the axes these are more than {} columns (expected fewer)",
                             kStudyColumnsMax),
                 0);
    return std::nullopt;
  }
  MakePoints(cursor, study, diagnostics);
  if (const size_t bytes = LongestSets(study); bytes > kStudySetsBytesMax) {
    cursor.Error(diagnostics, cursor.Size("axes") == 0 ? "sets" : "axes",
                 fmt::format("a run sets fields to {} B of text (expected at most {} B)", bytes,
                             kStudySetsBytesMax),
                 0);
  }
  if (diagnostics.error_count() > errors_before) return std::nullopt;
  return study;
}

std::vector<StudyRun> RunsOf(const Study& study) {
  std::vector<StudyRun> runs;
  runs.reserve(study.run_count());
  for (size_t point = 0; point < study.points.size(); ++point) {
    for (uint32_t seed = 0; seed < study.seeds; ++seed) {
      runs.push_back(
          {.point = point, .values = study.points[point], .seed = study.first_seed + seed});
    }
  }
  return runs;
}

const StudyScenario& ScenarioOf(const Study& study, const StudyRun& run) {
  for (size_t i = 0; i < study.axes.size(); ++i) {
    if (study.axes[i].source != AxisSource::kScenario) continue;
    return *std::ranges::find(study.scenarios, run.values[i], &StudyScenario::name);
  }
  return study.scenarios.front();
}

std::vector<std::string> SetsOf(const Study& study, const StudyRun& run) {
  std::vector<std::string> sets = {fmt::format("seed={}", run.seed)};
  sets.insert(sets.end(), study.sets.begin(), study.sets.end());
  for (size_t i = 0; i < study.axes.size(); ++i) {
    for (const std::string& field : study.axes[i].fields) {
      sets.push_back(field + "=" + run.values[i] + study.axes[i].unit);
    }
  }
  return sets;
}

std::string PointName(const Study& study, const StudyRun& run) {
  std::string name;
  for (size_t i = 0; i < study.axes.size(); ++i) {
    name += fmt::format("{}{}={}", i == 0 ? "" : ", ", study.axes[i].name, run.values[i]);
  }
  return name;
}

}  // namespace railyard
