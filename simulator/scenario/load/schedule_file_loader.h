// SPDX-License-Identifier: GPL-2.0-only
// Reads a user's own algorithm for a collective: workloads/collectives/schedule.proto.
#pragma once

#include <memory>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "workloads/collectives/explicit_schedule.h"

namespace railyard {

// The algorithm, checked: every rank ends with each contribution to its result exactly once. Else
// nullptr and findings at what is wrong. EnvironmentError if an existing file cannot be read.
std::shared_ptr<const ExplicitAlgorithm> LoadScheduleFile(const std::string& path,
                                                          Diagnostics& diagnostics);

}  // namespace railyard
