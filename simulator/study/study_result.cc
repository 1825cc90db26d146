// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/study_result.h"

#include <fstream>
#include <iterator>
#include <sstream>

#include <rapidjson/document.h>

#include "simulator/files/input_file.h"

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

rapidjson::Document ReadSummary(const std::string& directory) {
  std::ifstream file = OpenInputFile(directory + "/summary.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  rapidjson::Document summary;
  summary.Parse<rapidjson::kParseIterativeFlag>(text.c_str());
  if (summary.HasParseError()) summary.SetNull();
  return summary;
}

std::string StatusOf(const rapidjson::Document& summary) {
  if (!summary.IsObject()) return {};
  const rapidjson::Value* const status = Find(summary, "status");
  return status != nullptr && status->IsString() ? status->GetString() : std::string();
}

// The exit status of `railyard run` that belongs to the status of its result.
int ExitOf(const std::string& status) {
  if (status == "COMPLETED") return 0;
  return status == "JOB_ABORTED" ? 3 : 4;
}

// Returns whether the status is that of a run that came to its end.
bool IsResult(const std::string& status) {
  return !status.empty() && status != "INTERRUPTED" && status != "RUNNING";
}

}  // namespace

bool HasResult(const std::string& directory) { return IsResult(StatusOf(ReadSummary(directory))); }

StudyRunResult ReadRunResult(const Study& study, const std::string& directory,
                             std::optional<RunEnd> end) {
  StudyRunResult run;
  run.figures.resize(study.figures.size());
  if (end && end->status != nullptr) {
    run.exit = end->exit;
    run.status = end->status;
    return run;
  }
  const rapidjson::Document summary = ReadSummary(directory);
  run.status = StatusOf(summary);
  run.exit = end ? end->exit : ExitOf(run.status);
  run.has_result = IsResult(run.status);
  if (!run.has_result) return run;
  const rapidjson::Value* const seconds = Find(summary, "wall_seconds");
  if (seconds != nullptr && seconds->IsNumber()) run.seconds = seconds->GetDouble();
  const rapidjson::Value* const memory = Find(summary, "peak_rss_bytes");
  if (memory != nullptr && memory->IsInt64()) run.peak_memory_bytes = memory->GetInt64();
  for (size_t i = 0; i < study.figures.size(); ++i) {
    const rapidjson::Value* const figure = Find(summary, study.figures[i]);
    if (figure != nullptr && figure->IsNumber()) run.figures[i] = figure->GetDouble();
  }
  return run;
}

}  // namespace railyard
