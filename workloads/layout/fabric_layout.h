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

// Returns the GPUs of the communicator's ranks.
std::vector<GpuIndex> GpusOf(const TraceCommunicator& communicator);

// Returns the layout that NCCL would detect for a communicator's GPUs, which are in rank order.
CommunicatorLayout LayoutOf(const FabricGraph& graph, const std::vector<GpuIndex>& gpus);
// Returns the layout with the rings and trees that the communicator's log states.
CommunicatorLayout LayoutOf(const FabricGraph& graph, const TraceCommunicator& communicator);

}  // namespace railyard
