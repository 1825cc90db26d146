// SPDX-License-Identifier: GPL-2.0-only
#include <array>

#include "simulator/cli/command.h"
#include "simulator/cli/listings.h"

namespace railyard {
namespace {

struct Listing {
  const char* name;
  const char* help;
  std::vector<Listed> (*entries)();
};
constexpr std::array<Listing, 5> kListings = {{
    {"platforms", "Kinds of server", &ListedPlatforms},
    {"presets", "Fabrics", &ListedPresets},
    {"models", "Models that plans name", &ListedModels},
    {"scenarios", "Scenarios that ship, by their paths", &ListedScenarios},
    {"formats", "Files that are read and written", &ListedFormats},
}};

class ListCommand : public Command {
 public:
  explicit ListCommand(CLI::App& program)
      : Command(program.add_subcommand("list",
                                       "List platforms, presets, models, scenarios or formats")) {
    parser()->require_subcommand(1);
    for (const Listing& listing : kListings) parser()->add_subcommand(listing.name, listing.help);
  }

  ExitStatus Run() override {
    for (const Listing& listing : kListings) {
      if (parser()->got_subcommand(listing.name)) PrintListing(listing.entries());
    }
    return kExitDone;
  }
};

}  // namespace

std::unique_ptr<Command> MakeListCommand(CLI::App& program) {
  return std::make_unique<ListCommand>(program);
}

}  // namespace railyard
