// SPDX-License-Identifier: GPL-2.0-only
// Loads the blocks of a scenario that only set numbers: `nccl`, `gpu` and `watchdog`. Each function
// takes a cursor on the whole scenario; an absent block means the defaults.
#pragma once

#include <string>

#include "simulator/scenario/schema/watchdog_settings.h"
#include "simulator/text_proto/text_proto.h"
#include "workloads/nccl/gpu_costs.h"
#include "workloads/nccl/nccl_planner.h"

namespace railyard {

// Holds the block `nccl`. `ib_timeout` and `ib_retry_cnt` are for NicSettings, because queue pairs
// use them.
struct NcclBlock {
  NcclSettings planner;
  uint32_t ib_timeout = 0;
  uint32_t ib_retry_cnt = 0;
};

// `net` is the result of LoadNet(). `trace_version` is the version in a log, which is used if the
// scenario states none; it may be empty.
NcclBlock LoadNccl(const ProtoCursor& scenario, NetPlugin net, const std::string& trace_version,
                   Diagnostics& diagnostics);
GpuCosts LoadGpu(const ProtoCursor& scenario, Diagnostics& diagnostics);
WatchdogSettings LoadWatchdog(const ProtoCursor& scenario, Diagnostics& diagnostics);

// These load IB_TIMEOUT and IB_RETRY_CNT of a block with such fields.
uint32_t LoadIbTimeout(const ProtoCursor& block, uint32_t default_value, Diagnostics& diagnostics);
uint32_t LoadIbRetryCount(const ProtoCursor& block, uint32_t default_value,
                          Diagnostics& diagnostics);

// Returns NCCL's default of NCCL_IB_TIMEOUT in a version (encoded as by ncclGetVersion).
uint32_t DefaultIbTimeout(uint32_t nccl_version);

}  // namespace railyard
