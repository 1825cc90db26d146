// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/cli.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "simulator/cli/command.h"
#include "simulator/cli/version.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/diagnostics/names.h"
#include "simulator/processes/interruption.h"

namespace railyard {
namespace {

constexpr size_t kHelpColumns = 80;

// The text in lines of at most so many characters, where its words are that short.
std::string Wrapped(std::string_view text, size_t columns) {
  std::string wrapped;
  size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column > 0) {
      const bool fits = column + 1 + word.size() <= columns;
      wrapped += fits ? ' ' : '\n';
      column = fits ? column + 1 : 0;
    }
    wrapped += word;
    column += word.size();
  }
  return wrapped;
}

// Help that a terminal of 80 columns, and the manual, shows without breaking its lines.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return Wrapped(option->get_description(), kHelpColumns - column_width_);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream line;
    CLI::detail::format_help(line, command->get_display_name(true),
                             Wrapped(command->get_description(), kHelpColumns - column_width_),
                             column_width_);
    return line.str();
  }
  std::string make_description(const CLI::App* command) const override {
    return Wrapped(command->get_description(), kHelpColumns) + "\n";
  }
};

struct Program {
  CLI::App parser{"Replays the collectives of a job packet by packet on a modelled GPU fabric.",
                  "railyard"};
  std::vector<std::unique_ptr<Command>> commands;

  Program() {
    parser.formatter(std::make_shared<HelpFormatter>());
    parser.set_version_flag("--version", VersionText(), "Print the version and exit");
    parser.set_help_flag("-h,--help", "Print this help and exit");
    parser.require_subcommand(1);
    parser.get_formatter()->label("SUBCOMMAND", "COMMAND");
    commands.push_back(MakeRunCommand(parser));
    commands.push_back(MakeValidateCommand(parser));
    commands.push_back(MakeImportCommand(parser));
    commands.push_back(MakeTraceCommand(parser));
    commands.push_back(MakeStudyCommand(parser));
    commands.push_back(MakeSynthCommand(parser));
    commands.push_back(MakeEstimateCommand(parser));
    commands.push_back(MakeTopoCommand(parser));
    commands.push_back(MakeScheduleCommand(parser));
    commands.push_back(MakePerfCommand(parser));
    commands.push_back(MakeFidelityCommand(parser));
    commands.push_back(MakeReportCommand(parser));
    commands.push_back(MakeCompareCommand(parser));
    commands.push_back(MakeListCommand(parser));
    commands.push_back(MakeHelpCommand(parser));
    commands.push_back(MakeCompletionCommand(parser));
    for (const auto& command : commands) command->parser()->group("Commands");
    parser.footer("railyard COMMAND --help says more about one of them.");
  }

  Command* Given() const {
    for (const auto& command : commands) {
      if (command->parser()->parsed()) return command.get();
    }
    return nullptr;
  }
};

