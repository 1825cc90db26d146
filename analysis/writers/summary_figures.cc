// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/summary_figures.h"

#include <algorithm>

#include <rapidjson/document.h>

#include "analysis/result/run_result.h"
#include "analysis/writers/summary_json.h"

namespace railyard {
namespace {

// With one of everything that a summary has a list of.
RunResult RunWithAllThereIs() {
  RunResult run;
  run.jobs.emplace_back();
  CollectiveResult& collective = run.collectives.emplace_back();
  collective.completed = true;
  collective.measured_ps = 1;
  run.links.emplace_back();
  run.drops.emplace_back();
  run.faults.emplace_back();
  run.estimate.emplace();
  return run;
}

void AddFigures(const rapidjson::Value& value, const std::string& path,
                std::vector<std::string>& figures) {
  const auto below = [&path](const char* part) { return path.empty() ? part : path + "." + part; };
  if (value.IsObject()) {
    for (const auto& member : value.GetObject()) {
      AddFigures(member.value, below(member.name.GetString()), figures);
    }
  } else if (value.IsArray()) {
    for (const auto& element : value.GetArray()) AddFigures(element, below("N"), figures);
  } else if (value.IsNumber() || value.IsNull()) {
    figures.push_back(path);
  }
}

}  // namespace

std::vector<std::string> SummaryFigures() {
  rapidjson::Document summary;
  summary.Parse(SummaryJson(RunWithAllThereIs()).c_str());
  std::vector<std::string> figures;
  AddFigures(summary, "", figures);
  std::sort(figures.begin(), figures.end());
  figures.erase(std::unique(figures.begin(), figures.end()), figures.end());
  return figures;
}

}  // namespace railyard
