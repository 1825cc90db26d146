// SPDX-License-Identifier: GPL-2.0-only
// Reads a user's algorithm for a collective: workloads/collectives/schedule.proto.
#pragma once

#include <memory>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "workloads/collectives/explicit_schedule.h"

namespace railyard {

// Returns the algorithm if it passes the check that every rank ends with each contribution to its
// result exactly once; else nullptr, with findings at the mistakes. Throws EnvironmentError if an
// existing file cannot be read.
std::shared_ptr<const ExplicitAlgorithm> LoadScheduleFile(const std::string& path,
                                                          Diagnostics& diagnostics);

}  // namespace railyard
