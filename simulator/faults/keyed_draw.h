// SPDX-License-Identifier: GPL-2.0-only
// Draws a random number that is a function of its purpose, so that it does not depend on other
// draws or on their order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "simulator/units/mix64.h"

namespace railyard {

class KeyedDraw {
 public:
  // `stream` distinguishes several draws for the same index.
  constexpr KeyedDraw(uint64_t seed, uint64_t stream, uint64_t index)
      : bits_(Mix64(Mix64(Mix64(seed) ^ stream) ^ index)) {}

  // Returns a number in [0, 1), in steps of 2^-53.
  constexpr double Unit() const { return static_cast<double>(bits_ >> 11) * 0x1p-53; }
  constexpr bool IsBelow(double probability) const { return Unit() < probability; }
  // These return a number in [0, bound).
  constexpr uint64_t Below(uint64_t bound) const { return ScaleTo(bits_, bound); }
  constexpr int64_t BelowPs(int64_t bound_ps) const {
    return static_cast<int64_t>(Below(static_cast<uint64_t>(bound_ps)));
  }
  // Draws from an exponential distribution by inversion. Returns INT64_MAX, which is beyond any
  // run, if the result does not fit.
  int64_t ExponentialPs(double mean_ps) const {
    constexpr double kLongestPs = 0x1p62;
    const double drawn_ps = -std::log1p(-Unit()) * mean_ps;
    return drawn_ps < kLongestPs ? static_cast<int64_t>(drawn_ps) : INT64_MAX;
  }

 private:
  uint64_t bits_;
};

}  // namespace railyard
