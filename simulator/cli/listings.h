// SPDX-License-Identifier: GPL-2.0-only
// What the program knows by name: one line each, the name first.
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
// The scenarios that ship, named by their paths as `run` takes them from the working directory.
// They are files beside the program (share/railyard/scenarios), in the source tree that it was
// built in, or in the one that is its working directory. EnvironmentError where none is found.
std::vector<Listed> ListedScenarios();
// Files that the program reads and writes.
std::vector<Listed> ListedFormats();

void PrintListing(const std::vector<Listed>& listed);

}  // namespace railyard
