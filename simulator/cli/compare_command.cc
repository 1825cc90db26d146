// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/compare/comparison.h"
#include "analysis/compare/comparison_text.h"
#include "analysis/compare/stored_result.h"
#include "analysis/report/comparison_page.h"
#include "analysis/store/result_store.h"
#include "analysis/writers/result_files.h"
#include "simulator/cli/command.h"
#include "simulator/cli/output_options.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/output_file.h"

namespace railyard {
namespace {

class CompareCommand : public Command {
 public:
  explicit CompareCommand(CLI::App& program)
      : Command(program.add_subcommand("compare",
                                       "Compare results of runs, collective by collective")) {
    parser()
        ->add_option("DIR", directories_, "Results of runs; each is compared with the first")
        ->required()
        ->expected(2, 1'000);
    parser()
        ->add_option("--threshold", threshold_percent_,
                     "The largest difference in percent that ends with exit status 0, not 5 "
                     "(default: 1)")
        ->check(CLI::Range(0.0, 1e6))
        ->check([](const std::string& text) {
          return std::isnan(std::strtod(text.c_str(), nullptr)) ? "is no number" : std::string();
        });
    parser()->add_option("--json", json_, "Write the comparison as JSON; -: to standard output");
    parser()->add_option("--html", html_, "Write the comparison as a page for a browser");
  }

  ExitStatus Run() override {
    Diagnostics diagnostics;
    const bool prints_json = json_ == "-";
    CheckFiles(diagnostics);
    std::vector<StoredResult> results;
    for (const std::string& directory : directories_) {
      if (auto result = ReadStoredResult(directory, diagnostics)) {
        results.push_back(std::move(*result));
      }
    }
    if (diagnostics.HasErrors()) {
      fmt::print(stderr, "{}", diagnostics.ToString());
      return kExitInput;
    }
    const double threshold = threshold_percent_ / 100;
    std::vector<Comparison> comparisons;
    for (size_t i = 1; i < results.size(); ++i) {
      comparisons.push_back(Compare(results.front(), results[i]));
    }
    if (!json_.empty()) WriteOutput(json_, ComparisonsJson(comparisons, threshold) + "\n");
    if (!html_.empty() && !WritePage(comparisons, threshold)) return kExitInput;
    if (!prints_json) {
      for (size_t i = 0; i < comparisons.size(); ++i) {
        fmt::print("{}{}", i == 0 ? "" : "\n", ComparisonText(comparisons[i], threshold));
      }
    }
    const bool exceeds = std::any_of(comparisons.begin(), comparisons.end(),
                                     [&](const Comparison& one) { return one.Exceeds(threshold); });
    return exceeds ? kExitDifference : kExitDone;
  }

 private:
  // Adds errors for outputs that cannot be written, or that are one of the inputs.
  void CheckFiles(Diagnostics& diagnostics) const {
    std::vector<std::string> inputs;
    for (const std::string& directory : directories_) {
      for (const std::string& output : {json_, html_}) {
        const std::string name = std::filesystem::path(output).filename().string();
        if (!IsResultFileName(name)) continue;
        inputs.push_back((std::filesystem::path(directory) / name).string());
      }
    }
    CheckOutputs({{"--json", json_ == "-" ? "" : json_}, {"--html", html_}}, inputs, diagnostics);
  }

  // Returns false when it has printed why a result cannot be shown.
  bool WritePage(const std::vector<Comparison>& comparisons, double threshold) const {
    try {
      WriteOutput(html_, ComparisonPage(comparisons, threshold));
      return true;
    } catch (const UnreadableResult& unreadable) {
      fmt::print(stderr,
                 "--html {}: error: a result is incomplete: {} (expected directories that "
                 "`railyard run` wrote)\n",
                 html_, unreadable.why);
      return false;
    }
  }

  std::vector<std::string> directories_;
  double threshold_percent_ = 1;
  std::string json_;
  std::string html_;
};

}  // namespace

std::unique_ptr<Command> MakeCompareCommand(CLI::App& program) {
  return std::make_unique<CompareCommand>(program);
}

}  // namespace railyard
