// SPDX-License-Identifier: GPL-2.0-only
// Numbers the positions of a multi-dimensional box; tori and HyperX number their switches so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topologies/graph/spec_check.h"

namespace railyard {

inline constexpr size_t kMaxDimensions = 4;
inline constexpr uint32_t kMaxDimension = 65'535;

inline uint64_t LatticeSize(const std::vector<uint32_t>& dimensions) {
  uint64_t size = 1;
  for (const uint32_t dimension : dimensions) size = SaturatingProduct(size, dimension);
  return size;
}

// Returns the position of switch `index`; the last dimension counts fastest.
inline std::vector<uint16_t> PositionOf(uint64_t index, const std::vector<uint32_t>& dimensions) {
  std::vector<uint16_t> position(dimensions.size());
  for (size_t i = dimensions.size(); i-- > 0; index /= dimensions[i]) {
    position[i] = static_cast<uint16_t>(index % dimensions[i]);
  }
  return position;
}

// Returns the inverse of PositionOf.
inline uint64_t IndexOf(const std::vector<uint16_t>& position,
                        const std::vector<uint32_t>& dimensions) {
  uint64_t index = 0;
  for (size_t i = 0; i < dimensions.size(); ++i) index = index * dimensions[i] + position[i];
  return index;
}

inline std::string PositionName(const char* noun, const std::vector<uint16_t>& position) {
  return fmt::format("{}{}", noun, fmt::join(position, "."));
}

inline void CheckDimensions(const std::vector<uint32_t>& dimensions, SpecChecker& check) {
  if (dimensions.empty() || dimensions.size() > kMaxDimensions) {
    check.Add("dimensions",
              fmt::format("{} dimensions (expected 1 to {})", dimensions.size(), kMaxDimensions));
  }
  for (size_t i = 0; i < dimensions.size(); ++i) {
    check.Count(fmt::format("dimensions[{}]", i), dimensions[i], 2, kMaxDimension);
  }
}

}  // namespace railyard
