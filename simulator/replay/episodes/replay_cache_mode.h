// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// Selects whether known episodes are replayed, simulated, or both.
enum class ReplayCacheMode : uint8_t {
  kOn,
  kOff,
  kVerify,  // simulated, and compared with the stored episodes
};

}  // namespace railyard
