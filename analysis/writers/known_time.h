// SPDX-License-Identifier: GPL-2.0-only
// Says which times of a result exist.
#pragma once

#include <cstdint>
#include <optional>

#include "simulator/units/units.h"

namespace railyard {

inline std::optional<int64_t> UnlessNever(int64_t time_ps) {
  return time_ps == kNeverPs ? std::nullopt : std::optional(time_ps);
}
inline std::optional<int64_t> UnlessNegative(int64_t time_ps) {
  return time_ps < 0 ? std::nullopt : std::optional(time_ps);
}

}  // namespace railyard
