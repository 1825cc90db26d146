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

// A NIC that no GPU uses is an error, because its rate would be missing. A cable between GPUs that
// NVLink does not use (FabricGraph::NvlinkPaths) carries nothing, which is a warning. Whether a
// job's ranks are connected is checked with the job.
std::vector<RunObstacle> FindRunObstacles(const FabricGraph& fabric);

}  // namespace railyard
