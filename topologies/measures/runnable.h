// SPDX-License-Identifier: GPL-2.0-only
// Finds the parts of a fabric that a run would not use as the real machine does.
#pragma once

#include <string>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct RunObstacle {
  bool is_error = false;  // otherwise the run is correct but leaves something out
  std::string what;
};

// Returns errors for NICs that no GPU uses, because their rate would be missing, and warnings for
// cables between GPUs over which no NVLink path leads (FabricGraph::NvlinkPaths). The check of a
// job finds ranks that are not connected.
std::vector<RunObstacle> FindRunObstacles(const FabricGraph& fabric);

}  // namespace railyard
