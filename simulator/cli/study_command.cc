// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "analysis/report/report_page.h"
#include "analysis/report/study_page.h"
#include "analysis/tables/figure_text.h"
#include "simulator/cli/command.h"
#include "simulator/cli/study_progress.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/interruption.h"
#include "simulator/study/run_key.h"
#include "simulator/study/run_study.h"
#include "simulator/study/sample_statistics.h"
#include "simulator/study/study_directory.h"
#include "simulator/study/study_table.h"

namespace railyard {
namespace {

class StudyCommand : public Command {
 public:
  explicit StudyCommand(CLI::App& program)
      : Command(program.add_subcommand("study",
                                       "Run a scenario with many values of its fields and seeds")) {
    parser()->add_option("STUDY", study_, "The study, protobuf text")->required();
    parser()->add_option("--out", out_,
                         "Where results go: a new or empty directory (default: out/NAME)");
    parser()
        ->add_option("--jobs", jobs_, "How many runs at a time (default: one per core)")
        ->check(CLI::Range(1, 1024));
    parser()->add_flag("--resume", resumes_,
                       "Go on with the study in that directory: what is done is not run again");
    parser()->add_flag("--no-report", no_report_, "Write no report.html");
    parser()->add_flag("--dry-run", is_dry_,
                       "Only say which points there are, and what they cost by a few of them");
  }

