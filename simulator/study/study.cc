// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/study.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "simulator/diagnostics/text_proto.h"
#include "simulator/study/study.pb.h"

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
                     .values = {message.values().begin(), message.values().end()}};
    if (!names.insert(loaded.name).second) {
      axis.Error(diagnostics, "name",
                 fmt::format("another column is called {} as well (expected another name)",
                             Quote(loaded.name)));
    }
    study.axes.push_back(std::move(loaded));
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

std::vector<std::string> ArgumentsOf(const Study& study, const StudyRun& run) {
  std::vector<std::string> arguments = {"run", study.scenario, "--quiet", "--seed",
                                        std::to_string(run.seed)};
  const auto set = [&arguments](const std::string& what) {
    arguments.push_back("--set");
    arguments.push_back(what);
  };
  for (const std::string& what : study.sets) set(what);
  for (size_t i = 0; i < study.axes.size(); ++i) {
    for (const std::string& field : study.axes[i].fields) set(field + "=" + run.values[i]);
  }
  if (study.no_baseline) arguments.push_back("--no-baseline");
  return arguments;
}

}  // namespace railyard
