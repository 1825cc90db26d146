// SPDX-License-Identifier: GPL-2.0-only
// Whether a job can end before simulated time does.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/text_proto/text_proto.h"
#include "workloads/job/job.h"

namespace railyard {

// How long a part of the job takes at least: what a rank computes on one stream, after the part's
// start. At most kAfterEndPs.
int64_t LeastTimePs(const Job& job, uint32_t part);

// An error at the workload of each part that computes beyond the end of simulated time.
void CheckTimes(const ProtoCursor& scenario, const Job& job, Diagnostics& diagnostics);

}  // namespace railyard
