// SPDX-License-Identifier: GPL-2.0-only
// Says which GPU a rank runs on: rank r runs on GPU r (ADR 0066).
#pragma once

#include "simulator/units/job_ids.h"
#include "topologies/graph/graph_ids.h"

namespace railyard {

constexpr GpuIndex GpuOf(GlobalRank rank) { return GpuIndex{uint32_t{rank}}; }
constexpr GlobalRank RankOn(GpuIndex gpu) { return GlobalRank{uint32_t{gpu}}; }

}  // namespace railyard
