// SPDX-License-Identifier: GPL-2.0-only
// Makes a user's algorithm of an execution plan of MSCCL++.
#pragma once

#include <memory>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/scenario/schedule_files/mscclpp_plan.h"
#include "workloads/collectives/explicit_schedule.h"

namespace railyard {

// MSCCL++ writes to and reads from the memory of other GPUs. In the result, each such transfer is a
// message at the step that needs its data first, sent by the GPU that holds them as soon as they
// are put. The plan is executed once symbolically: thread blocks of all GPUs take turns, each until
// it has received a message or has to wait, and obey waits, barriers and semaphores. Chunks are
// spread over as many channels as a GPU has thread blocks that move data. A GPU keeps one value of
// each chunk. Returns nullptr with findings if that is impossible: operations of switches, data
// that are overwritten before they are needed, endless waits, a wrong
// result.
std::shared_ptr<ExplicitAlgorithm> RunMscclppPlan(const std::string& path, MscclppPlan plan,
                                                  Diagnostics& diagnostics);

}  // namespace railyard
