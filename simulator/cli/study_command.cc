// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "simulator/cli/command.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "simulator/processes/interruption.h"
#include "simulator/study/run_study.h"
#include "simulator/study/study_table.h"

namespace railyard {
namespace {

class StudyCommand : public Command {
 public:
  explicit StudyCommand(CLI::App& program)
      : Command(program.add_subcommand("study",
                                       "Run a scenario with many values of its fields and seeds")) {
    parser()->add_option("STUDY", study_, "What varies, protobuf text")->required();
    parser()->add_option("--out", out_,
                         "Where results go: a new or empty directory (default: out/NAME)");
    parser()
        ->add_option("--jobs", jobs_, "How many runs at a time (default: one per core)")
        ->check(CLI::Range(1, 1024));
  }

  ExitStatus Run() override {
    Diagnostics diagnostics;
    const auto study = LoadStudy(study_, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (!study) return kExitInput;
    const std::string directory = out_.empty() ? "out/" + study->name : out_;
    std::error_code error;
    if (std::filesystem::exists(directory, error) &&
        !(std::filesystem::is_directory(directory, error) &&
          std::filesystem::is_empty(directory, error))) {
      fmt::print(stderr, "--out {}: error: is there already (expected a new or empty directory)\n",
                 directory);
      return kExitInput;
    }
    const uint32_t jobs = jobs_ > 0 ? jobs_ : std::max(1u, std::thread::hardware_concurrency());
    const Interruptible interruptible;  // between two runs and while results are written, too
    // Before anything is made: what the scenario does not take is an axis's mistake.
    CheckRuns(*study, jobs, diagnostics);
    if (diagnostics.HasErrors()) {
      fmt::print(stderr, "{}", diagnostics.ToString());
      return kExitInput;
    }
    const StudyResult result = RunStudy(*study, directory, jobs);
    WriteStudy(*study, result, directory);
    TakeInterruption();  // one that came after the last run changes nothing
    fmt::print("{}{} of {}\nresults: {}/points.csv and {}/statistics.csv\n",
               StudyTable(*study, result, kRowsMax), Counted(result.runs.size(), "run"),
               study->scenario, directory, directory);
    return Judge(*study, result, directory);
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

  static std::string TextOf(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string study_;
  std::string out_;
  uint32_t jobs_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeStudyCommand(CLI::App& program) {
  return std::make_unique<StudyCommand>(program);
}

}  // namespace railyard
