// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// These constants define the layout of an event's tie, the 64-bit key that orders simultaneous
// events. The bits from kLocalTieBits up identify the server, and the lowest eight identify the GPU
// within its server.
inline constexpr int kLocalTieBits = 36;
inline constexpr uint64_t kLocalTieMask = (uint64_t{1} << kLocalTieBits) - 1;
inline constexpr uint64_t kGpuTieMask = 0xff;

}  // namespace railyard
