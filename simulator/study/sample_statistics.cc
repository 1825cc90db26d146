// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/sample_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace railyard {
namespace {

constexpr double kTail = 0.025;

// Two-sided 95 % points of Student's t by degrees of freedom, 1 to 30; the normal's beyond 1,000,
// and in between t falls as 1/n: Abramowitz and Stegun, table 26.10 and 26.7.5.
double StudentT(size_t freedom) {
  static constexpr std::array<double, 30> kPoints = {
      12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
      2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (freedom <= kPoints.size()) return kPoints[freedom - 1];
  constexpr double kNormal = 1.959964;
  const auto n = static_cast<double>(freedom);
  return kNormal + (kNormal * kNormal * kNormal + kNormal) / (4 * n);
}

// P(binomial(n, q) = k).
double BinomialProbability(size_t k, size_t n, double q) {
  const double log_choose = std::lgamma(static_cast<double>(n) + 1) -
                            std::lgamma(static_cast<double>(k) + 1) -
                            std::lgamma(static_cast<double>(n - k) + 1);
  return std::exp(log_choose + static_cast<double>(k) * std::log(q) +
                  static_cast<double>(n - k) * std::log1p(-q));
}

}  // namespace

Estimate MeanOf(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Estimate mean;
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  mean.value = std::clamp(sum / n, *least, *greatest);  // the mean of equal values is their value
  if (values.size() < 2) return mean;
  double squares = 0;
  for (const double value : values) squares += (value - mean.value) * (value - mean.value);
  const double half = StudentT(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  mean.low = mean.value - half;
  mean.high = mean.value + half;
  return mean;
}

Estimate QuantileOf(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(n)));
  Estimate quantile{.value = values[std::max<size_t>(rank, 1) - 1], .low = {}, .high = {}};
  // The highest below which the quantile lies with no more than the tail's probability, and the
  // lowest above.
  double cdf = 0;  // P(binomial(n, q) <= i)
  for (size_t i = 0; i < n; ++i) {
    cdf += BinomialProbability(i, n, q);
    if (cdf <= kTail) quantile.low = values[i];
    if (!quantile.high && cdf >= 1 - kTail) quantile.high = values[i];
  }
  return quantile;
}

}  // namespace railyard
