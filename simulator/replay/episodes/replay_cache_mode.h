// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// Whether episodes that are known are simulated again.
enum class ReplayCacheMode : uint8_t {
  kOn,
  kOff,
  kVerify,  // simulated, and compared with what would have been replayed
};

}  // namespace railyard
