// SPDX-License-Identifier: GPL-2.0-only
// A list of numbers of which neighbours are often equal, stored as runs. Distances from all
// switches to one are such a list: generators number the switches of a tier, a pod, a rail in a
// row.
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

  // Precondition: `index` is one of the list's. Takes time in the logarithm of the runs.
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
