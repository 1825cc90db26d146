// SPDX-License-Identifier: GPL-2.0-only
// Draws random numbers that depend only on a seed and on their purpose, so that draws elsewhere do
// not change them: SplitMix64 from a mixed key.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

#include "simulator/units/mix64.h"

namespace railyard {

class RandomStream {
 public:
  RandomStream(uint64_t seed, std::initializer_list<uint64_t> key) : state_(Mix64(seed)) {
    for (const uint64_t part : key) state_ = Mix64(state_ ^ part);
  }

  // Draws from [0, 1) in steps of 2^-53.
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  uint64_t Below(uint64_t bound) { return ScaleTo(Next(), bound); }
  // Draws from the exponential distribution of mean 1, by inversion.
  double Exponential() { return -std::log1p(-Unit()); }
  // Draws from the standard normal distribution (Box and Muller, 1958).
  double Normal() {
    const double radius = std::sqrt(2 * Exponential());
    return radius * std::cos(2 * std::numbers::pi * Unit());
  }

 private:
  uint64_t Next() {
    const uint64_t value = Mix64(state_);
    state_ += 0x9e3779b97f4a7c15;  // SplitMix64's step
    return value;
  }

  uint64_t state_;
};

}  // namespace railyard
