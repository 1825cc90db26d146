// SPDX-License-Identifier: GPL-2.0-only
// Loads execution plans of MSCCL++ (JSON) as a user's own algorithm.
#pragma once

#include <memory>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "workloads/collectives/explicit_schedule.h"

namespace railyard {

// MSCCL++ writes to and reads from the memory of other GPUs. Here each such transfer becomes a
// message at the step where its data are first needed, sent by the GPU that holds them. The plan is
// run once on symbols: thread blocks of all GPUs take turns, one message each, and waits, barriers
// and semaphores hold. As many channels as a GPU has thread blocks share each chunk. Returns
// nullptr with findings if that is impossible: operations of switches, data that are overwritten
// before they are needed, waits without end. The result of the algorithm is not checked.
std::shared_ptr<ExplicitAlgorithm> LoadMscclpp(const std::string& path, const std::string& text,
                                               Diagnostics& diagnostics);

}  // namespace railyard
