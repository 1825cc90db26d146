// SPDX-License-Identifier: GPL-2.0-only
// Stores a list of numbers as runs of equal neighbours. The distances from all switches to one
// switch form such a list, because generators number the switches of a tier, a pod or a rail
// consecutively.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace railyard {

class RunLengths {
 public:
  RunLengths() = default;
  explicit RunLengths(const std::vector<uint32_t>& values) {
    for (uint32_t i = 0; i < values.size(); ++i) {
      if (i == 0 || values[i] != values_.back()) {
        ends_.push_back(i);
        values_.push_back(values[i]);
      }
      ends_.back() = i + 1;
    }
    ends_.shrink_to_fit();
    values_.shrink_to_fit();
  }

  // Takes time logarithmic in the number of runs. Precondition: `index` is below the list's length.
  uint32_t operator[](uint32_t index) const {
    const auto run = std::upper_bound(ends_.begin(), ends_.end(), index);
    return values_[static_cast<size_t>(run - ends_.begin())];
  }

  uint64_t bytes() const { return (ends_.size() + values_.size()) * sizeof(uint32_t); }

 private:
  std::vector<uint32_t> ends_;  // of each run, one past its last
  std::vector<uint32_t> values_;
};

}  // namespace railyard
