// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// Implements SplitMix64's step (Steele, Lea, Flood: "Fast splittable pseudorandom number
// generators", OOPSLA 2014): a bijection of 64 bits in which every input bit flips each output bit
// about half the time.
constexpr uint64_t Mix64(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// Maps a mixed value evenly to [0, bound); returns 0 if `bound` is 0.
constexpr uint64_t ScaleTo(uint64_t mixed, uint64_t bound) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(mixed) * bound) >> 64);
}

}  // namespace railyard
