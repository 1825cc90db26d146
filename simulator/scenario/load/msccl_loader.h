// SPDX-License-Identifier: GPL-2.0-only
// Algorithms in MSCCL's XML (msccl-tools, msccl-scheduler) as a user's own algorithm.
#pragma once

#include <memory>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "workloads/collectives/explicit_schedule.h"

namespace railyard {

// The thread blocks of a GPU and channel become one lane: their steps in an order that their
// dependencies and messages allow. What a step reads is followed through the buffers: a rank's own
// contribution, or what the lane received or reduced before. nullptr and findings where that is not
// possible: AllToAll and kinds that an ExplicitAlgorithm does not have, dependencies between
// channels, steps that wait for one another for ever, local reductions. What it means is not
// checked. Entities of XML are not expanded, other files not opened.
std::shared_ptr<ExplicitAlgorithm> LoadMsccl(const std::string& path, const std::string& text,
                                             Diagnostics& diagnostics);

}  // namespace railyard
