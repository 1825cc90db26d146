// SPDX-License-Identifier: GPL-2.0-only
// Declares the base class of the verbs of the command line, and the function that makes each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "analysis/result/run_result.h"
#include "simulator/cli/cli.h"

namespace railyard {

class Command {
 public:
  virtual ~Command() = default;
  // Runs the verb after parsing, if it was given. Throws EnvironmentError if the environment fails.
  virtual ExitStatus Run() = 0;

  CLI::App* parser() const { return parser_; }

 protected:
  // `parser` belongs to this verb; the constructor of the derived class adds its options to it.
  explicit Command(CLI::App* parser) : parser_(parser) {}

 private:
  CLI::App* parser_;
};

// Returns the exit status of a command whose run ended with `status`.
ExitStatus ExitStatusOf(RunStatus status);

// Shows the names that an option takes in help and completion. The command itself refuses others,
// and suggests what was meant.
CLI::Validator ShowNames(const std::vector<std::string>& names);

// Each of these functions adds its verb to `program`.
std::unique_ptr<Command> MakeRunCommand(CLI::App& program);
std::unique_ptr<Command> MakeValidateCommand(CLI::App& program);
std::unique_ptr<Command> MakeImportCommand(CLI::App& program);
std::unique_ptr<Command> MakeTraceCommand(CLI::App& program);
std::unique_ptr<Command> MakeTopoCommand(CLI::App& program);
std::unique_ptr<Command> MakeFidelityCommand(CLI::App& program);
std::unique_ptr<Command> MakePerfCommand(CLI::App& program);
std::unique_ptr<Command> MakeScheduleCommand(CLI::App& program);
std::unique_ptr<Command> MakeEstimateCommand(CLI::App& program);
std::unique_ptr<Command> MakeStudyCommand(CLI::App& program);
std::unique_ptr<Command> MakeSynthCommand(CLI::App& program);
std::unique_ptr<Command> MakeCompareCommand(CLI::App& program);
std::unique_ptr<Command> MakeReportCommand(CLI::App& program);
std::unique_ptr<Command> MakeListCommand(CLI::App& program);
std::unique_ptr<Command> MakeHelpCommand(CLI::App& program);
std::unique_ptr<Command> MakeCompletionCommand(CLI::App& program);

}  // namespace railyard
