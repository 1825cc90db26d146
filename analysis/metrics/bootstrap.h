// SPDX-License-Identifier: GPL-2.0-only
// Computes confidence intervals by resampling.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

namespace railyard {

struct Interval {
  double low = 0;
  double high = 0;
};

// Returns the 95 % percentile interval of 1,000 resamples (Efron and Tibshirani, "An introduction
// to the bootstrap", chapter 13); nullopt for fewer than 8 values, which are too few to resample.
// `statistic` gets the indices of a resample, `count` of them below `count`, drawn with
// replacement. The draws are keyed, so equal values give equal intervals.
std::optional<Interval> BootstrapInterval(
    size_t count, const std::function<double(std::span<const size_t> picks)>& statistic);

}  // namespace railyard
