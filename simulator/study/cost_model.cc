// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/cost_model.h"

#include <algorithm>
#include <cmath>

namespace railyard {

void CostModel::Add(std::span<const std::string> values, double cost) {
  constexpr double kLeast = 1e-9;  // has a logarithm
  axes_.resize(values.size());
  Record record{.levels = {}, .logarithm = std::log(std::max(cost, kLeast))};
  for (size_t axis = 0; axis < values.size(); ++axis) {
    auto& levels = axes_[axis].levels;
    record.levels.push_back(levels.try_emplace(values[axis], levels.size()).first->second);
  }
  records_.push_back(std::move(record));
  if (records_.size() > fitted_ + fitted_ / 8) Fit();
}

// Returns the part of a record that an axis has to explain; with axes_.size(), the part that no
// axis explains.
double CostModel::ResidualWithout(const Record& record, size_t axis) const {
  double residual = record.logarithm - mean_;
  for (size_t other = 0; other < axes_.size(); ++other) {
    if (other != axis) residual -= axes_[other].effects[record.levels[other]];
  }
  return residual;
}

// Axis by axis, again and again, which converges to the least squares. A value counts as if a
// fraction of another run had shown no effect of it, so that one run alone decides little.
void CostModel::Fit() {
  constexpr int kSweeps = 20;
  constexpr double kPrior = 0.05;
  mean_ = 0;
  for (const Record& record : records_) {
    mean_ += record.logarithm / static_cast<double>(records_.size());
  }
  for (Axis& axis : axes_) axis.effects.assign(axis.levels.size(), 0);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      std::vector<double> sums(axes_[axis].levels.size());
      std::vector<double> counts(axes_[axis].levels.size(), kPrior);
      for (const Record& record : records_) {
        sums[record.levels[axis]] += ResidualWithout(record, axis);
        counts[record.levels[axis]] += 1;
      }
      for (size_t level = 0; level < sums.size(); ++level) {
        axes_[axis].effects[level] = sums[level] / counts[level];
      }
    }
  }
  largest_ratio_ = 1;
  for (const Record& record : records_) {
    const double residual = ResidualWithout(record, axes_.size());
    largest_ratio_ = std::max(largest_ratio_, std::exp(residual));
  }
  fitted_ = records_.size();
  ++version_;
}

double CostModel::EstimateOfLargest(std::span<const std::string> values) const {
  return Estimate(values) * largest_ratio_;
}

double CostModel::Estimate(std::span<const std::string> values) const {
  if (records_.empty()) return 0;
  double logarithm = mean_;
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    const auto level = axes_[axis].levels.find(values[axis]);
    if (level == axes_[axis].levels.end() || level->second >= axes_[axis].effects.size()) continue;
    logarithm += axes_[axis].effects[level->second];
  }
  return std::exp(logarithm);
}

}  // namespace railyard
