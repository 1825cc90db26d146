// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <string>

#include "simulator/diagnostics/diagnostics.h"
#include "workloads/plans/model/model_config.h"
#include "workloads/plans/plan/expert_routing.h"

namespace railyard {

// Reads comma-separated values with the columns iteration, layer, expert and tokens, in that order,
// and a header line. Iterations are numbered from 0 without a gap; an expert that is not named got
// no token. Errors are findings at their lines; the result then has the lines that could be read.
// Precondition: the file exists.
CapturedRouting LoadCapturedRouting(const std::string& path, const Experts& experts,
                                    uint32_t expert_layers, Diagnostics& diagnostics);

}  // namespace railyard
