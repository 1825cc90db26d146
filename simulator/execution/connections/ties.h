// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>

namespace railyard {

// Of ties: what tells servers apart is above these bits, what tells a server's GPUs apart is in the
// lowest ones.
inline constexpr int kLocalTieBits = 36;
inline constexpr uint64_t kLocalTieMask = (uint64_t{1} << kLocalTieBits) - 1;
inline constexpr uint64_t kGpuTieMask = 0xff;

}  // namespace railyard
