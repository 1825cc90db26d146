// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/report/report_page.h"
#include "analysis/report/study_page.h"
#include "analysis/tables/figure_text.h"
#include "simulator/cli/command.h"
#include "simulator/cli/output_options.h"
#include "simulator/cli/study_progress.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "simulator/files/input_file.h"
#include "simulator/files/output_file.h"
#include "simulator/processes/interruption.h"
#include "simulator/study/local_executor.h"
#include "simulator/study/run_key.h"
#include "simulator/study/run_study.h"
#include "simulator/study/sample_statistics.h"
#include "simulator/study/slurm_executor.h"
#include "simulator/study/study_check.h"
#include "simulator/study/study_directory.h"
#include "simulator/study/study_table.h"
#include "simulator/units/quantity_errors.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

std::string CheckMemory(const std::string& text) {
  if (const auto bytes = ParseBytes(text); bytes && *bytes > 0 && *bytes <= INT64_MAX) return {};
  return fmt::format("{} {}", Quote(text), WhyNoBytes(text));
}

class StudyCommand : public Command {
 public:
  explicit StudyCommand(CLI::App& program)
      : Command(program.add_subcommand("study",
                                       "Run a scenario with many values of its fields and seeds")) {
    parser()->add_option("STUDY", study_, "The study, protobuf text")->required();
    parser()
        ->add_option("--out", out_,
                     "The directory of the results, new or empty (default: out/NAME)")
        ->check(CheckPath);
    parser()
        ->add_option("--jobs", jobs_, "Runs at a time (default: one per core)")
        ->check(CLI::Range(1, 1024));
    parser()
        ->add_option("--memory", memory_,
                     "Memory that runs may take together, e.g. 64GiB: one that is not expected to "
                     "fit waits (default: all that is free)")
        ->type_name("BYTES")
        ->check(CheckMemory);
    parser()
        ->add_option("--time-limit", time_limit_seconds_,
                     "End a run that takes longer: its status is TIME_LIMIT (default: none)")
        ->type_name("SECONDS")
        ->check(CLI::Range(1, 100'000'000));
    parser()
        ->add_option("--executor", executor_,
                     "The place of the runs: local (default), processes of this machine, or slurm, "
                     "job arrays of a cluster that shares the directory")
        ->check(CLI::IsMember({"local", "slurm"}));
    parser()
        ->add_option("--sbatch", sbatch_,
                     "An option of sbatch, e.g. --sbatch=--partition=main; may be given again")
        ->type_name("OPTION")
        ->allow_extra_args(false);
    parser()
        ->add_option("--runs-per-task", runs_per_task_,
                     "Runs that a task of the cluster makes one after the other (default: as many "
                     "as make 256 tasks)")
        ->check(CLI::Range(1, 1'000'000));
    parser()->add_flag("--detach", detaches_,
                       "Submit the runs to the cluster and end: a last job collects the results");
    parser()->add_flag("--resume", resumes_,
                       "Go on with the study in that directory: what is done is not run again");
    parser()->add_flag("--no-report", no_report_, "Write no report.html");
    auto* const dry = parser()->add_flag(
        "--dry-run", is_dry_, "Only list the points, and estimate their cost by a few of them");
    parser()
        ->add_option("--measure", measure_seconds_,
                     "Seconds for which --dry-run runs each of a few points at most, to estimate "
                     "the cost (default: 1; 0: not at all)")
        ->type_name("SECONDS")
        ->needs(dry)
        ->check(CLI::Range(0, 86'400));
  }

  ExitStatus Run() override {
    if (!CheckExecutorOptions()) return kExitInput;
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
    if (is_dry_) return Plan(*study, jobs, measure_seconds_);
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
    StudyResult result;
    try {
      result = RunStudy(*study, *directory, Executor(jobs, path),
                        [&line](const auto& progress) { line.Show(progress); });
    } catch (const Detached& detached) {
      fmt::print("{} of {} submitted; job {} collects results in {}\n",
                 Counted(study->run_count(), "run"), study->ScenarioPaths(), detached.job(), path);
      return kExitDone;
    }
    line.Clear();
    WriteStudy(*study, result, path);
    if (!no_report_ && CanWriteReports()) {
      WriteOutput(path + "/report.html", StudyPage(SummaryOf(*study, result)));
    }
    TakeInterruption();  // one that came after the last run changes nothing
    fmt::print("{}{} of {}\nresults: {}/points.csv and {}/statistics.csv\n",
               StudyTable(*study, result, kRowsMax), Counted(result.runs.size(), "run"),
               study->ScenarioPaths(), path, path);
    return Judge(*study, result, path);
  }

 private:
  static constexpr size_t kRowsMax = 100;

  // The arguments of the study that collects what this one submits.
  std::vector<std::string> CollectingCommand(const std::string& path) const {
    std::vector<std::string> command = {"study",      study_,  "--out",   path,
                                        "--executor", "slurm", "--resume"};
    for (const std::string& option : sbatch_) command.push_back("--sbatch=" + option);
    if (runs_per_task_ > 0) {
      command.insert(command.end(), {"--runs-per-task", std::to_string(runs_per_task_)});
    }
    if (time_limit_seconds_ > 0) {
      command.insert(command.end(), {"--time-limit", std::to_string(time_limit_seconds_)});
    }
    if (no_report_) command.emplace_back("--no-report");
    return command;
  }

  StudyExecutor Executor(uint32_t jobs, const std::string& path) const {
    std::optional<int64_t> time_limit_seconds;
    if (time_limit_seconds_ > 0) time_limit_seconds = time_limit_seconds_;
    if (executor_ == "slurm") {
      return SlurmExecutor(
          {.sbatch = sbatch_,
           .runs_per_task = runs_per_task_,
           .time_limit_seconds = time_limit_seconds,
           .collecting = detaches_ ? CollectingCommand(path) : std::vector<std::string>()});
    }
    return LocalExecutor({.jobs = jobs,
                          .memory_bytes = memory_.empty()
                                              ? FreeMemoryBytes()
                                              : static_cast<int64_t>(*ParseBytes(memory_)),
                          .time_limit_seconds = time_limit_seconds});
  }

  // Options of one executor mean nothing to the other.
  bool CheckExecutorOptions() const {
    const bool is_slurm = executor_ == "slurm";
    const std::pair<bool, const char*> refused[] = {
        {is_slurm && !memory_.empty(), "--memory"},
        {!is_slurm && !sbatch_.empty(), "--sbatch"},
        {!is_slurm && runs_per_task_ > 0, "--runs-per-task"},
        {!is_slurm && detaches_, "--detach"}};
    bool is_right = true;
    for (const auto& [is_given, option] : refused) {
      if (!is_given) continue;
      fmt::print(stderr, "{}: error: has no effect with --executor {} (expected {})\n", option,
                 executor_, is_slurm ? "--sbatch=--mem=..." : "--executor slurm");
      is_right = false;
    }
    return is_right;
  }

  // Says what is not as it should be.
  ExitStatus Judge(const Study& study, const StudyResult& result,
                   const std::string& directory) const {
    constexpr size_t kShownMax = 5;
    const std::vector<size_t> failed = result.Failed();
    const std::vector<StudyRun> runs = RunsOf(study);
    for (size_t i = 0; i < std::min(failed.size(), kShownMax); ++i) {
      const size_t run = failed[i];
      fmt::print(stderr, "{}: error: run {} ({}; seed {}) left no result, exit status {}:\n{}",
                 study_, run, PointName(study, runs[run]), runs[run].seed, result.runs[run].exit,
                 TextOf(RunPath(directory, run) + ".log"));
    }
    if (failed.size() > kShownMax) {
      fmt::print(stderr, "{}: error: and {} more runs left no result\n", study_,
                 failed.size() - kShownMax);
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
                         .scenario = study.ScenarioPaths(),
                         .axes = {},
                         .figures = study.figures,
                         .points = {},
                         .seeds = study.seeds};
    for (const StudyAxis& axis : study.axes) summary.axes.push_back(axis.name);
    const std::vector<StudyRun> runs = RunsOf(study);
    for (size_t first = 0; first < runs.size(); first += study.seeds) {
      StudySummary::Point& point = summary.points.emplace_back();
      point.values.assign(runs[first].values.begin(), runs[first].values.end());
      for (size_t figure = 0; figure < study.figures.size(); ++figure) {
        const std::vector<double> values = result.ValuesAt(study, first / study.seeds, figure);
        PointFigure& shown = point.figures.emplace_back();
        shown.runs = values.size();
        if (values.empty()) continue;
        const Estimate mean = MeanOf(values);
        shown = {.runs = values.size(), .mean = mean.value, .low = mean.low, .high = mean.high};
      }
    }
    for (const StudyRunResult& run : result.runs) {
      summary.runs_with_result += run.has_result ? 1 : 0;
      summary.runs_cut_short += run.has_result && run.status != "COMPLETED" ? 1 : 0;
    }
    return summary;
  }

  // Estimates the time of all runs from the first, the middle and the last one.
  static ExitStatus Plan(const Study& study, uint32_t jobs, int64_t limit_seconds) {
    const std::vector<StudyRun> runs = RunsOf(study);
    for (size_t i = 0; i < runs.size(); i += study.seeds) {
      if (i / study.seeds == kRowsMax) {
        fmt::print("... and {} more\n", Counted(runs.size() / study.seeds - kRowsMax, "point"));
        break;
      }
      fmt::print("point {}: {}\n", runs[i].point, PointName(study, runs[i]));
    }
    if (limit_seconds == 0) {
      fmt::print("{} of {}\n", Counted(runs.size(), "run"), study.ScenarioPaths());
      return kExitDone;
    }
    std::set<size_t> numbers = {0, runs.size() / 2, runs.size() - 1};
    const std::vector<RunCost> costs =
        MeasureRuns(study, {numbers.begin(), numbers.end()}, limit_seconds);
    double sum = 0;
    bool is_cut_off = false;
    for (const RunCost& cost : costs) {
      sum += cost.seconds;
      is_cut_off |= cost.is_cut_off;
    }
    const double mean = sum / static_cast<double>(costs.size());
    const size_t at_a_time = std::min<size_t>(jobs, runs.size());
    fmt::print("{} of {}: by {} of them {}{} each, {}{} in all with {} at a time\n",
               Counted(runs.size(), "run"), study.ScenarioPaths(), costs.size(),
               is_cut_off ? "more than " : "about ", DurationText(InPicoseconds(mean)),
               is_cut_off ? "more than " : "about ",
               DurationText(InPicoseconds(mean * static_cast<double>(runs.size()) /
                                          static_cast<double>(at_a_time))),
               at_a_time);
    return kExitDone;
  }

  static std::string TextOf(const std::string& path) {
    std::ifstream file = OpenInputFile(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string study_;
  std::string out_;
  uint32_t jobs_ = 0;
  std::string memory_;
  std::string executor_ = "local";
  std::vector<std::string> sbatch_;
  size_t runs_per_task_ = 0;
  int64_t time_limit_seconds_ = 0;
  bool resumes_ = false;
  bool detaches_ = false;
  bool is_dry_ = false;
  int64_t measure_seconds_ = 1;
  bool no_report_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeStudyCommand(CLI::App& program) {
  return std::make_unique<StudyCommand>(program);
}

}  // namespace railyard
