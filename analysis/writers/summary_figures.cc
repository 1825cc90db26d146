// SPDX-License-Identifier: GPL-2.0-only
#include "analysis/writers/summary_figures.h"

#include <set>

#include "analysis/result/run_result.h"
#include "analysis/writers/figure_paths.h"
#include "analysis/writers/summary.h"

namespace railyard {
namespace {

// Returns a run with one of everything that a summary has a list or an object of, so that nothing
// is null for want of it.
RunResult RunWithAllThereIs() {
  RunResult run;
  run.jobs.emplace_back();
  CollectiveResult& collective = run.collectives.emplace_back();
  collective.completed = true;
  collective.measured_ps = 1;
  run.links.emplace_back();
  run.drops.emplace_back();
  run.faults.emplace_back();
  run.in_network.emplace_back();
  run.division.shards.emplace_back();
  run.estimate.emplace().simulated.emplace_back();
  return run;
}

class NumberPaths final : public FigurePaths {
 public:
  void Text(const char* /*key*/, std::string_view /*value*/) override {}
  void Number(const char* key, std::optional<uint64_t> /*value*/) override { Add(key); }
  void Signed(const char* key, std::optional<int64_t> /*value*/) override { Add(key); }
  void Real(const char* key, std::optional<double> /*value*/) override { Add(key); }
  void Flag(const char* /*key*/, bool /*value*/) override {}
  void Null(const char* /*key*/) override {}

  std::vector<std::string> Take() const { return {paths_.begin(), paths_.end()}; }

 private:
  void Add(const char* key) { paths_.insert(PathOf(key)); }

  std::set<std::string> paths_;
};

}  // namespace

std::vector<std::string> SummaryFigures() {
  NumberPaths paths;
  VisitSummary(RunWithAllThereIs(), paths);
  return paths.Take();
}

}  // namespace railyard
