// SPDX-License-Identifier: GPL-2.0-only
// Checks that a job can end before simulated time does.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/text_proto/text_proto.h"
#include "workloads/job/job.h"

namespace railyard {

// Returns a lower bound on the time of a part of the job: the computation of a rank on one stream,
// after the part's start. At most kAfterEndPs.
int64_t LeastTimePs(const Job& job, PartIndex part);

// Reports an error at the workload of each part that computes beyond the end of simulated time.
void CheckTimes(const ProtoCursor& scenario, const Job& job, Diagnostics& diagnostics);

}  // namespace railyard
