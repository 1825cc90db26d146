// SPDX-License-Identifier: GPL-2.0-only
// Keeps the outcome of a fault-free run in a file, for other runs with the same fault-free run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "simulator/run/baseline.h"
#include "simulator/run/run_options.h"

namespace railyard {

// Returns true if there is something at the path that is no file of fault-free runs. Throws
// EnvironmentError if it cannot be read.
bool IsForeignFile(const std::string& path);

// Returns the outcome, whose cpu_seconds are 0; nullopt if the file is absent, incomplete or
// damaged, or has another key. Throws EnvironmentError if it cannot be read, or if it is not a file
// of fault-free runs.
std::optional<Baseline::Outcome> ReadBaselineFile(const BaselineFile& file, size_t collectives,
                                                  size_t jobs);

// Writes the outcome, complete or not at all, in place of an earlier one. Throws EnvironmentError
// if it cannot be written.
void WriteBaselineFile(const BaselineFile& file, const Baseline::Outcome& outcome);

}  // namespace railyard
