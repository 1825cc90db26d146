// SPDX-License-Identifier: GPL-2.0-only
// A fabric named on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/graph/fabric_graph.h"

namespace railyard {

// Whether `argument` is a platform's name or its file, which is a fabric of as many servers as are
// asked for.
bool IsPlatformArgument(const std::string& argument);

// `argument` is a preset, a platform or a file of any FabricFileFormat but a scenario. A platform
// means its reference fabric: `servers` of them, rail-optimized, with as many spines as make it
// non-blocking; `servers` says nothing otherwise. nullopt after an error; every mistake is a
// finding.
std::optional<FabricGraph> LoadFabricArgument(const std::string& argument, Diagnostics& diagnostics,
                                              uint32_t servers = 1);

}  // namespace railyard
