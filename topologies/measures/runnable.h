// SPDX-License-Identifier: GPL-2.0-only
// What of a fabric a run would not use as the real one would.
#pragma once

#include <string>
#include <vector>

#include "topologies/graph/fabric_graph.h"

namespace railyard {

struct RunObstacle {
  bool is_error = false;  // else the run is right but for what is left out
  std::string what;
};

// NICs that no GPU uses are errors, for their rate would be missing; cables between GPUs that
// NVLink does not take (FabricGraph::NvlinkPaths) carry nothing, which is a warning. What a job
// connects is checked with the job.
std::vector<RunObstacle> FindRunObstacles(const FabricGraph& fabric);

}  // namespace railyard
