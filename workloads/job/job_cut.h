// SPDX-License-Identifier: GPL-2.0-only
// A job's beginning.
#pragma once

#include <cstdint>

#include "workloads/job/job.h"

namespace railyard {

// Takes out every collective from number `count` on, on all ranks alike, and computation after each
// rank's last. What is left keeps its order and its gaps.
void KeepFirstCollectives(uint64_t count, Job& job);

}  // namespace railyard
