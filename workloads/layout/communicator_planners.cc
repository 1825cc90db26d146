// SPDX-License-Identifier: GPL-2.0-only
#include "workloads/layout/communicator_planners.h"

#include "workloads/layout/fabric_layout.h"

namespace railyard {

CommunicatorPlanners PlannersOf(const FabricGraph& graph,
                                std::span<const TraceCommunicator> communicators,
                                const NcclSettings& settings) {
  CommunicatorPlanners planners;
  planners.reserve(communicators.size());
  for (const TraceCommunicator& communicator : communicators) {
    planners.push_back(
        std::make_shared<const NcclPlanner>(LayoutOf(graph, communicator), settings));
  }
  return planners;
}

}  // namespace railyard
