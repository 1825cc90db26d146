// SPDX-License-Identifier: GPL-2.0-only
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/cli/command.h"
#include "simulator/cli/listings.h"

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

// The words that may follow an option, where its parser knows them: of "TEXT:{local,slurm}" two.
std::vector<std::string> ValuesOf(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

// A fabric may be named, by --fabric or as an argument, or be a file.
std::vector<std::string> FabricNames() {
  std::vector<std::string> names;
  for (const Listed& preset : ListedPresets()) names.push_back(preset.name);
  for (const Listed& platform : ListedPlatforms()) names.push_back(platform.name);
  return names;
}
bool TakesFabric(const CLI::App& parser) {
  const std::vector<const CLI::Option*> options = parser.get_options();
  return std::any_of(options.begin(), options.end(), [](const CLI::Option* option) {
    return option->get_positional() && option->get_name(true).starts_with("FABRIC");
  });
}

// Branches of the shell's `case` for the options below `parser` that a value follows, which is a
// file where its values are not known.
void PrintValueBranches(const CLI::App& parser, const std::string& path) {
  for (const CLI::Option* option : parser.get_options()) {
    if (option->get_expected_max() == 0) continue;
    const std::vector<std::string> values = ValuesOf(*option);
    for (const std::string& name : option->get_lnames()) {
      if (name == "fabric") {
        fmt::print("    '{}--fabric') names=$fabrics ;;\n", path);
      } else if (values.empty()) {
        fmt::print("    '{}--{}') is_file=1 ;;\n", path, name);
      } else {
        fmt::print("    '{}--{}') values='{}' ;;\n", path, name, fmt::join(values, " "));
      }
    }
  }
  for (const CLI::App* command : parser.get_subcommands({})) {
    PrintValueBranches(*command, path + command->get_name() + " ");
  }
}

// One branch of the shell's `case` for `parser` and each command below it. `path` is the commands
// that lead there, each with a space behind it.
void PrintBranches(const CLI::App& parser, const std::string& path) {
  fmt::print("    '{}') words='{}'{} ;;\n", path, fmt::join(WordsAfter(parser), " "),
             TakesFabric(parser) ? " names=$fabrics" : "");
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
    AddCommands(program_, "", commands);
    // bash makes a separate word of the = in --option=value.
    fmt::print(
        "# Completes commands, options, their values and files of railyard in bash.\n"
        "_railyard() {{\n"
        "  local word path= words= values= names= is_file= fabrics='{}'\n"
        "  local current=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD-1]}}\n"
        "  if [[ $current == = ]]; then current=\n"
        "  elif [[ $option == = ]]; then option=${{COMP_WORDS[COMP_CWORD-2]}}; fi\n"
        "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
        "    case $path$word in\n"
        "    {}) path+=\"$word \" ;;\n"
        "    *) break ;;\n"
        "    esac\n"
        "  done\n"
        "  case $path$option in\n",
        fmt::join(FabricNames(), " "), fmt::join(commands, "|"));
    PrintValueBranches(program_, "");
    fmt::print(
        "  esac\n"
        "  if [[ $values ]]; then mapfile -t COMPREPLY < <(compgen -W \"$values\" -- "
        "\"$current\"); return; fi\n"
        "  if [[ ! $names && ! $is_file ]]; then case $path in\n");
    PrintBranches(program_, "");
    fmt::print(
        "  esac; fi\n"
        "  mapfile -t COMPREPLY < <(compgen -W \"$words $names\" -- \"$current\"; compgen -f -- "
        "\"$current\")\n"
        "}}\n"
        "complete -o filenames -F _railyard railyard\n");
    return kExitDone;
  }

 private:
  // Patterns of the shell, each a command with those that lead there: 'trace cut'.
  static void AddCommands(const CLI::App& parser, const std::string& path,
                          std::vector<std::string>& patterns) {
    for (const CLI::App* command : parser.get_subcommands({})) {
      const std::string name = path + command->get_name();
      patterns.push_back(fmt::format("'{}'", name));
      AddCommands(*command, name + " ", patterns);
    }
  }

  const CLI::App& program_;
};

}  // namespace

std::unique_ptr<Command> MakeCompletionCommand(CLI::App& program) {
  return std::make_unique<CompletionCommand>(program);
}

}  // namespace railyard
