// SPDX-License-Identifier: GPL-2.0-only
// Implements `railyard fidelity --calibrate`: it makes a user's platform file from a platform and
// the output of nccl-tests on such machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/measure/calibration.h"
#include "simulator/measure/perf_point.h"

namespace railyard {

struct CalibrationPlan {
  PerfPoint point;  // without `bytes`
  std::vector<MeasuredTime> measured;
};

// Runs the simulations. Throws EnvironmentError if a point does not run.
CalibrationResult RunCalibration(const CalibrationPlan& plan);

// Returns a table for people: scales, and errors before, after and of rows left out.
std::string CalibrationTable(const CalibrationPlan& plan, const CalibrationResult& result);

// Returns the block `calibration` of a railyard.protos.Platform; `source` states where the times
// are from.
std::string CalibrationBlock(const CalibrationResult& result, const std::string& source);

}  // namespace railyard
