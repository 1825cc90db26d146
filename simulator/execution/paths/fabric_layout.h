// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "traces/trace/trace.h"
#include "workloads/nccl/communicator_layout.h"

namespace railyard {

// Converts the vendor. An unknown vendor counts as Intel.
CommunicatorCpu CpuOf(CpuVendor vendor);

// Returns the layout that NCCL would detect for a communicator's GPUs, which are numbers in rank
// order.
CommunicatorLayout LayoutOf(const FabricGraph& graph, const std::vector<uint32_t>& gpus);
// Returns the layout with the rings and trees that the communicator's log states.
CommunicatorLayout LayoutOf(const FabricGraph& graph, const TraceCommunicator& communicator);

}  // namespace railyard
