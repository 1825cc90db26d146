// SPDX-License-Identifier: GPL-2.0-only
// What ranks send in a plan's trace on a fabric, without simulating it: every collective by the
// algorithm, protocol and channels that a run of it chooses. A run without faults writes the same
// pairs to `pairs.csv`.
#pragma once

#include "simulator/scenario/schema/scenario.h"
#include "workloads/plans/plan_volume.h"

namespace railyard {

// Bytes as a run counts them: a pair's are what its receiver takes from its sender, which of NVLink
// SHARP includes operands (from each GPU to the one that asks for their sum) and results (from that
// one to each other); what the network's switches add up is of no pair. Precondition: the
// scenario's trace is of Synthesize.
PlanVolume VolumeOnFabric(const Scenario& scenario);

}  // namespace railyard
