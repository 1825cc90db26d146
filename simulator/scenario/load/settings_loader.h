// SPDX-License-Identifier: GPL-2.0-only
// The blocks of a scenario that only set numbers: `nccl`, `gpu`, and those of the fabric's
// models, `switch` and `network`. Each function
// takes a cursor on the whole scenario; an absent block means the defaults.
#pragma once

#include <string>
#include <vector>

#include "simulator/execution/lanes/gpu_costs.h"
#include "simulator/scenario/schema/model_attributes.h"
#include "simulator/scenario/schema/watchdog_settings.h"
#include "simulator/text_proto/text_proto.h"
#include "topologies/graph/fabric_graph.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

// `ib_timeout` and `ib_retry_cnt` belong into NicSettings: they are the queue pairs'.
struct NcclBlock {
  NcclSettings planner;
  uint32_t ib_timeout = 0;
  uint32_t ib_retry_cnt = 0;
};

// `net` is LoadNet's. `trace_version` is the version a log states, used where the scenario states
// none; may be empty.
NcclBlock LoadNccl(const ProtoCursor& scenario, NetPlugin net, const std::string& trace_version,
                   Diagnostics& diagnostics);
GpuCosts LoadGpu(const ProtoCursor& scenario, Diagnostics& diagnostics);
// Attributes of the fabric's models: `switch` and `network`; `fabric` is what they are for, nullptr
// if it could not be loaded, `net` LoadNet's. TCP is in a class that loses what has no room, and
// without ECN; EFA sprays packets over all paths.
std::vector<ModelAttribute> LoadFabricModels(const ProtoCursor& scenario, const FabricGraph* fabric,
                                             NetPlugin net, Diagnostics& diagnostics);
WatchdogSettings LoadWatchdog(const ProtoCursor& scenario, Diagnostics& diagnostics);

// IB_TIMEOUT and IB_RETRY_CNT of a block that has such fields.
uint32_t LoadIbTimeout(const ProtoCursor& block, uint32_t default_value, Diagnostics& diagnostics);
uint32_t LoadIbRetryCount(const ProtoCursor& block, uint32_t default_value,
                          Diagnostics& diagnostics);

// NCCL's default of NCCL_IB_TIMEOUT in a version (as ncclGetVersion).
uint32_t DefaultIbTimeout(uint32_t nccl_version);

}  // namespace railyard
