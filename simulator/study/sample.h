// SPDX-License-Identifier: GPL-2.0-only
// Draws the values of a study's axes. A draw depends only on the sample's seed, the axis's name and
// the number of the draw, so a sample that grows, or gets another axis, keeps its draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace railyard {

// Returns `count` independent numbers, uniformly distributed over [0, 1).
std::vector<double> UniformDraws(uint64_t seed, std::string_view axis, size_t count);

// Returns `count` numbers of [0, 1), one in each interval [i/count, (i + 1)/count): with the draws
// of other axes, they make a Latin hypercube (McKay, Beckman and Conover, Technometrics 21, 1979).
// The first half of them is one too, and so on, so that a sample grows by doubling. Precondition:
// `count` is a power of two.
std::vector<double> LatinHypercubeDraws(uint64_t seed, std::string_view axis, size_t count);

}  // namespace railyard
