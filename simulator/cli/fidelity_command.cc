// SPDX-License-Identifier: GPL-2.0-only
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "analysis/report/report_page.h"
#include "simulator/cli/calibration_options.h"
#include "simulator/cli/command.h"
#include "simulator/cli/fidelity_page.h"
#include "simulator/cli/output_options.h"
#include "simulator/files/output_file.h"
#include "simulator/measure/fidelity.h"
#include "simulator/measure/other_times.h"
#include "simulator/measure/scoreboard.h"
#include "simulator/processes/interruption.h"
#include "simulator/units/quantity_errors.h"
#include "simulator/units/units.h"

namespace railyard {
namespace {

class FidelityCommand : public Command {
 public:
  explicit FidelityCommand(CLI::App& program)
      : Command(program.add_subcommand("fidelity",
                                       "Compare measured collective times with simulated ones")) {
    parser()
        ->add_option("MEASURED", files_, "Tables of measurements, comma-separated values")
        ->required();
    parser()
        ->add_option("--max-bytes", bytes_max_, "Larger rows are listed as not run (default: 1G)")
        ->type_name("SIZE");
    parser()
        ->add_option("--json", json_,
                     "Write the result as JSON too; - is standard output, instead "
                     "of the table")
        ->type_name("FILE");
    parser()
        ->add_option("--html", html_,
                     "Write a page with errors by machine, collective, protocol and size too")
        ->type_name("FILE");
    parser()
        ->add_option("--times", times_,
                     "Times of other simulators, comma-separated values, that --html shows beside")
        ->type_name("FILE");
    parser()
        ->add_option("--calibrate", calibrated_,
                     "Fit --fabric's GPU costs to what nccl-tests printed, which MEASURED then is, "
                     "and write a custom platform")
        ->type_name("FILE");
    calibration_.AddOptions(parser());
  }

  ExitStatus Run() override {
    const Interruptible interruptible;  // between two runs, too
    const ExitStatus status = RunToItsEnd();
    TakeInterruption();  // one that came after the last run changes nothing
    return status;
  }

 private:
  ExitStatus RunToItsEnd() {
    const auto bytes_max = ParseBytes(bytes_max_);
    if (!bytes_max) {
      fmt::print(stderr, "--max-bytes: error: {} {}\n", Quote(bytes_max_), WhyNoBytes(bytes_max_));
    }
    if (!calibrated_.empty()) {
      if (!bytes_max) return kExitInput;
      if (json_.empty() && html_.empty() && times_.empty())
        return calibration_.Run(files_, *bytes_max, calibrated_);
      fmt::print(stderr, "{}: error: has no effect with --calibrate (expected one of the two)\n",
                 !json_.empty()   ? "--json"
                 : !html_.empty() ? "--html"
                                  : "--times");
      return kExitInput;
    }
    if (const std::string unused = calibration_.Given(); !unused.empty()) {
      fmt::print(stderr,
                 "{}: error: has no effect without --calibrate (expected both or neither)\n",
                 unused);
      return kExitInput;
    }
    Diagnostics diagnostics;
    std::vector<MeasuredRow> rows;
    for (const std::string& file : files_) {
      std::vector<MeasuredRow> of_file = ReadMeasuredTable(file, diagnostics);
      rows.insert(rows.end(), of_file.begin(), of_file.end());
    }
    const std::vector<OtherTime> others =
        times_.empty() ? std::vector<OtherTime>() : ReadOtherTimes(times_, rows, diagnostics);
    std::vector<std::string> inputs = files_;
    inputs.push_back(times_);
    CheckOutputs({{"--json", json_}, {"--html", html_}}, inputs, diagnostics);
    fmt::print(stderr, "{}", diagnostics.ToString());
    if (html_.empty() && !times_.empty()) {
      fmt::print(stderr, "--times: error: has no effect without --html (expected both)\n");
      return kExitInput;
    }
    if (diagnostics.HasErrors() || !bytes_max) return kExitInput;
    if (!html_.empty() && !CanWriteReports()) {
      throw EnvironmentError(fmt::format("--html: {}", kNoEcharts));
    }
    const bool shows_progress = ::isatty(STDERR_FILENO) != 0;
    const FidelityResult result = RunFidelity(rows, *bytes_max, [&](size_t done, size_t of) {
      if (shows_progress)
        fmt::print(stderr, "\r{} of {} points{}", done, of, done == of ? "\n" : "");
    });
    if (!html_.empty() && result.rows.empty()) {
      fmt::print(stderr, "--html: error: no row was simulated (expected one or more)\n");
      return kExitInput;
    }
    if (!json_.empty()) WriteOutput(json_, FidelityJson(result));
    if (!html_.empty()) {
      WriteOutput(html_, FidelityPage(MakeScoreboard(result, others), result));
    }
    if (json_ != "-") fmt::print("{}", FidelityTable(result));
    return kExitDone;
  }

  std::vector<std::string> files_;
  std::string bytes_max_ = "1G";
  std::string json_;
  std::string html_;
  std::string times_;
  std::string calibrated_;
  CalibrationOptions calibration_;
};

}  // namespace

std::unique_ptr<Command> MakeFidelityCommand(CLI::App& program) {
  return std::make_unique<FidelityCommand>(program);
}

}  // namespace railyard
