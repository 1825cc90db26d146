// SPDX-License-Identifier: GPL-2.0-only
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "simulator/cli/command.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/study/run_study.h"

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
    if (std::filesystem::exists(directory, error) && !std::filesystem::is_empty(directory, error)) {
      fmt::print(stderr, "--out {}: error: is not empty (expected a new or empty directory)\n",
                 directory);
      return kExitInput;
    }
    const uint32_t jobs = jobs_ > 0 ? jobs_ : std::max(1u, std::thread::hardware_concurrency());
    const StudyResult result = RunStudy(*study, directory, jobs);
    WriteStudy(*study, result, directory);
    if (result.failed) {
      const std::string log = fmt::format("{}/runs/{:06}.log", directory, *result.failed);
      fmt::print(stderr, "{}: error: run {} left no result, exit status {}:\n{}", study_,
                 *result.failed, result.runs[*result.failed].exit, TextOf(log));
      return result.runs[*result.failed].exit == kExitInput ? kExitInput : kExitEnvironment;
    }
    fmt::print("{} runs of {}\nresults: {}/points.csv and {}/statistics.csv\n", result.runs.size(),
               study->scenario, directory, directory);
    return kExitDone;
  }

 private:
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
