// SPDX-License-Identifier: GPL-2.0-only
// From a scenario's text to a run that can start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/scenario/schema/scenario.h"

namespace railyard {

// Reads `path`, applies `sets` ("FIELD=VALUE", text_proto.h), reads every file it names and checks
// everything that can be known before time zero. nullptr after any error, all of which are
// reported: unknown, contradictory and ineffective fields among them.
std::unique_ptr<Scenario> LoadScenario(const std::string& path,
                                       const std::vector<std::string>& sets,
                                       Diagnostics& diagnostics);

}  // namespace railyard
