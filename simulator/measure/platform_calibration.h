// SPDX-License-Identifier: GPL-2.0-only
// `railyard fidelity --calibrate`: a platform file of a user's own, from a platform and what
// nccl-tests printed on such machines.
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

// Simulates; throws EnvironmentError where a point does not run.
CalibrationResult RunCalibration(const CalibrationPlan& plan);

// For people: scales, and errors before, after and of rows left out.
std::string CalibrationTable(const CalibrationPlan& plan, const CalibrationResult& result);

// The block `calibration` of a railyard.protos.Platform; `source` says where the times are from.
std::string CalibrationBlock(const CalibrationResult& result, const std::string& source);

}  // namespace railyard
