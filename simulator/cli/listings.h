// SPDX-License-Identifier: GPL-2.0-only
// Lists everything that has a name: one line each, the name first.
#pragma once

#include <string>
#include <vector>

namespace railyard {

struct Listed {
  std::string name;
  std::string description;  // one line
};

std::vector<Listed> ListedPlatforms();
std::vector<Listed> ListedPresets();
std::vector<Listed> ListedModels();
// Returns the shipped scenarios by their paths, as `run` takes them from the working directory.
// They are files beside the program (share/railyard/scenarios), in the source tree in which it was
// built, or in the source tree that is its working directory. Throws EnvironmentError if none is
// found.
std::vector<Listed> ListedScenarios();
// Returns the formats of files that the program reads and writes.
std::vector<Listed> ListedFormats();

void PrintListing(const std::vector<Listed>& listed);

}  // namespace railyard
