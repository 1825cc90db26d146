// SPDX-License-Identifier: GPL-2.0-only
// Says what the network's switches do in a step over kNetworkSum.
#pragma once

#include <cstdint>

#include "simulator/transport/contract/aggregation.h"
#include "workloads/collectives/schedule.h"

namespace railyard {

struct StepAggregation {
  Aggregation operation{};
  uint32_t own_bytes = 0;  // the rank's part of the bytes that the step scatters or gathers
};

// Returns the switches' operation in a step of a rank, whose lane has the peers `listed`. It is a
// plain reduction unless the step gathers or scatters.
StepAggregation StepAggregationOf(const LanePeers& listed, RankIndex rank, const Step& step);

}  // namespace railyard
