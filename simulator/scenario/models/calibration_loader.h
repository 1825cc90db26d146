// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/text_proto/text_proto.h"
#include "topologies/platforms/platform.h"
#include "workloads/nccl/gpu_costs.h"

namespace railyard {

// Returns the platform file, named by the servers of the fabric at `fabric`, to which the GPUs are
// calibrated; nullopt if there is none. Servers with different calibrations are a finding. Errors
// in the files themselves have been reported before.
std::optional<Platform> CalibratedPlatformOf(const ProtoCursor& fabric, Diagnostics& diagnostics);

// Returns a calibration's factors with the fields of `gpu { }` that state the same.
std::array<std::pair<const char*, double>, 3> FactorsOf(const PlatformCalibration& calibration);

// Applies the calibration of the platform files that a scenario's fabric names to `costs`, and adds
// a sentence about it to `notes`. A scale that `gpu { }` states too is a finding.
void ApplyCalibration(const ProtoCursor& scenario, GpuCosts& costs, std::vector<std::string>& notes,
                      Diagnostics& diagnostics);

}  // namespace railyard
