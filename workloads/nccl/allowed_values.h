// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "traces/trace/trace.h"

namespace railyard {

// Holds which values of Algorithm (NCCL_ALGO) or Protocol (NCCL_PROTO) are allowed for each kind of
// collective. A mask allows enumerator n with bit n. A kind without a stated mask allows all.
template <typename Value>
class AllowedValues {
 public:
  AllowedValues() { masks_.fill(kAll); }

  void AllowOnly(uint32_t mask) { masks_.fill(mask); }
  void AllowOnly(CollectiveKind kind, uint32_t mask) { masks_[IndexOf(kind)] = mask; }

  bool Allows(CollectiveKind kind, Value value) const {
    return (masks_[IndexOf(kind)] >> static_cast<uint32_t>(value) & 1) != 0;
  }
  bool IsStatedFor(CollectiveKind kind) const { return masks_[IndexOf(kind)] != kAll; }
  bool IsStated() const {
    return std::ranges::any_of(masks_, [](uint32_t mask) { return mask != kAll; });
  }

 private:
  static constexpr uint32_t kAll = UINT32_MAX;
  static size_t IndexOf(CollectiveKind kind) { return static_cast<size_t>(kind); }

  std::array<uint32_t, kCollectiveKindCount> masks_{};
};

}  // namespace railyard
