// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "traces/trace/trace.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

// Holds the planners of a job's communicators, by communicator. They are made once, when a scenario
// is resolved, and shared by its checks, the replay and the recorders of results.
using CommunicatorPlanners = std::vector<std::shared_ptr<const NcclPlanner>>;

// Makes the planners of these communicators on the fabric.
CommunicatorPlanners PlannersOf(const FabricGraph& graph,
                                std::span<const TraceCommunicator> communicators,
                                const NcclSettings& settings);

}  // namespace railyard
