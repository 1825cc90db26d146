// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace railyard {

// Estimates the cost of a run, a positive number, from the runs that have ended: as the mean of
// all, times a factor for each value of its axes, fitted by least squares of the logarithms.
class CostModel {
 public:
  // Adds a run that has ended. `values` are those of its axes.
  void Add(std::span<const std::string> values, double cost);
  // Returns 0 before anything was added. A value that no run had counts as the average one.
  double Estimate(std::span<const std::string> values) const;
  // Returns the estimate times the largest ratio, at least 1, of a cost to its estimate so far.
  double EstimateOfLargest(std::span<const std::string> values) const;
  // Returns a number that increases whenever estimates change: after each of the first runs, then
  // each time the number of runs has grown by an eighth.
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
