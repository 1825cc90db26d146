// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/cli/cli.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "simulator/cli/command.h"
#include "simulator/diagnostics/diagnostics.h"

namespace railyard {
namespace {

struct Program {
  CLI::App parser{"Replays the collectives of a job packet by packet on a modelled GPU fabric.",
                  "railyard"};
  std::vector<std::unique_ptr<Command>> commands;

  Program() {
    parser.set_version_flag("--version", std::string("railyard ") + RAILYARD_VERSION,
                            "Print the version and exit");
    parser.set_help_flag("-h,--help", "Print this help and exit");
    parser.require_subcommand(1);
    parser.get_formatter()->label("SUBCOMMAND", "COMMAND");
    commands.push_back(MakeRunCommand(parser));
    commands.push_back(MakeValidateCommand(parser));
    commands.push_back(MakeImportCommand(parser));
    commands.push_back(MakeStudyCommand(parser));
    commands.push_back(MakeSynthCommand(parser));
    commands.push_back(MakeEstimateCommand(parser));
    commands.push_back(MakeTopoCommand(parser));
    commands.push_back(MakeScheduleCommand(parser));
    commands.push_back(MakePerfCommand(parser));
    commands.push_back(MakeFidelityCommand(parser));
    commands.push_back(MakeHelpCommand(parser));
    for (const auto& command : commands) command->parser()->group("Commands");
    parser.footer("railyard COMMAND --help says more about one of them.");
  }

  std::vector<std::string> CommandNames() const {
    std::vector<std::string> names;
    for (const auto& command : commands) names.push_back(command->parser()->get_name());
    return names;
  }

  Command* Given() const {
    for (const auto& command : commands) {
      if (command->parser()->parsed()) return command.get();
    }
    return nullptr;
  }
};

void PrintError(const std::string& what) { fmt::print(stderr, "railyard: error: {}\n", what); }

std::vector<std::string> OptionNames(const CLI::App& parser) {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// What CLI11 could not place, each with a guess at what was meant.
void PrintLeftOver(const CLI::App& parser) {
  bool has_unknown_option = false;
  for (const std::string& argument : parser.remaining()) {
    if (!argument.starts_with('-') || argument == "-") continue;
    has_unknown_option = true;
    PrintError(UnknownName("option", argument.substr(0, argument.find('=')), OptionNames(parser)));
  }
  if (has_unknown_option) return;  // what follows one may be its value
  for (const std::string& argument : parser.remaining()) {
    PrintError(fmt::format("unexpected argument {}", Quote(argument)));
  }
}

// A first word that is no verb: CLI11 would only say that one is missing.
bool PrintUnknownCommand(const Program& program, const char* word) {
  if (word[0] == '-') return false;
  const std::vector<std::string> names = program.CommandNames();
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
    const Command* const given = program.Given();
    PrintLeftOver(given != nullptr ? *given->parser() : program.parser);
    return kExitInput;
  } catch (const CLI::RequiredError& error) {
    PrintError(program.Given() != nullptr ? error.what()
                                          : fmt::format("a command is missing (expected {})",
                                                        JoinAlternatives(program.CommandNames())));
    return kExitInput;
  } catch (const CLI::ParseError& error) {
    PrintError(error.what());
    return kExitInput;
  }
  return -1;
}

// A full disk behind standard output must not look like success.
void FlushStandardOutput() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw EnvironmentError(fmt::format("standard output: {}", std::strerror(errno)));
  }
}

}  // namespace

int RunCli(int argc, const char* const* argv) {
  try {
    Program program;
    int status = Parse(program, argc, argv);
    if (status < 0) status = program.Given()->Run();
    FlushStandardOutput();
    return status;
  } catch (const EnvironmentError& error) {
    PrintError(error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    PrintError(error.what());
  } catch (const std::bad_alloc&) {
    PrintError("not enough memory");
  }
  return kExitEnvironment;
}

}  // namespace railyard
