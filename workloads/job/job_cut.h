// SPDX-License-Identifier: GPL-2.0-only
// Truncates a job to its beginning.
#pragma once

#include <cstdint>

#include "workloads/job/job.h"

namespace railyard {

// Removes every collective from number `count` on, on all ranks alike, and the computation after
// each rank's last remaining call. The remaining operations keep their order and gaps.
void KeepFirstCollectives(uint64_t count, Job& job);

}  // namespace railyard
