// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/measure/calibration.h"

#include <cmath>
#include <map>

#include "simulator/diagnostics/check.h"

namespace railyard {
namespace {

constexpr int kStepsEachWay = 3;  // of a third of an octave
constexpr int kRoundsMax = 4;

using Steps = std::array<int, kCalibratedScales.size()>;

CalibratedScales ScalesOf(const Steps& steps) {
  CalibratedScales scales{};
  for (size_t i = 0; i < steps.size(); ++i) {
    // Scales are rounded to four digits, so that the file has the simulated values.
    scales[i] = std::round(std::exp2(steps[i] / 3.0) * 1e4) / 1e4;
  }
  return scales;
}

class Calibrator {
 public:
  Calibrator(const std::vector<MeasuredTime>& measured, const SimulateRows& simulate)
      : measured_(measured), simulate_(simulate) {}

  // The best steps for all rows but `left_out`.
  Steps Fit(size_t left_out) {
    Steps best{};
    double best_misfit = Misfit(best, left_out);
    for (int round = 0; round < kRoundsMax; ++round) {
      const Steps before = best;
      for (size_t scale = 0; scale < best.size(); ++scale) {
        Steps candidate = best;
        for (int step = -kStepsEachWay; step <= kStepsEachWay; ++step) {
          candidate[scale] = step;
          const double misfit = Misfit(candidate, left_out);
          if (misfit >= best_misfit) continue;
          best = candidate;
          best_misfit = misfit;
        }
      }
      if (best == before) break;
    }
    return best;
  }

  double Error(const Steps& steps, size_t row) {
    return TimesOf(steps)[row] / measured_[row].time_us - 1;
  }
  size_t candidates() const { return times_.size(); }

 private:
  const std::vector<double>& TimesOf(const Steps& steps) {
    const auto [at, is_new] = times_.try_emplace(steps);
    if (is_new) at->second = simulate_(ScalesOf(steps));
    return at->second;
  }

  double Misfit(const Steps& steps, size_t left_out) {
    const std::vector<double>& times_us = TimesOf(steps);
    double sum = 0;
    for (size_t row = 0; row < times_us.size(); ++row) {
      if (row != left_out) sum += std::abs(std::log(times_us[row] / measured_[row].time_us));
    }
    return sum;
  }

  const std::vector<MeasuredTime>& measured_;
  const SimulateRows& simulate_;
  std::map<Steps, std::vector<double>> times_;
};

}  // namespace

CalibrationResult Calibrate(const std::vector<MeasuredTime>& measured,
                            const SimulateRows& simulate) {
  SIM_CHECK(measured.size() >= 2, "a calibration of fewer than two rows");
  Calibrator calibrator(measured, simulate);
  const Steps all = calibrator.Fit(measured.size());
  CalibrationResult result;
  result.scales = ScalesOf(all);
  for (size_t row = 0; row < measured.size(); ++row) {
    result.errors_before.push_back(calibrator.Error(Steps{}, row));
    result.errors_after.push_back(calibrator.Error(all, row));
    result.errors_left_out.push_back(calibrator.Error(calibrator.Fit(row), row));
  }
  result.candidates = calibrator.candidates();
  return result;
}

}  // namespace railyard
