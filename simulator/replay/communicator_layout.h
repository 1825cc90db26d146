// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <vector>

#include "simulator/diagnostics/diagnostics.h"
#include "topologies/fabric_graph.h"
#include "workloads/job.h"
#include "workloads/nccl_channels.h"

namespace railyard {

// Where NCCL would find the GPUs of a communicator (by number, in rank order) to be.
CommunicatorLayout LayoutOf(const FabricGraph& graph, const std::vector<uint32_t>& gpus);

// Ranks of one communicator must be able to reach one another: over an NVSwitch inside a server,
// from NIC to NIC between servers. Each pair that cannot is an error at `where`, up to a few per
// communicator.
void CheckReachability(const FabricGraph& graph, const Job& job, const SourceLocation& where,
                       Diagnostics& diagnostics);

}  // namespace railyard
