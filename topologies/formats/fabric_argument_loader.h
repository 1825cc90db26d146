// SPDX-License-Identifier: GPL-2.0-only
// Loads a fabric that is named on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Returns true if `argument` is the name or the file of a platform. A platform describes one
// server, so the caller must say how many servers the fabric has.
bool IsPlatformArgument(const std::string& argument);

// Loads a preset, a platform or a file of any FabricFileFormat except a scenario. A platform yields
// its reference fabric: `servers` servers, rail-optimized, with as many spines as make it
// non-blocking; `servers` is ignored for anything else. Returns nullopt after an error; every
// mistake is a finding.
std::optional<FabricGraph> LoadFabricArgument(const std::string& argument, Diagnostics& diagnostics,
                                              uint32_t servers = 1);

}  // namespace railyard