  ExitStatus Run() override {
    Diagnostics diagnostics;
    const auto study = LoadStudy(study_, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (!study) return kExitInput;
    const uint32_t jobs = jobs_ > 0 ? jobs_ : std::max(1u, std::thread::hardware_concurrency());
    const Interruptible interruptible;  // between two runs and while results are written, too
    // Before anything is made: what the scenario does not take is an axis's mistake.
    CheckRuns(*study, jobs, diagnostics);
    if (diagnostics.HasErrors()) {
      fmt::print(stderr, "{}", diagnostics.ToString());
      return kExitInput;
    }
    if (is_dry_) return Plan(*study, jobs);
    if (!no_report_ && !CanWriteReports()) {
      fmt::print(stderr, "railyard: no report.html will be written: {}\n", kNoEcharts);
    }
    const std::string path = out_.empty() ? "out/" + study->name : out_;
    const std::vector<std::string> keys = RunKeys(*study, RunsOf(*study));
    const auto directory = resumes_ ? StudyDirectory::Resume(path, keys, diagnostics)
                                    : StudyDirectory::Create(path, keys, diagnostics);
    if (directory == nullptr) {
      fmt::print(stderr, "{}", diagnostics.ToString());
      return kExitInput;
    }
    StudyProgressLine line;
    const StudyResult result =
        RunStudy(*study, *directory, jobs, [&line](const auto& progress) { line.Show(progress); });
    line.Clear();
    WriteStudy(*study, result, path);
    if (!no_report_ && CanWriteReports()) {
      WriteOutput(path + "/report.html", StudyPage(SummaryOf(*study, result)));
    }
    TakeInterruption();  // one that came after the last run changes nothing
    fmt::print("{}{} of {}\nresults: {}/points.csv and {}/statistics.csv\n",
               StudyTable(*study, result, kRowsMax), Counted(result.runs.size(), "run"),
               study->scenario, path, path);
    return Judge(*study, result, path);
  }

 private:
  static constexpr size_t kRowsMax = 100;

  // Says what is not as it should be.
  ExitStatus Judge(const Study& study, const StudyResult& result,
                   const std::string& directory) const {
    constexpr size_t kToldMax = 5;
    const std::vector<size_t> failed = result.Failed();
    const std::vector<StudyRun> runs = RunsOf(study);
    for (size_t i = 0; i < std::min(failed.size(), kToldMax); ++i) {
      const size_t run = failed[i];
      fmt::print(stderr, "{}: error: run {} ({}; seed {}) left no result, exit status {}:\n{}",
                 study_, run, PointName(study, runs[run]), runs[run].seed, result.runs[run].exit,
                 TextOf(RunPath(directory, run) + ".log"));
    }
    if (failed.size() > kToldMax) {
      fmt::print(stderr, "{}: error: and {} more runs left no result\n", study_,
                 failed.size() - kToldMax);
    }
    if (!result.interruption.empty()) {
      const auto missing = std::count_if(result.runs.begin(), result.runs.end(),
                                         [](const auto& run) { return run.exit < 0; });
      fmt::print(stderr, "railyard: {}: {} of {} runs are missing\n", result.interruption, missing,
                 result.runs.size());
      return kExitStalled;
    }
    for (const std::string& figure : result.Absent(study)) {
      fmt::print(stderr, "{}: warning: figures: no run has {}\n", study_, Quote(figure));
    }
    return failed.empty() ? kExitDone : kExitEnvironment;
  }

  static StudySummary SummaryOf(const Study& study, const StudyResult& result) {
    StudySummary summary{.name = study.name,
                         .scenario = study.scenario,
                         .axes = {},
                         .figures = study.figures,
                         .points = {},
                         .seeds = study.seeds};
    for (const StudyAxis& axis : study.axes) summary.axes.push_back(axis.name);
    const std::vector<StudyRun> runs = RunsOf(study);
    for (size_t first = 0; first < runs.size(); first += study.seeds) {
      StudySummary::Point& point = summary.points.emplace_back();
      point.values = runs[first].values;
      for (size_t figure = 0; figure < study.figures.size(); ++figure) {
        std::vector<double> values;
        for (size_t i = first; i < first + study.seeds; ++i) {
          const StudyRunResult& run = result.runs[i];
          if (run.exit >= 0 && run.figures[figure]) values.push_back(*run.figures[figure]);
        }
        PointFigure& shown = point.figures.emplace_back();
        shown.runs = values.size();
        if (values.empty()) continue;
        const Estimate mean = MeanOf(values);
        shown = {.runs = values.size(), .mean = mean.value, .low = mean.low, .high = mean.high};
      }
    }
    summary.runs_with_result = static_cast<uint64_t>(std::ranges::count_if(
        result.runs, [](const StudyRunResult& run) { return !run.status.empty(); }));
    return summary;
  }

  // Estimates the time of all runs from the first, the middle and the last one, each for ten
  // seconds at most.
  static ExitStatus Plan(const Study& study, uint32_t jobs) {
    constexpr int64_t kLimitSeconds = 10;
    const std::vector<StudyRun> runs = RunsOf(study);
    for (size_t i = 0; i < runs.size(); i += study.seeds) {
      if (i / study.seeds == kRowsMax) {
        fmt::print("... and {} more\n", Counted(runs.size() / study.seeds - kRowsMax, "point"));
        break;
      }
      fmt::print("point {}: {}\n", runs[i].point, PointName(study, runs[i]));
    }
    std::set<size_t> numbers = {0, runs.size() / 2, runs.size() - 1};
    const std::vector<RunCost> costs =
        MeasureRuns(study, {numbers.begin(), numbers.end()}, kLimitSeconds);
    double sum = 0;
    bool is_cut_off = false;
    for (const RunCost& cost : costs) {
      sum += cost.seconds;
      is_cut_off |= cost.is_cut_off;
    }
    const double mean = sum / static_cast<double>(costs.size());
    fmt::print("{} of {}: by {} of them {}{} each, {}{} in all with {} at a time\n",
               Counted(runs.size(), "run"), study.scenario, costs.size(),
               is_cut_off ? "more than " : "about ", DurationText(InPicoseconds(mean)),
               is_cut_off ? "more than " : "about ",
               DurationText(InPicoseconds(mean * static_cast<double>(runs.size()) / jobs)), jobs);
    return kExitDone;
  }

  static std::string TextOf(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string study_;
  std::string out_;
  uint32_t jobs_ = 0;
  bool resumes_ = false;
  bool is_dry_ = false;
  bool no_report_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeStudyCommand(CLI::App& program) {
  return std::make_unique<StudyCommand>(program);
}

}  // namespace railyard
