// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cmath>
#include <cstdint>

namespace railyard {

// Computes Shannon's entropy in bits of the shares that parts have in their sum. n equal parts have
// log2 n bits, a single part has 0.
class EntropySum {
 public:
  void Add(double part) {
    if (part <= 0) return;
    ++parts_;
    sum_ += part;
    sum_of_logs_ += part * std::log2(part);
  }
  uint64_t parts() const { return parts_; }  // except parts of 0
  double Bits() const {
    return parts_ < 2 ? 0 : std::fmax(0, std::log2(sum_) - sum_of_logs_ / sum_);
  }

 private:
  uint64_t parts_ = 0;
  double sum_ = 0;
  double sum_of_logs_ = 0;
};

}  // namespace railyard
