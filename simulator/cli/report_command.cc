// SPDX-License-Identifier: GPL-2.0-only
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "analysis/report/figures.h"
#include "analysis/report/report_page.h"
#include "simulator/cli/command.h"
#include "simulator/cli/output_options.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/files/output_file.h"

namespace railyard {
namespace {

class ReportCommand : public Command {
 public:
  explicit ReportCommand(CLI::App& program)
      : Command(program.add_subcommand("report", "Write the report of a run once more")) {
    parser()->add_option("DIR", directory_, "The result of a run")->required();
    parser()->add_option("-o,--output", output_,
                         "The page to write (default: DIR/report.html); -: to standard output");
    parser()->add_option("--figures", figures_,
                         "Write every chart into this directory too, as SVG and PDF by gnuplot, "
                         "with its data as CSV");
  }

  ExitStatus Run() override {
    Diagnostics diagnostics;
    const std::string output =
        output_.empty() ? (std::filesystem::path(directory_) / "report.html").string() : output_;
    const auto store = OpenResult(directory_, diagnostics);
    if (store) {
      CheckOutputs({{"--output", output}}, {directory_ + "/results.sqlite"}, diagnostics);
    }
    if (diagnostics.HasErrors()) {
      fmt::print(stderr, "{}", diagnostics.ToString());
      return kExitInput;
    }
    try {
      const std::string page = ReportPage(*store);
      if (!figures_.empty()) WriteFigures(*store, figures_);
      WriteOutput(output, page);
    } catch (const UnreadableResult& unreadable) {
      AddNoResult(directory_, unreadable, diagnostics);
      fmt::print(stderr, "{}", diagnostics.ToString());
      return kExitInput;
    }
    if (output != "-") fmt::print("report: {}\n", output);
    if (output != "-" && !figures_.empty()) fmt::print("figures: {}\n", figures_);
    return kExitDone;
  }

 private:
  std::string directory_;
  std::string output_;
  std::string figures_;
};

}  // namespace

std::unique_ptr<Command> MakeReportCommand(CLI::App& program) {
  return std::make_unique<ReportCommand>(program);
}

}  // namespace railyard
