// SPDX-License-Identifier: GPL-2.0-only
// Computes the bytes that ranks send in a plan's trace on a fabric without simulating it: every
// collective by the algorithm, protocol and channels that a run of it chooses. A run without faults
// writes the same pairs to `pairs.csv`.
#pragma once

#include "simulator/scenario/schema/scenario.h"
#include "traces/trace/trace.h"
#include "workloads/plans/plan_volume.h"

namespace railyard {

// Returns bytes as a run counts them: those of a pair are what its receiver takes from its sender.
// With NVLink SHARP they include operands (from each GPU to the one that requests their sum) and
// results (from that one to each other). Sums made by the network's switches belong to no pair.
// Precondition: the scenario's job was made from `trace`, which Synthesize made.
PlanVolume VolumeOnFabric(const Scenario& scenario, const Trace& trace);

}  // namespace railyard
