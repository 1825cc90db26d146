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
#include "simulator/text_proto/text_proto.h"

namespace railyard {
namespace {

void LoadAxes(const ProtoCursor& cursor, Study& study, Diagnostics& diagnostics) {
  std::set<std::string> names = {"run", "point", "seed", "status"};
  for (int i = 0; i < cursor.Size("axes"); ++i) {
    const ProtoCursor axis = cursor.Child("axes", i);
    const auto& message = static_cast<const protos::StudyAxis&>(axis.message());
    for (const char* field : {"fields", "values"}) {
      if (axis.Size(field) == 0) axis.Missing(diagnostics, field, "one or more");
    }
    if (axis.Size("fields") == 0) continue;
    StudyAxis loaded{.name = axis.Text("name", message.fields(0)),
                     .fields = {message.fields().begin(), message.fields().end()},
                     .values = {message.values().begin(), message.values().end()},
                     .where = {}};
    for (int j = 0; j < axis.Size("values"); ++j) loaded.where.push_back(axis.Where("values", j));
    if (!names.insert(loaded.name).second) {
      axis.Error(diagnostics, "name",
                 fmt::format("another column is called {} as well (expected another name)",
                             Quote(loaded.name)));
    }
    study.axes.push_back(std::move(loaded));
  }
}

// The bytes of the longest settings of a run.
size_t LongestSets(const Study& study) {
  size_t bytes = 0;
  for (const std::string& set : study.sets) bytes += set.size();
  for (const StudyAxis& axis : study.axes) {
    size_t longest = 0;
    for (const std::string& value : axis.values) longest = std::max(longest, value.size());
    for (const std::string& field : axis.fields) bytes += field.size() + 1 + longest;
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
  for (size_t i = 0; i < study.figures.size(); ++i) {
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

}  // namespace

std::optional<Study> LoadStudy(const std::string& path, Diagnostics& diagnostics) {
  const int errors_before = diagnostics.error_count();
  const auto file = LoadTextProto(path, protos::Study(), {}, diagnostics);
  if (!file) return std::nullopt;
  const ProtoCursor cursor(*file);
  const auto& message = static_cast<const protos::Study&>(cursor.message());
  Study study;
  study.name = cursor.Text("name", std::filesystem::path(path).stem().string());
  if (!cursor.Has("scenario")) {
    cursor.Missing(diagnostics, "scenario", R"(a file, e.g. "flap.textproto")");
  } else {
    study.scenario = cursor.FilePath("scenario");
    study.where = cursor.Where("scenario");
    if (const std::string why = WhyNotAFile(study.scenario); !why.empty()) {
      cursor.Error(diagnostics, "scenario",
                   fmt::format("{}: {} (expected a scenario)",
                               Quote(study.scenario, kQuotedPathBytesMax), why));
    }
  }
  study.sets.assign(message.sets().begin(), message.sets().end());
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
  uint64_t runs = study.seeds;
  for (const StudyAxis& axis : study.axes) {
    runs = runs > kStudyRunsMax ? runs : runs * axis.values.size();
  }
  if (runs > kStudyRunsMax) {
    cursor.Error(
        diagnostics, "axes",
        fmt::format("with all seeds these are more than {} runs (expected fewer)", kStudyRunsMax));
  }
  if (const size_t bytes = LongestSets(study); bytes > kStudySetsBytesMax) {
    cursor.Error(diagnostics, study.axes.empty() ? "sets" : "axes",
                 fmt::format("a run sets fields to {} B of text (expected at most {} B)", bytes,
                             kStudySetsBytesMax),
                 0);
  }
  if (diagnostics.error_count() > errors_before || !file->mistakes.empty()) return std::nullopt;
  return study;
}

std::vector<StudyRun> RunsOf(const Study& study) {
  std::vector<StudyRun> runs;
  uint64_t points = 1;
  for (const StudyAxis& axis : study.axes) points *= axis.values.size();
  for (uint64_t point = 0; point < points; ++point) {
    std::vector<std::string> values(study.axes.size());
    uint64_t rest = point;
    for (size_t i = study.axes.size(); i-- > 0;) {
      const std::vector<std::string>& of_axis = study.axes[i].values;
      values[i] = of_axis[rest % of_axis.size()];
      rest /= of_axis.size();
    }
    for (uint32_t seed = 0; seed < study.seeds; ++seed) {
      runs.push_back({.point = point, .values = values, .seed = study.first_seed + seed});
    }
  }
  return runs;
}

std::vector<std::string> SetsOf(const Study& study, const StudyRun& run) {
  std::vector<std::string> sets = {fmt::format("seed={}", run.seed)};
  sets.insert(sets.end(), study.sets.begin(), study.sets.end());
  for (size_t i = 0; i < study.axes.size(); ++i) {
    for (const std::string& field : study.axes[i].fields) {
      sets.push_back(field + "=" + run.values[i]);
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
