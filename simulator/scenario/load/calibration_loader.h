// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <string>
#include <vector>

#include "simulator/execution/lanes/gpu_costs.h"
#include "simulator/text_proto/text_proto.h"

namespace railyard {

// Applies the calibration of the platform files that a scenario's fabric names to `costs`, and adds
// a sentence about it to `notes`. Servers with different calibrations, and a scale that `gpu { }`
// states too, are findings. Errors in the files themselves have been reported before.
void ApplyCalibration(const ProtoCursor& scenario, GpuCosts& costs, std::vector<std::string>& notes,
                      Diagnostics& diagnostics);

}  // namespace railyard
