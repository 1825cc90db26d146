// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace railyard {

// Estimates what a run costs, a positive number, from the runs that have ended: the mean of all,
// times a factor for each value of its axes, by least squares of the logarithms.
class CostModel {
 public:
  void Add(std::span<const std::string> values, double cost);
  // Returns 0 before anything was added. A value that no run had counts as the average one.
  double Estimate(std::span<const std::string> values) const;
  // The estimate times the largest ratio of a cost to its estimate so far.
  double EstimateOfLargest(std::span<const std::string> values) const;
  // Increases whenever estimates have changed: after the first runs, and each time their number has
  // grown by an eighth.
  size_t version() const { return version_; }

 private:
  struct Record {
    std::vector<size_t> levels;  // by axis: the number of its value
    double logarithm = 0;
  };
  struct Axis {
    std::unordered_map<std::string, size_t> levels;
    std::vector<double> effects;  // by level, logarithms
  };

  void Fit();
  double ResidualWithout(const Record& record, size_t axis) const;

  std::vector<Record> records_;
  std::vector<Axis> axes_;
  double mean_ = 0;           // of the logarithms
  double largest_ratio_ = 1;  // of a cost to its estimate
  size_t fitted_ = 0;
  size_t version_ = 0;
};

}  // namespace railyard
