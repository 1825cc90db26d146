// SPDX-License-Identifier: GPL-2.0-only
// Reads the fabric of commands that take one collective: `--fabric F [--nodes N]`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "railyard/scenario_builder.h"
#include "simulator/diagnostics/diagnostics.h"
#include "simulator/measure/platform_scenario.h"
#include "topologies/graph/fabric_graph.h"
#include "topologies/platforms/platform.h"

namespace railyard {

struct FabricOption {
  ScenarioBuilder scenario;  // with the blocks `fabric`, `nic` and `network`
  std::string name;          // for people
  uint32_t gpus = 0;
};

// Returns the network that --net names, as NCCL_NET does: TCP sockets, EFA, or RoCE for every other
// name.
NetworkKind NetworkOf(const std::string& net);

// Prints a line on standard error, or nothing for an empty note.
void PrintNote(const std::string& note);

// Reads `fabric`, which is a platform (its reference rail-optimized fabric of `nodes` servers,
// joined by `network`), a preset or a file. Returns nullopt after an error, which has been printed.
std::optional<FabricOption> ReadFabricOption(const std::string& fabric, uint32_t nodes,
                                             NetworkKind network = NetworkKind::kRoce);

// Holds a fabric, and to what the GPUs of its platform are calibrated, which a graph does not hold.
struct ShownFabric {
  FabricGraph graph;
  PlatformCalibration calibration;  // if its platform is not calibrated, all factors are 1
};

// Loads a fabric to be described, which need not be able to run: a preset, a platform (its
// reference fabric of `nodes` servers), a file, or the `fabric` of a scenario. Returns nullopt
// after an error, which is a finding.
std::optional<ShownFabric> LoadShownFabric(const std::string& fabric, uint32_t nodes,
                                           Diagnostics& diagnostics);

}  // namespace railyard
