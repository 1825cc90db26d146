// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// A time that no event reaches: 106 days.
inline constexpr int64_t kNeverPs = INT64_MAX;

}  // namespace railyard
