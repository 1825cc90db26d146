// SPDX-License-Identifier: GPL-2.0-only
#include <string>
#include <vector>

#include <fmt/format.h>

#include "railyard/scenario_builder.h"
#include "simulator/cli/command.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {
namespace {

class ValidateCommand : public Command {
 public:
  explicit ValidateCommand(CLI::App& program)
      : Command(program.add_subcommand("validate",
                                       "Check scenarios exactly as run does before time zero")) {
    parser()->add_option("FILE", files_, "Scenarios, protobuf text")->required();
    parser()
        ->add_option("--set", sets_, "Set one field of each, as for run; may be given again")
        ->type_name("FIELD=VALUE")
        ->allow_extra_args(false);
  }

  ExitStatus Run() override {
    ExitStatus status = kExitDone;
    for (const std::string& file : files_) {
      Diagnostics diagnostics;
      const auto scenario = ReadScenario(file, sets_, diagnostics);
      fmt::print(stderr, "{}", diagnostics.ToString());
      if (!scenario) {
        status = kExitInput;
        continue;
      }
      size_t ranks = 0;
      for (const JobPart& part : scenario->job.parts) ranks += part.global_ranks.size();
      fmt::print("{}: valid: {} on {}, {}, {}\n", file, Counted(ranks, "rank"),
                 Counted(scenario->fabric.gpus().size(), "GPU"),
                 Counted(scenario->job.collectives.size(), "collective"),
                 Counted(scenario->faults.size(), "fault"));
    }
    return status;
  }

 private:
  std::vector<std::string> files_;
  std::vector<std::string> sets_;
};

}  // namespace

std::unique_ptr<Command> MakeValidateCommand(CLI::App& program) {
  return std::make_unique<ValidateCommand>(program);
}

}  // namespace railyard
