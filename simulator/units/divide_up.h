// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// Returns a / b, rounded up; it does not overflow for any a. Precondition: b is not 0.
constexpr uint64_t DivideUp(uint64_t a, uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace railyard
