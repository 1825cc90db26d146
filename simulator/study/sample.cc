// SPDX-License-Identifier: GPL-2.0-only
#include "simulator/study/sample.h"

#include <numeric>
#include <utility>
#include <xxhash.h>

#include "simulator/units/mix64.h"

namespace railyard {
namespace {

// Bits of a double's fraction.
constexpr int kBits = 53;

// A stream of mixed numbers for each axis and purpose.
uint64_t KeyOf(uint64_t seed, std::string_view axis, uint64_t purpose) {
  return Mix64(Mix64(XXH3_64bits_withSeed(axis.data(), axis.size(), seed)) + purpose);
}

uint64_t BitsOfDraw(uint64_t key, uint64_t number) {
  return Mix64(key ^ Mix64(number)) >> (64 - kBits);
}

double FractionOf(uint64_t bits) {
  return static_cast<double>(bits) / static_cast<double>(uint64_t{1} << kBits);
}

// A random order of 0 to count - 1 (Fisher and Yates).
std::vector<size_t> Shuffled(uint64_t key, size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[ScaleTo(Mix64(key ^ Mix64(i)), i)]);
  }
  return order;
}

}  // namespace

std::vector<double> UniformDraws(uint64_t seed, std::string_view axis, size_t count) {
  const uint64_t key = KeyOf(seed, axis, 0);
  std::vector<double> draws;
  draws.reserve(count);
  for (size_t i = 0; i < count; ++i) draws.push_back(FractionOf(BitsOfDraw(key, i)));
  return draws;
}

// The draws of [2^k, 2^(k+1)) pair with the earlier ones in a random order. Each lies in its
// partner's interval of length 2^-k, in the half that the partner does not have: all intervals of
// half the length have one draw then.
std::vector<double> LatinHypercubeDraws(uint64_t seed, std::string_view axis, size_t count) {
  const uint64_t key = KeyOf(seed, axis, 0);
  std::vector<uint64_t> bits;
  bits.reserve(count);
  if (count > 0) bits.push_back(BitsOfDraw(key, 0));
  int level = 1;
  for (size_t before = 1; before < count; before *= 2, ++level) {
    const std::vector<size_t> partners = Shuffled(KeyOf(seed, axis, before), before);
    const int below = kBits - level;  // bits that are drawn anew
    for (size_t i = 0; i < before; ++i) {
      const uint64_t interval = (bits[partners[i]] >> below) ^ 1;
      const uint64_t rest = BitsOfDraw(key, before + i) & ((uint64_t{1} << below) - 1);
      bits.push_back(interval << below | rest);
    }
  }
  std::vector<double> draws;
  draws.reserve(count);
  for (const uint64_t value : bits) draws.push_back(FractionOf(value));
  return draws;
}

}  // namespace railyard
