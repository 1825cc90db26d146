// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <vector>

#include "simulator/cli/topo_comparison.h"

namespace railyard {

// Returns a page that compares runs of one job on several fabrics: a panel for each measure, time
// against cost, and bytes per tier. `workload` is the scenario's path. Throws EnvironmentError
// unless CanWriteReports(). Precondition: there is a run.
std::string FabricsPage(const std::vector<ComparedRun>& runs, const std::string& workload);

}  // namespace railyard
