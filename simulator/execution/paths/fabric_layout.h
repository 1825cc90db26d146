// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/graph/fabric_graph.h"
#include "traces/trace/trace.h"
#include "workloads/nccl/communicator_layout.h"

namespace railyard {

// One that is not known counts as Intel's.
CommunicatorCpu CpuOf(CpuVendor vendor);

// Where NCCL would find the GPUs of a communicator (by number, in rank order) to be.
CommunicatorLayout LayoutOf(const FabricGraph& graph, const std::vector<uint32_t>& gpus);
// The same with the rings and trees that a communicator's log states.
CommunicatorLayout LayoutOf(const FabricGraph& graph, const TraceCommunicator& communicator);

}  // namespace railyard
