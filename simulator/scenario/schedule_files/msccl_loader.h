// SPDX-License-Identifier: GPL-2.0-only
// Loads an algorithm in MSCCL's XML (msccl-tools, msccl-scheduler) as a user's algorithm.
#pragma once

#include <memory>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "workloads/collectives/explicit_schedule.h"

namespace railyard {

// Returns the algorithm. Each thread block becomes a lane; those of a GPU and channel that wait for
// each other, or read what the other received, are one, with their steps in an order that their
// dependencies and messages allow. The data that a step reads is traced
// through the buffers: it is the rank's own contribution, or data that the lane received or reduced
// before. A program with local reductions, with dependencies between channels, or whose lanes do
// not give its result, is run as a plan of MSCCL++ (mscclpp_runner.h). Returns nullptr with
// findings if that is impossible, too: endless waits, a wrong result.
std::shared_ptr<ExplicitAlgorithm> LoadMsccl(const std::string& path, const std::string& text,
                                             Diagnostics& diagnostics);

}  // namespace railyard
