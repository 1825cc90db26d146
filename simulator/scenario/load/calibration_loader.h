// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <vector>

#include "simulator/execution/lanes/gpu_costs.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

// What the platform files that a scenario's fabric names were calibrated to goes into `costs`, and
// a sentence about it into `notes`. Servers of different calibrations, and a scale that `gpu { }`
// states too, are findings. What is wrong with the files themselves has been reported.
void ApplyCalibration(const ProtoCursor& scenario, GpuCosts& costs, std::vector<std::string>& notes,
                      Diagnostics& diagnostics);

}  // namespace railyard
