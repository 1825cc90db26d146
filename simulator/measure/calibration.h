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

// Lists the factors on NCCL's own tables that are fitted; `gpu { }` of a scenario has the same
// fields.
inline constexpr std::array<std::string_view, 3> kCalibratedScales = {
    "launch_latency_scale", "step_latency_scale", "channel_rate_scale"};
using CalibratedScales = std::array<double, kCalibratedScales.size()>;

struct MeasuredTime {
  uint64_t bytes = 0;
  double time_us = 0;
};

struct CalibrationResult {
  CalibratedScales scales{};
  // These are relative errors by row: simulated / measured - 1.
  std::vector<double> errors_before;
  std::vector<double> errors_after;
  std::vector<double> errors_left_out;  // of each row, with the scales that fit all others
  size_t candidates = 0;                // scales that were simulated
};

// Returns the simulated times in us of all rows with these scales, in order.
using SimulateRows = std::function<std::vector<double>(const CalibratedScales&)>;

// Fits by coordinate descent. One scale after the other is moved to the least mean |log(simulated /
// measured)| among 0.5 to 2 in steps of a third of an octave, until nothing improves. A scale that
// changes nothing stays 1. Precondition: `measured` has at least two rows.
CalibrationResult Calibrate(const std::vector<MeasuredTime>& measured,
                            const SimulateRows& simulate);

}  // namespace railyard
