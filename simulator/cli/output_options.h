// SPDX-License-Identifier: GPL-2.0-only
// Options that name files to be written.
#pragma once

#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"

namespace railyard {

struct OutputOption {
  const char* name;  // "--json"
  std::string path;  // empty: it was not given
};

// Before anything is computed: a finding for each output that would overwrite one of the `inputs`
// (names that are no files are passed over) or another output. EnvironmentError for one that cannot
// be written.
void CheckOutputs(const std::vector<OutputOption>& outputs, const std::vector<std::string>& inputs,
                  Diagnostics& diagnostics);

}  // namespace railyard
