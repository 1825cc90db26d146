// SPDX-License-Identifier: GPL-2.0-only
// Checks that every collective of a job can be replayed with the algorithm and protocol of its log,
// the scenario or NCCL's tuner.
#pragma once

#include "simulator/scenario/schema/loaded_workload.h"
#include "simulator/text_proto/text_proto.h"
#include "workloads/layout/communicator_planners.h"

namespace railyard {

// Reports an error for each pair of algorithm and protocol that cannot be replayed, at the field
// that requests it, and one for an ALGO that has no effect. `scenario` is a cursor on the whole
// scenario, whose fabric and workload have been loaded.
void CheckChoices(const ProtoCursor& scenario, const LoadedWorkload& workload,
                  const CommunicatorPlanners& planners, Diagnostics& diagnostics);

}  // namespace railyard
