// SPDX-License-Identifier: GPL-2.0-only
// Checks the options that name files to be written.
#pragma once

#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

struct OutputOption {
  const char* name;  // "--json"
  std::string path;  // empty: it was not given
};

// Returns why `path` cannot be the value of an option that names an output; empty if it can.
std::string CheckPath(const std::string& path);

// Checks the outputs before anything is computed: an output that would overwrite one of the
// `inputs` (names that are not files are ignored) or another output is a finding. Throws
// EnvironmentError for one that cannot be written.
void CheckOutputs(const std::vector<OutputOption>& outputs, const std::vector<std::string>& inputs,
                  Diagnostics& diagnostics);

}  // namespace railyard
