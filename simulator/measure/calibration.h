// SPDX-License-Identifier: GPL-2.0-only
// Fits the GPU and proxy costs of a user's machine to times measured there. Each candidate is
// simulated packet by packet, as `railyard perf` does.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace railyard {

// Factors on NCCL's own tables; `gpu { }` of a scenario has the same fields.
inline constexpr std::array<std::string_view, 3> kCalibratedScales = {
    "launch_latency_scale", "step_latency_scale", "channel_rate_scale"};
using CalibratedScales = std::array<double, kCalibratedScales.size()>;

struct MeasuredTime {
  uint64_t bytes = 0;
  double time_us = 0;
};

struct CalibrationResult {
  CalibratedScales scales{};
  // Simulated / measured - 1, by row.
  std::vector<double> errors_before;
  std::vector<double> errors_after;
  std::vector<double> errors_left_out;  // of each row, with the scales that fit all others
  size_t candidates = 0;                // scales that were simulated
};

// Returns the simulated times in us of all rows with these scales, in order.
using SimulateRows = std::function<std::vector<double>(const CalibratedScales&)>;

// Coordinate descent: one scale after the other is moved to the least mean |log(simulated /
// measured)| among 0.5 to 2 in steps of a third of an octave, until nothing improves. A scale that
// changes nothing stays 1. Precondition: at least two rows.
CalibrationResult Calibrate(const std::vector<MeasuredTime>& measured,
                            const SimulateRows& simulate);

}  // namespace railyard
