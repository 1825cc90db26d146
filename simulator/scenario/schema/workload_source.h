// SPDX-License-Identifier: GPL-2.0-only
// Finds the `workload` of a part of the job in a scenario, and its source.
#pragma once

#include "simulator/text_proto/text_proto.h"
#include "simulator/units/job_ids.h"

namespace railyard {

// Returns the field of a Workload that is its source; nullptr if there is none.
const char* WorkloadSourceOf(const ProtoCursor& workload);

// Returns the Workload from which a part of the job was loaded. `scenario` is a cursor on the whole
// scenario.
ProtoCursor WorkloadOfPart(const ProtoCursor& scenario, PartIndex part);

}  // namespace railyard
