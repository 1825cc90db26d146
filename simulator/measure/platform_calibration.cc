// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/platform_calibration.h"

#include <cmath>

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include "simulator/diagnostics/diagnostics.h"
#include "simulator/measure/fidelity.h"
#include "topologies/platforms/platform.pb.h"

namespace railyard {
namespace {

double Median(const std::vector<double>& errors) { return ErrorQuantile(errors, 0.5); }

}  // namespace

CalibrationResult RunCalibration(const CalibrationPlan& plan) {
  return Calibrate(plan.measured, [&](const CalibratedScales& scales) {
    std::vector<PerfPoint> points;
    for (const MeasuredTime& row : plan.measured) {
      points.push_back(plan.point);
      points.back().bytes = row.bytes;
      for (size_t i = 0; i < scales.size(); ++i) {
        points.back().scenario.Set(fmt::format("gpu.{}", kCalibratedScales[i]), scales[i]);
      }
    }
    std::vector<double> times_us;
    for (const TimedRun& outcome : RunPoints(points, [](size_t, const TimedRun&) {})) {
      if (!outcome.error.empty()) throw EnvironmentError(outcome.error);
      times_us.push_back(static_cast<double>(outcome.time_ps) * 1e-6);
    }
    return times_us;
  });
}

std::string CalibrationTable(const CalibrationPlan& plan, const CalibrationResult& result) {
  std::string text = fmt::format("{} candidates were simulated.\n", result.candidates);
  for (size_t i = 0; i < result.scales.size(); ++i) {
    text += fmt::format("{:24} {}\n", kCalibratedScales[i], result.scales[i]);
  }
  text += fmt::format("\n{:>12} {:>12} {:>9} {:>9} {:>9}\n", "bytes", "measured us", "before",
                      "after", "left out");
  for (size_t row = 0; row < plan.measured.size(); ++row) {
    text +=
        fmt::format("{:>12} {:>12.2f} {:>+8.1f}% {:>+8.1f}% {:>+8.1f}%\n", plan.measured[row].bytes,
                    plan.measured[row].time_us, result.errors_before[row] * 100,
                    result.errors_after[row] * 100, result.errors_left_out[row] * 100);
  }
  return text + fmt::format(
                    "Median |error|: {:.1f}% before, {:.1f}% after, {:.1f}% of each row with "
                    "the scales that fit all others.\n",
                    Median(result.errors_before) * 100, Median(result.errors_after) * 100,
                    Median(result.errors_left_out) * 100);
}

std::string CalibrationBlock(const CalibrationResult& result, const std::string& source) {
  protos::Platform platform;
  protos::Calibration& calibration = *platform.mutable_calibration();
  const google::protobuf::Reflection& reflection = *calibration.GetReflection();
  for (size_t i = 0; i < result.scales.size(); ++i) {
    const std::string field(kCalibratedScales[i]);
    reflection.SetDouble(&calibration, calibration.GetDescriptor()->FindFieldByName(field),
                         result.scales[i]);
  }
  const auto median = [](const std::vector<double>& errors) {
    return std::round(Median(errors) * 1e4) / 1e4;
  };
  calibration.set_median_abs_error_before(median(result.errors_before));
  calibration.set_median_abs_error_after(median(result.errors_after));
  calibration.set_median_abs_error_left_out(median(result.errors_left_out));
  calibration.set_source(source);
  std::string block;
  google::protobuf::TextFormat::PrintToString(platform, &block);
  return block;
}

}  // namespace railyard
