// SPDX-License-Identifier: GPL-2.0-only
// Computes statistics over the runs of one point, which differ only in their seeds.
#pragma once

#include <optional>
#include <vector>

namespace railyard {

struct Estimate {
  double value = 0;
  // Bounds of 95 % confidence; nullopt if the sample is too small for a bound.
  std::optional<double> low;
  std::optional<double> high;
};

// Returns the mean, with bounds from Student's t. Precondition: `values` is not empty.
Estimate MeanOf(const std::vector<double>& values);

// Returns the nearest-rank quantile with 0 < q < 1, and bounds that are order statistics: the
// number of values below the true quantile is binomial, so they hold for any distribution (Conover,
// "Practical Nonparametric Statistics", 3.2). Precondition: `values` is not empty.
Estimate QuantileOf(std::vector<double> values, double q);

}  // namespace railyard