std::vector<std::string> OptionNames(const CLI::App& parser) {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> SubcommandNames(const CLI::App& parser) {
  std::vector<std::string> names;
  for (const CLI::App* command : parser.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

// The program's parser, that of the given command, and that of its subcommand if it has one:
// `railyard`, `topo`, `show`.
std::vector<const CLI::App*> GivenParsers(const CLI::App& program) {
  std::vector<const CLI::App*> parsers = {&program};
  while (!parsers.back()->get_subcommands().empty()) {
    parsers.push_back(parsers.back()->get_subcommands().front());
  }
  return parsers;
}

// Prints the arguments that CLI11 could not place, each with a suggestion. Returns whether a
// command was among them.
bool PrintLeftOver(const CLI::App& program) {
  bool has_unknown_option = false;
  bool has_unknown_command = false;
  std::vector<std::string> words;  // messages about what is no option
  for (const CLI::App* parser : GivenParsers(program)) {
    const bool lacks_subcommand =
        parser->get_subcommands().empty() && !SubcommandNames(*parser).empty();
    for (const std::string& argument : parser->remaining()) {
      if (argument.starts_with('-') && argument != "-") {
        has_unknown_option = true;
        PrintError(
            UnknownName("option", argument.substr(0, argument.find('=')), OptionNames(*parser)));
      } else if (lacks_subcommand && words.empty()) {
        has_unknown_command = true;
        words.push_back(UnknownName("command", argument, SubcommandNames(*parser)));
      } else {
        words.push_back(fmt::format("unexpected argument {}", Quote(argument)));
      }
    }
  }
  if (has_unknown_option) return false;  // what follows one may be its value
  for (const std::string& word : words) PrintError(word);
  return has_unknown_command;
}

// Prints the options on the command line that no given command has. Returns whether there are any.
bool PrintUnknownOptions(const CLI::App& program, int argc, const char* const* argv) {
  std::vector<std::string> known;
  for (const CLI::App* parser : GivenParsers(program)) {
    for (std::string& name : OptionNames(*parser)) known.push_back(std::move(name));
  }
  bool has_any = false;
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string name(
        std::string_view(argv[i]).substr(0, std::string_view(argv[i]).find('=')));
    if (!name.starts_with("--") || std::ranges::find(known, name) != known.end()) continue;
    PrintError(UnknownName("option", name, OptionNames(*GivenParsers(program).back())));
    has_any = true;
  }
  return has_any;
}

// Describes a value that is no number of the option's type. CLI11 says "Could not convert: --nodes
// = abc".
std::string ConversionText(const CLI::ConversionError& error) {
  const std::string_view text = error.what();
  const size_t begin = text.find("--");
  const size_t equals = text.find(" = ", std::min(begin, text.size()));
  if (begin == std::string_view::npos || equals == std::string_view::npos) return error.what();
  return fmt::format("{}: {} is no number that it takes (--help says what it means)",
                     text.substr(begin, equals - begin), Quote(text.substr(equals + 3)));
}

// Describes a missing argument: CLI11 names the option but does not list the commands that there
// are.
std::string MissingText(const CLI::App& program, const CLI::RequiredError& error) {
  const CLI::App* const parser = GivenParsers(program).back();
  const std::vector<std::string> commands = SubcommandNames(*parser);
  return commands.empty()
             ? error.what()
             : fmt::format("a command is missing (expected {})", JoinAlternatives(commands));
}

// A first word that is no verb: CLI11 would only say that one is missing.
bool PrintUnknownCommand(const Program& program, const char* word) {
  if (word[0] == '-') return false;
  const std::vector<std::string> names = SubcommandNames(program.parser);
  for (const std::string& name : names) {
    if (name == word) return false;
  }
  PrintError(UnknownName("command", word, names));
  return true;
}

// The exit status where parsing ends the program; else -1.
int Parse(Program& program, int argc, const char* const* argv) {
  if (argc < 2) {
    fmt::print(stderr, "{}", program.parser.help());
    return kExitInput;
  }
  if (PrintUnknownCommand(program, argv[1])) return kExitInput;
  try {
    program.parser.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", program.parser.help());
    return kExitDone;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return kExitDone;
  } catch (const CLI::ExtrasError&) {
    PrintLeftOver(program.parser);
    return kExitInput;
  } catch (const CLI::RequiredError& error) {
    // A required argument may be missing because another word was mistyped.
    if (!PrintLeftOver(program.parser)) PrintError(MissingText(program.parser, error));
    return kExitInput;
  } catch (const CLI::ConversionError& error) {
    PrintError(ConversionText(error));
    return kExitInput;
  } catch (const CLI::ParseError& error) {
    // An argument may be one too many because it is the value of a mistyped option.
    if (!PrintUnknownOptions(program.parser, argc, argv)) PrintError(error.what());
    return kExitInput;
  }
  return -1;
}

// Relative paths lead nowhere then.
bool IsWorkingDirectoryGone() {
  std::error_code error;
  return std::filesystem::current_path(error).empty() &&
         error == std::errc::no_such_file_or_directory;
}
constexpr const char* kWorkingDirectoryIsGone = "the working directory is gone";

// A full disk behind standard output must not look like success.
void FlushStandardOutput() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw EnvironmentError(fmt::format("standard output: {}", std::strerror(errno)));
  }
}

}  // namespace

CLI::Validator ShowNames(const std::vector<std::string>& names) {
  return {[](std::string&) { return std::string(); }, fmt::format("{{{}}}", fmt::join(names, ","))};
}

void PrintError(const std::string& what) {
  std::fputs(fmt::format("railyard: error: {}\n", Escaped(what)).c_str(), stderr);
}

int RunCli(int argc, const char* const* argv) {
  try {
    Program program;
    int status = Parse(program, argc, argv);
    if (status < 0) status = program.Given()->Run();
    FlushStandardOutput();
    if (status == kExitInput && IsWorkingDirectoryGone()) {
      throw EnvironmentError(kWorkingDirectoryIsGone);
    }
    return status;
  } catch (const Interrupted& interrupted) {
    PrintError(interrupted.what());
    return kExitStalled;
  } catch (const EnvironmentError& error) {
    PrintError(error.what());
    if (error.what() != std::string_view(kWorkingDirectoryIsGone) && IsWorkingDirectoryGone()) {
      PrintError(kWorkingDirectoryIsGone);
    }
  } catch (const std::filesystem::filesystem_error& error) {
    PrintError(IsWorkingDirectoryGone()
                   ? std::string(kWorkingDirectoryIsGone)
                   : fmt::format("{}: {}", error.path1().string(), error.code().message()));
  } catch (const std::system_error& error) {
    // fmt's, of what it prints; all else has its own error.
    PrintError(fmt::format("standard output: {}", error.code().message()));
  } catch (const std::bad_alloc&) {
    PrintError("not enough memory");
  }
  return kExitEnvironment;
}

}  // namespace railyard
