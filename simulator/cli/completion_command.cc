// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/cli/command.h"

namespace railyard {
namespace {

// The words that may follow the commands so far: subcommands, and options by their long names.
std::vector<std::string> WordsAfter(const CLI::App& parser) {
  std::vector<std::string> words;
  for (const CLI::App* command : parser.get_subcommands({})) {
    if (!command->get_group().empty()) words.push_back(command->get_name());
  }
  for (const CLI::Option* option : parser.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  std::sort(words.begin(), words.end());
  return words;
}

// One branch of the shell's `case` for `parser` and each command below it. `path` is the commands
// that lead there, each with a space behind it.
void PrintBranches(const CLI::App& parser, const std::string& path) {
  fmt::print("    '{}') words='{}' ;;\n", path, fmt::join(WordsAfter(parser), " "));
  for (const CLI::App* command : parser.get_subcommands({})) {
    PrintBranches(*command, path + command->get_name() + " ");
  }
}

class CompletionCommand : public Command {
 public:
  explicit CompletionCommand(CLI::App& program)
      : Command(program.add_subcommand("completion",
                                       "Print a script with which bash completes commands")),
        program_(program) {
    parser()->footer("source <(railyard completion) completes in the running shell.");
  }

  ExitStatus Run() override {
    std::vector<std::string> commands;
    AddCommands(program_, commands);
    std::sort(commands.begin(), commands.end());
    commands.erase(std::unique(commands.begin(), commands.end()), commands.end());
    fmt::print(
        "# Completes commands, options and files of railyard in bash.\n"
        "_railyard() {{\n"
        "  local word path= words= current=${{COMP_WORDS[COMP_CWORD]}}\n"
        "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
        "    case $word in\n"
        "    {}) path+=\"$word \" ;;\n"
        "    *) break ;;\n"
        "    esac\n"
        "  done\n"
        "  case $path in\n",
        fmt::join(commands, "|"));
    PrintBranches(program_, "");
    fmt::print(
        "  esac\n"
        "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\"; compgen -f -- "
        "\"$current\")\n"
        "}}\n"
        "complete -o filenames -F _railyard railyard\n");
    return kExitDone;
  }

 private:
  static void AddCommands(const CLI::App& parser, std::vector<std::string>& names) {
    for (const CLI::App* command : parser.get_subcommands({})) {
      names.push_back(command->get_name());
      AddCommands(*command, names);
    }
  }

  const CLI::App& program_;
};

}  // namespace

std::unique_ptr<Command> MakeCompletionCommand(CLI::App& program) {
  return std::make_unique<CompletionCommand>(program);
}

}  // namespace railyard
